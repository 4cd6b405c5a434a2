//! Whose code a frame is: the test's own, the language's and system's runtime, or Waylay's.
//!
//! A failure is about the test's own code. Runtime frames differ between releases and optimisation levels
//! of things nobody here wrote; Waylay's say only how the test was called.

use crate::stack::Frame;

/// Whose code a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Origin {
    /// The test or the code it tests.
    Own,
    /// libc, the language runtimes and their standard libraries.
    Runtime,
    /// The host that calls the test and the services it offers.
    Waylay,
}

/// Crates whose frames are Waylay's. Plugins shipped with it are tests like any other and not listed, but for the one
/// that only calls others.
const WAYLAY_CRATES: [&str; 13] = [
    "waylay_abi",
    "waylay_accesses",
    "waylay_runtime",
    "waylay_control",
    "waylay_control_windows",
    "waylay_dist",
    "waylay_driver",
    "waylay_host",
    "waylay_melting_pot",
    "waylay_page",
    "waylay_plugin",
    "waylay_schedule",
    "waylay_scheduler",
];

/// Sources of the same crates, for inlined functions, whose names may lack their crate, and of the headers
/// that C and C++ tests are compiled with.
const WAYLAY_SOURCES: [&str; 15] = [
    "framework/abi/src/",
    "framework/accesses/src/",
    "framework/runtime/src/",
    "framework/control/src/",
    "framework/control-windows/src/",
    "framework/dist/src/",
    "framework/driver/src/",
    "framework/host/src/",
    "framework/page/src/",
    "framework/plugin/src/",
    "framework/schedule/src/",
    "framework/scheduler/src/",
    "melting-pot/src/pot.rs",
    "include/waylay.h",
    "include/waylay.hpp",
];

/// Beginnings of file names of system libraries.
const RUNTIME_FILES: [&str; 23] = [
    "libc.so",
    "libc-2.",
    "libpthread",
    "libm.so",
    "libdl.so",
    "librt.so",
    "libgcc_s",
    "libstdc++",
    "libc++",
    "libunwind",
    "ld-linux",
    "ld-musl",
    "libtsan",
    "[vdso]",
    "ntdll.dll",
    "kernel32.dll",
    "kernelbase.dll",
    "msvcrt.dll",
    "ucrtbase",
    "vcruntime",
    "msvcp1",
    "concrt1",
    "libwinpthread",
];

/// Beginnings of names that belong to a runtime wherever they are linked.
const RUNTIME_NAMES: [&str; 18] = [
    "std::",
    "core::",
    "alloc::",
    "<std::",
    "<core::",
    "<alloc::",
    "<&",
    "__gnu_cxx::",
    "__cxxabiv1::",
    "__cxa_",
    "__rust_",
    "__rustc::",
    "_Unwind_",
    "__libc_",
    "__pthread_",
    "__GI_",
    "__lll_",
    "__assert_fail",
];

/// Whole names that belong to a runtime wherever they are linked.
const RUNTIME_FUNCTIONS: [&str; 26] = [
    "_start",
    "start_thread",
    "thread_start",
    "clone",
    "clone3",
    "__clone",
    "__clone3",
    "__restore_rt",
    "rust_begin_unwind",
    "rust_panic",
    "rust_eh_personality",
    "abort",
    "raise",
    "pthread_kill",
    "tgkill",
    "kill",
    "__stack_chk_fail",
    "__fortify_fail",
    "__assert",
    "__assert_perror_fail",
    "malloc",
    "calloc",
    "realloc",
    "free",
    "operator new",
    "operator delete",
];

/// Decides whose code a frame is.
#[must_use]
pub fn origin(frame: &Frame) -> Origin {
    let function = frame.function.as_deref().unwrap_or_default();
    let file_name = frame.module.as_deref().map(base_name).unwrap_or_default();
    // Compilers write the separators of the system they ran on.
    let source = frame.file.as_ref().map(|file| file.replace('\\', "/"));
    let waylay_source = |file: &str| WAYLAY_SOURCES.iter().any(|part| file.contains(part));
    if is_waylay(function)
        || file_name.starts_with("libwaylay_control")
        || file_name.starts_with("waylay_control_windows")
        || file_name.starts_with("waylay_control")
        || function == "main" && matches!(file_name, "waylay" | "waylay.exe")
        || source.as_deref().is_some_and(waylay_source)
    {
        return Origin::Waylay;
    }
    let by_module = is_runtime_file(file_name);
    let by_name = RUNTIME_NAMES.iter().any(|prefix| function.starts_with(prefix))
        || RUNTIME_FUNCTIONS.contains(&function)
        || implements_for_anything(function);
    let by_source = source.as_deref().is_some_and(is_standard_library);
    if by_module || by_name || by_source { Origin::Runtime } else { Origin::Own }
}

/// Whether a module is a system library, by its path. Names of Windows libraries come in capitals as well.
pub(crate) fn is_runtime_file(path: &str) -> bool {
    let file_name = base_name(path).to_lowercase();
    RUNTIME_FILES.iter().any(|prefix| file_name.starts_with(prefix))
}

fn is_waylay(function: &str) -> bool {
    let path = function.trim_start_matches(['<', '&', '*']);
    match path.split_once("::") {
        // `waylay` is both the command's crate and the C++ namespace.
        Some((first, _)) => first == "waylay" || WAYLAY_CRATES.contains(&first),
        None => function.starts_with("waylay_"),
    }
}

/// `<F as …>::call_once`: a standard implementation for any type, named after its type parameter.
fn implements_for_anything(function: &str) -> bool {
    let Some((parameter, _)) = function.strip_prefix('<').and_then(|rest| rest.split_once(" as ")) else {
        return false;
    };
    parameter.len() == 1 && parameter.chars().all(|letter| letter.is_ascii_uppercase())
}

/// Where rustc records the sources of the standard library, installed or not; and where those of C++ are.
fn is_standard_library(file: &str) -> bool {
    (file.starts_with("/rustc/") || file.contains("/rustlib/src/rust/")) && file.contains("/library/")
        || file.contains("/include/c++/")
        || file.contains("/VC/Tools/MSVC/")
}

/// The file of a path, whichever system it comes from.
#[must_use]
pub fn base_name(path: &str) -> &str {
    path.rsplit(['/', '\\']).next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::Trust;

    fn frame(function: &str, module: &str, file: &str) -> Frame {
        Frame {
            function: (!function.is_empty()).then(|| function.to_owned()),
            function_offset: None,
            module: Some(module.to_owned()),
            offset: 0,
            address: 0,
            file: (!file.is_empty()).then(|| file.to_owned()),
            line: None,
            inlined: false,
            trust: Trust::Tables,
        }
    }

    #[test]
    fn code_is_told_by_module_name_and_source() {
        let std_source = "/rustc/59807616e1fa/library/std/src/sync/mutex.rs";
        let table = [
            (frame("pthread_mutex_lock", "/usr/lib/libc.so.6", ""), Origin::Runtime),
            (frame("", "/lib64/ld-linux-x86-64.so.2", ""), Origin::Runtime),
            (frame("std::sync::Mutex<T>::lock", "/opt/libtest.so", std_source), Origin::Runtime),
            (frame("call_once<closure>", "/opt/libtest.so", std_source), Origin::Runtime),
            (frame("<F as core::ops::FnOnce<A>>::call_once", "/opt/t", ""), Origin::Runtime),
            (frame("<orders::Book as core::ops::Drop>::drop", "/opt/t", ""), Origin::Own),
            (frame("orders::take", "/opt/libtest.so", "src/orders.rs"), Origin::Own),
            (frame("main", "/opt/test", ""), Origin::Own),
            (frame("main", "/opt/waylay", ""), Origin::Waylay),
            (frame("waylay_host::worker::run", "/opt/waylay", ""), Origin::Waylay),
            (frame("waylay::TestBase::Main", "/opt/libtest.so", ""), Origin::Waylay),
            (frame("<waylay_melting_pot::pot::MeltingPot as T>::main", "/opt/libp.so", ""), Origin::Waylay),
            (frame("waylay_fail", "/opt/libtest.so", ""), Origin::Waylay),
            (frame("run<u8>", "/opt/waylay", "/home/a/framework/host/src/worker.rs"), Origin::Waylay),
            (frame("run<u8>", "/opt/libtest.so", "/home/a/plugin/src/worker.rs"), Origin::Own),
            (frame("waylay_faults::deadlock", "/opt/libwaylay_faults.so", ""), Origin::Own),
            (frame("", "/opt/stripped.so", ""), Origin::Own),
            (frame("", r"C:\windows\system32\KERNELBASE.dll", ""), Origin::Runtime),
            (frame("_CxxThrowException", r"D:\shop\VCRUNTIME140.dll", ""), Origin::Runtime),
            (frame("lock", r"D:\shop.dll", r"C:\VS\VC\Tools\MSVC\14.4\include\mutex"), Origin::Runtime),
            (frame("main", r"D:\a\waylay.exe", ""), Origin::Waylay),
            (frame("run<u8>", r"D:\a\waylay.exe", r"D:\a\framework\host\src\worker.rs"), Origin::Waylay),
            (frame("shop::take", r"D:\shop.dll", r"D:\shop\take.cpp"), Origin::Own),
        ];
        for (frame, expected) in table {
            assert_eq!(origin(&frame), expected, "{frame:?}");
        }
    }
}
