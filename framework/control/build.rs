//! Gives the library a name that the loader knows it by, and refuses to build it with flags that would make it call
//! itself for every access it makes.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=CARGO_ENCODED_RUSTFLAGS");
    // A program may be linked with another copy of the file than the one that is loaded first; by this name the loader
    // sees that it has it.
    if std::env::var("CARGO_CFG_TARGET_OS").as_deref() == Ok("linux") {
        println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libwaylay_control.so");
    }
    let flags = std::env::var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    let instruments =
        |flag: &str| flag.contains("sanitizer=thread") || flag.contains("passes=") && flag.contains("tsan");
    if let Some(flag) = flags.split('\x1f').find(|flag| instruments(flag)) {
        println!(
            "cargo::error=the control library serves the calls that `{flag}` adds, so it must be built without: give \
             these flags to the program under test only, with `--target` so that build scripts stay as they are"
        );
    }
}
