//! Programs in C with a known bug of known depth, and their correct twins. `zoo.h` says what a program is; this file only
//! exports them from the dynamic library; `build.rs` says why that is needed.

use waylay_abi as abi;

unsafe extern "C" {
    fn zoo_c_plugin() -> *const abi::PluginInfo;
    fn zoo_c_create(args: *const abi::CreateArgs) -> *mut abi::Instance;
    fn zoo_c_destroy(instance: *mut abi::Instance);
}

/// Describes the plugin.
#[unsafe(no_mangle)]
#[allow(non_snake_case)]
pub extern "C" fn WaylayPlugin() -> *const abi::PluginInfo {
    // SAFETY: the function of the C side has no conditions.
    unsafe { zoo_c_plugin() }
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
    unsafe { zoo_c_create(args) }
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
    unsafe { zoo_c_destroy(instance) }
}
