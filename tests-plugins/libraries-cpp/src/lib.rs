//! Healthy tests of the C++ standard library's concurrency, and hooks for a melting pot, in C++.
//!
//! | test | would notice |
//! |---|---|
//! | `futures` | a value or an exception that is lost, or reaches the wrong waiter |
//! | `shared-mutex` | a writer that is not alone, or a wake-up that is lost |
//!
//! All of it is in `libraries.cpp`. This file only exports it from the dynamic library; `build.rs` says why that is
//! needed.

use waylay_abi as abi;

unsafe extern "C" {
    fn libraries_cpp_plugin() -> *const abi::PluginInfo;
    fn libraries_cpp_create(args: *const abi::CreateArgs) -> *mut abi::Instance;
    fn libraries_cpp_destroy(instance: *mut abi::Instance);
}

/// Describes the plugin.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn WaylayPlugin() -> *const abi::PluginInfo {
    // SAFETY: the function of the C++ side has no conditions.
    unsafe { libraries_cpp_plugin() }
}

/// Makes an instance.
///
/// # Safety
///
/// As [`abi::CreateEntry`]: `args` is what the contract says.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn CreateInstance(args: *const abi::CreateArgs) -> *mut abi::Instance {
    // SAFETY: passed on as it came.
    unsafe { libraries_cpp_create(args) }
}

/// Destroys an instance.
///
/// # Safety
///
/// As [`abi::DestroyEntry`]: made by [`CreateInstance`], and used no more.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub unsafe extern "C" fn DestroyInstance(instance: *mut abi::Instance) {
    // SAFETY: passed on as it came.
    unsafe { libraries_cpp_destroy(instance) }
}
