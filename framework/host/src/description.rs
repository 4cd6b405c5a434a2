//! What is inside a plugin, as plain data that outlives it.

use std::ffi::{CStr, c_char};

use serde::{Deserialize, Serialize};
use waylay_abi::{HooksInfo, KindInfo, ParamInfo, PluginInfo, TEST_COMBINES, TestInfo};

/// A plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PluginDescription {
    /// The plugin's own name.
    pub name: String,
    /// Its tests.
    pub tests: Vec<TestDescription>,
    /// Kinds of shared objects that it can make.
    pub kinds: Vec<KindDescription>,
    /// Hooks for combiners.
    pub hooks: Vec<HooksDescription>,
}

/// A test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestDescription {
    /// Its name.
    pub name: String,
    /// What bug it would notice.
    pub about: String,
    /// What it draws from.
    pub params: Vec<ParamDescription>,
    /// Shared kinds that it can take.
    pub takes: Vec<String>,
    /// Whether it runs other tests.
    pub combines: bool,
}

/// A distribution that a test draws from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ParamDescription {
    /// Its name.
    pub name: String,
    /// Default as a TOML value.
    pub default: Option<String>,
    /// For people.
    pub about: String,
}

/// A kind of shared object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KindDescription {
    /// Its name.
    pub name: String,
    /// For people.
    pub about: String,
}

/// Hooks for combiners.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HooksDescription {
    /// Their name.
    pub name: String,
    /// For people.
    pub about: String,
}

/// Describes a plugin whose info was checked by the loader.
pub fn describe(info: &PluginInfo) -> PluginDescription {
    PluginDescription {
        name: text(info.name),
        tests: list(info.tests, info.test_count).map(describe_test).collect(),
        kinds: list(info.kinds, info.kind_count).map(describe_kind).collect(),
        hooks: hooks(info)
            .map(|hooks| HooksDescription { name: text(hooks.name), about: text(hooks.about) })
            .collect(),
    }
}

fn describe_test(test: &TestInfo) -> TestDescription {
    TestDescription {
        name: text(test.name),
        about: text(test.about),
        params: list(test.params, test.param_count).map(describe_param).collect(),
        takes: pointers(test.takes, test.take_count).map(text).collect(),
        combines: test.flags & TEST_COMBINES != 0,
    }
}

fn describe_param(param: &ParamInfo) -> ParamDescription {
    ParamDescription {
        name: text(param.name),
        default: (!param.default_value.is_null()).then(|| text(param.default_value)),
        about: text(param.about),
    }
}

fn describe_kind(kind: &KindInfo) -> KindDescription {
    KindDescription { name: text(kind.name), about: text(kind.about) }
}

/// The hooks of a plugin. One that was built before there were any declares a smaller size.
pub(crate) fn hooks(info: &PluginInfo) -> impl Iterator<Item = &'static HooksInfo> {
    let there = info.size as usize >= size_of::<PluginInfo>();
    let (entries, count) = if there { (info.hooks, info.hook_count) } else { (std::ptr::null(), 0) };
    list(entries, count).filter(|hooks| hooks.size as usize >= size_of::<HooksInfo>())
}

/// The entries of an array of pointers to structs.
pub(crate) fn list<T: 'static>(entries: *const *const T, count: u32) -> impl Iterator<Item = &'static T> {
    // SAFETY: the contract says that non-null entries point to statics of the plugin, which is never unloaded.
    pointers(entries, count).filter_map(|entry| unsafe { entry.as_ref() })
}

fn pointers<T: Copy + 'static>(entries: *const T, count: u32) -> impl Iterator<Item = T> {
    let count = if entries.is_null() { 0 } else { count as usize };
    // SAFETY: the contract says that a non-null array has `count` entries and is never changed.
    (0..count).map(move |index| unsafe { *entries.add(index) })
}

/// A C text, with anything that is not UTF-8 replaced; null is empty.
pub(crate) fn text(from: *const c_char) -> String {
    if from.is_null() {
        return String::new();
    }
    // SAFETY: the contract says that non-null texts are NUL-terminated statics.
    unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned()
}
