//! Which modules of a process are looked at, and how closely.
//!
//! The program and what was built with it are looked at in full: that is where the bugs are that its author wants to
//! know of. Libraries of the system are taken to be right, and their atomics are enough.

use crate::plan::Wanted;

/// libc and the loader are what the scheduler itself stands on; the others are tools, which watch the program as we do, or
/// ours.
/// Names begin like this.
const LEFT_ALONE: [&str; 16] = [
    "libc.so",
    "libc-",
    "ld-linux",
    "ld-2",
    "linux-vdso",
    "libwaylay_control",
    "libwaylay_melting_pot",
    "libgcc_s",
    "libm.so",
    "libpthread",
    "libdl.so",
    "librt.so",
    "libasan",
    "libubsan",
    "liblsan",
    "libtsan",
];

/// Where libraries of the system are.
const SYSTEM: [&str; 8] = [
    "/lib/",
    "/lib32/",
    "/lib64/",
    "/usr/lib/",
    "/usr/lib32/",
    "/usr/lib64/",
    "/usr/libexec/",
    "/nix/store/",
];

/// Runtimes of languages, which are the system's wherever they are installed. Names begin like this.
const RUNTIMES: [&str; 4] = ["libstd-", "librustc_driver", "libstdc++", "libc++"];

/// More of them on Windows. In small letters.
const RUNTIMES_ON_WINDOWS: [&str; 7] =
    ["std-", "rustc_driver", "libunwind", "msvcp", "concrt", "libgomp", "vcomp"];

/// Runtimes that threads synchronise with, by accesses that look like any other. Names begin like this.
const SYNCHRONISE: [&str; 4] = ["libgomp", "libomp", "libiomp5", "libtbb"];

/// Modules that are left alone on Windows: what every process stands on, C runtimes, and threads and unwinding of GNU tools. In
/// small letters.
const LEFT_ALONE_ON_WINDOWS: [&str; 13] = [
    "ntdll.",
    "kernel32.",
    "kernelbase.",
    "user32.",
    "win32u.",
    "api-ms-win-",
    "ext-ms-",
    "msvcrt",
    "ucrtbase",
    "vcruntime",
    "libgcc_s",
    "libwinpthread",
    "clang_rt.",
];
/// Our own libraries there.
const OURS_ON_WINDOWS: [&str; 2] = ["waylay_control_windows.", "waylay_melting_pot."];

/// The name of a file without its folders.
fn name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Whether a module is never patched.
pub fn is_left_alone(path: &str) -> bool {
    LEFT_ALONE.iter().any(|part| name(path).starts_with(part))
}

/// Whether a module of a process on Windows is never patched, where `windows` is the folder of the system: neither what
/// lies there nor what every process stands on.
pub fn is_left_alone_on_windows(path: &str, windows: &str) -> bool {
    let (path, windows) = (path.to_lowercase().replace('/', "\\"), windows.to_lowercase().replace('/', "\\"));
    let name = path.rsplit('\\').next().unwrap_or_default();
    let inside = path.strip_prefix(windows.trim_end_matches('\\')).is_some_and(|rest| rest.starts_with('\\'));
    inside || OURS_ON_WINDOWS.iter().chain(&LEFT_ALONE_ON_WINDOWS).any(|part| name.starts_with(part))
}

/// Whether a library is there for threads to wait for each other: what it reads and writes orders them.
pub fn synchronises(library: &str) -> bool {
    SYNCHRONISE.iter().any(|part| name(library).starts_with(part))
}

/// Whether a library belongs to the program at this path: it lies in the program's own folder or below, or outside of
/// the system's folders.
pub fn is_own(library: &str, program: &str) -> bool {
    let folder = program.rsplit_once('/').map_or("", |(folder, _)| folder);
    let within =
        |path: &str, folder: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
    if is_left_alone(library)
        || synchronises(library)
        || RUNTIMES.iter().any(|part| name(library).starts_with(part))
    {
        return false;
    }
    // A program that lies among the system's own programs has no folder of its own.
    let shared = ["", "/bin", "/sbin", "/usr/bin", "/usr/sbin", "/usr/lib", "/lib"].contains(&folder);
    !shared && within(library, folder) || !SYSTEM.iter().any(|system| library.starts_with(system))
}

/// What of a module is patched, where `closely` says whether every access is wanted of it, and `all` whether none may be
/// missed then.
pub fn wanted(path: &str, closely: bool, all: bool) -> Option<Wanted> {
    if is_left_alone(path) {
        return None;
    }
    Some(extent(closely, all))
}

/// Which instructions are wanted of a module that is not left alone.
pub fn extent(closely: bool, all: bool) -> Wanted {
    match (closely, all) {
        (true, true) => Wanted::All,
        (true, false) => Wanted::Memory,
        (false, _) => Wanted::Atomics,
    }
}

/// Whether a library belongs to the program at this path on Windows: it lies in the program's own folder or below, and is no
/// runtime of a language.
pub fn is_own_on_windows(library: &str, program: &str) -> bool {
    let lower = |path: &str| path.to_lowercase().replace('/', "\\");
    let (lower_library, program) = (lower(library), lower(program));
    let folder = program.rsplit_once('\\').map_or("", |(folder, _)| folder);
    let within = lower_library.strip_prefix(folder).is_some_and(|rest| rest.starts_with('\\'));
    within && !folder.is_empty() && is_brought_on_windows(library)
}

/// Whether a library that a host loaded on Windows, and that is not left alone, is a plugin or came with one: it is no runtime
/// of a language.
pub fn is_brought_on_windows(library: &str) -> bool {
    let library = library.to_lowercase().replace('/', "\\");
    let name = library.rsplit('\\').next().unwrap_or_default();
    let mut runtimes =
        RUNTIMES.iter().chain(&RUNTIMES_ON_WINDOWS).chain(&LEFT_ALONE_ON_WINDOWS).chain(&OURS_ON_WINDOWS);
    !runtimes.any(|part| name.starts_with(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_with_the_program_is_its_own() {
        for (library, program) in [
            ("/home/me/build/libqueue.so", "/home/me/build/server"),
            ("/home/me/build/lib/libqueue.so.1", "/home/me/build/server"),
            ("/opt/product/lib/libqueue.so", "/usr/bin/server"),
            ("/usr/local/lib/libqueue.so", "/home/me/server"),
            ("/usr/lib/server/libqueue.so", "/usr/lib/server/server"),
        ] {
            assert!(is_own(library, program), "{library} of {program}");
        }
    }

    #[test]
    fn what_the_system_has_is_not() {
        for (library, program) in [
            ("/usr/lib/x86_64-linux-gnu/libglib-2.0.so.0", "/home/me/server"),
            ("/lib64/libz.so.1", "/home/me/server"),
            ("/usr/lib/libz.so.1", "/usr/bin/server"),
            ("/usr/lib/libz.so.1", "/usr/lib/server"),
            ("/home/me/.rustup/toolchains/stable/lib/libstd-0123.so", "/home/me/server"),
            ("/home/me/tools/libwaylay_control.so", "/home/me/tools/server"),
            ("/opt/gcc/lib64/libstdc++.so.6", "/home/me/server"),
        ] {
            assert!(!is_own(library, program), "{library} of {program}");
        }
        assert!(
            synchronises("/usr/lib/x86_64-linux-gnu/libgomp.so.1") && !synchronises("/usr/lib/libz.so.1")
        );
        assert_eq!(wanted("/home/me/libc.so.6", true, false), None);
        assert_eq!(wanted("/usr/lib/libz.so.1", false, false), Some(Wanted::Atomics));
    }

    #[test]
    fn what_lies_beside_a_program_of_windows_is_its_own() {
        let own = |library: &str| is_own_on_windows(library, r"C:\Work\build\server.exe");
        assert!(own(r"c:\work\build\queue.dll") && own(r"C:\work\build\plugins\Queue.dll"));
        for other in [
            r"C:\work\builds\queue.dll",
            r"C:\tools\queue.dll",
            r"C:\work\build\libstdc++-6.dll",
            r"C:\work\build\msvcp140.dll",
            r"C:\work\build\waylay_control_windows.dll",
        ] {
            assert!(!own(other), "{other}");
        }
        assert_eq!(
            [extent(true, true), extent(true, false), extent(false, true)],
            [Wanted::All, Wanted::Memory, Wanted::Atomics]
        );
    }

    #[test]
    fn windows_itself_is_left_alone() {
        let left = |path: &str| is_left_alone_on_windows(path, r"C:\Windows");
        for path in [
            r"C:\windows\System32\NTDLL.DLL",
            r"C:\WINDOWS\system32\some.dll",
            r"D:\tools\ucrtbased.dll",
            r"D:\mingw64\bin\libwinpthread-1.dll",
            r"D:\tools\waylay_control_windows.dll",
            "C:/windows/system32/some.dll",
        ] {
            assert!(left(path), "{path}");
        }
        for path in [
            r"C:\Windows.old\queue.dll",
            r"C:\work\queue.dll",
            r"C:\work\queue.exe",
            r"D:\mingw64\bin\libstdc++-6.dll",
        ] {
            assert!(!left(path), "{path}");
        }
    }
}
