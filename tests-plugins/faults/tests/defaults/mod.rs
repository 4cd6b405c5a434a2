//! The defaults of the linked plugin's parameters, read as the host reads them.

use crate::fake_host::WaylayPlugin;
use std::ffi::CStr;
use waylay_dist::{Dist, Spec};

#[derive(serde::Deserialize)]
struct Written {
    value: Spec,
}

/// Checks that every default is one valid distribution; returns how many there are.
pub(crate) fn check() -> usize {
    let mut checked = 0;
    // SAFETY: the description of a linked plugin is as the contract says, and lives for ever.
    unsafe {
        let plugin = &*WaylayPlugin();
        for test in 0..plugin.test_count as usize {
            let test = &**plugin.tests.add(test);
            for param in 0..test.param_count as usize {
                let param = &**test.params.add(param);
                let default = CStr::from_ptr(param.default_value).to_str().unwrap();
                let written: Written = toml::from_str(&format!("value = {default}")).unwrap();
                Dist::new(&written.value).unwrap_or_else(|problems| panic!("{default}: {problems:?}"));
                checked += 1;
            }
        }
    }
    checked
}
