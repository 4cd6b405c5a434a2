//! For build scripts: what C and C++ need with mingw so that strict mode sees their threads and accesses.

/// Whether the build is for Windows with mingw.
pub(crate) fn is_target() -> bool {
    let target = |name: &str| std::env::var(name).unwrap_or_default();
    target("CARGO_CFG_TARGET_OS") == "windows" && target("CARGO_CFG_TARGET_ENV") == "gnu"
}

/// Ends a build for Windows that has another compiler: it would fail over POSIX threads, and not say what helps.
pub(crate) fn or_refuse() {
    let windows = std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("windows");
    assert!(
        is_target() || !windows,
        "the plugins in C and C++ with seeded bugs want mingw's gcc: `rustup default stable-x86_64-pc-windows-gnu`, and see \
         docs/install.md for the compiler. Plugins of your own may be built by any"
    );
}

/// What gcc's own library takes from that of POSIX threads.
const TAKEN: [&str; 7] = [
    "pthread_getspecific",
    "pthread_key_create",
    "pthread_mutex_init",
    "pthread_mutex_lock",
    "pthread_mutex_unlock",
    "pthread_once",
    "pthread_setspecific",
];

/// Links POSIX threads as the library of their own that they are: linked in, their functions would be nobody's.
pub(crate) fn link_threads() {
    println!("cargo::rustc-link-lib=dylib=pthread");
    name_what_is_taken(&["cdylib"]);
}

/// rustc's own line has them linked in for gcc's library, at its end. What that takes is named here, so that it is found
/// in the other one before, and there is one of each. `targets` are those of the crate that this is for.
pub(crate) fn name_what_is_taken(targets: &[&str]) {
    for target in targets {
        for name in TAKEN {
            println!("cargo::rustc-link-arg-{target}=-Wl,--undefined={name}");
        }
    }
}
