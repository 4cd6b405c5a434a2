//! The plugin's description as the host reads it, made once from the constants of [`Test`] and [`Kind`].

use crate::boundary;
use crate::calls::Calls;
use crate::hooks::HooksEntry;
use crate::panic_site;
use crate::shared::Kind;
use crate::test::{Param, Test};
use std::ffi::{CString, c_char, c_void};
use std::ptr;
use waylay_abi as abi;

type Create = fn(Calls, *mut abi::Context) -> *mut abi::Instance;

/// The description of one test.
pub struct TestEntry {
    name: &'static str,
    about: &'static str,
    params: &'static [Param],
    takes: &'static [&'static str],
    combines: bool,
    create: Create,
}

impl TestEntry {
    /// The description of `T`.
    pub const fn of<T: Test>() -> Self {
        Self {
            name: T::NAME,
            about: T::ABOUT,
            params: T::PARAMS,
            takes: T::TAKES,
            combines: T::COMBINES,
            create: boundary::create::<T>,
        }
    }
}

/// The description of one shared kind.
pub struct KindEntry {
    name: &'static str,
    about: &'static str,
    create: unsafe extern "C" fn() -> *mut c_void,
    destroy: unsafe extern "C" fn(*mut c_void),
}

impl KindEntry {
    /// The description of `K`.
    pub const fn of<K: Kind>() -> Self {
        Self { name: K::KIND, about: K::ABOUT, create: create_shared::<K>, destroy: destroy_shared::<K> }
    }
}

extern "C" fn create_shared<K: Kind>() -> *mut c_void {
    panic_site::install();
    match panic_site::guard(K::create).flatten() {
        Ok(object) => Box::into_raw(Box::new(object)).cast(),
        Err(failed) => {
            // No context comes with this call; the host's log has its standard error.
            eprintln!("cannot make a shared {}: {}", K::KIND, failed.message());
            ptr::null_mut()
        }
    }
}

/// # Safety
///
/// `object` came from [`create_shared`] of the same `K` and is used no more.
unsafe extern "C" fn destroy_shared<K: Kind>(object: *mut c_void) {
    let dropped = panic_site::guard(|| {
        if !object.is_null() {
            // SAFETY: made by `Box::into_raw` in `create_shared`, and the caller gives it up.
            drop(unsafe { Box::from_raw(object.cast::<K>()) });
        }
    });
    if let Err(failed) = dropped {
        eprintln!("cannot drop a shared {}: {}", K::KIND, failed.message());
    }
}

/// The whole plugin: what `WaylayPlugin` returns, and how to find the constructor of a test.
///
/// Everything it points to is leaked: a plugin is described once and stays.
pub struct Table {
    info: abi::Static<abi::PluginInfo>,
    creators: Vec<(&'static str, Create)>,
}

// SAFETY: the pointers in `info` refer to leaked memory that nobody writes.
unsafe impl Send for Table {}

/// A pointer to a plugin's description, for `WaylayPlugin` to return.
pub type Described = *const abi::PluginInfo;

impl Table {
    /// Describes a plugin.
    pub fn new(name: &str, tests: Vec<TestEntry>, kinds: Vec<KindEntry>, hooks: Vec<HooksEntry>) -> Self {
        let creators = tests.iter().map(|test| (test.name, test.create)).collect();
        let (test_count, kind_count) = (tests.len() as u32, kinds.len() as u32);
        let info = abi::PluginInfo {
            size: size_of::<abi::PluginInfo>() as u32,
            abi_version: abi::ABI_VERSION,
            name: text(name),
            tests: list(tests.iter().map(|test| keep(describe_test(test)))),
            kinds: list(kinds.iter().map(|kind| keep(describe_kind(kind)))),
            test_count,
            kind_count,
            hooks: list(hooks.iter().map(|hooks| keep(hooks.describe(text)))),
            hook_count: hooks.len() as u32,
            reserved: 0,
        };
        Self { info: abi::Static(info), creators }
    }

    /// What `WaylayPlugin` returns.
    pub fn info(&self) -> Described {
        &raw const self.info.0
    }

    pub(crate) fn find(&self, name: &str) -> Option<Create> {
        self.creators.iter().find(|(known, _)| *known == name).map(|(_, create)| *create)
    }
}

fn describe_test(test: &TestEntry) -> abi::TestInfo {
    abi::TestInfo {
        size: size_of::<abi::TestInfo>() as u32,
        flags: if test.combines { abi::TEST_COMBINES } else { 0 },
        name: text(test.name),
        about: text(test.about),
        params: list(test.params.iter().map(|param| keep(describe_param(param)))),
        takes: list(test.takes.iter().map(|kind| text(kind))),
        param_count: test.params.len() as u32,
        take_count: test.takes.len() as u32,
    }
}

fn describe_param(param: &Param) -> abi::ParamInfo {
    abi::ParamInfo {
        size: size_of::<abi::ParamInfo>() as u32,
        flags: 0,
        name: text(param.name),
        default_value: param.default.map_or(ptr::null(), text),
        about: param.about.map_or(ptr::null(), text),
    }
}

fn describe_kind(kind: &KindEntry) -> abi::KindInfo {
    abi::KindInfo {
        size: size_of::<abi::KindInfo>() as u32,
        flags: 0,
        name: text(kind.name),
        about: text(kind.about),
        create: Some(kind.create),
        destroy: Some(kind.destroy),
    }
}

fn keep<T>(made: T) -> *const T {
    Box::leak(Box::new(made))
}

fn list<T>(items: impl Iterator<Item = T>) -> *const T {
    Box::leak(items.collect::<Box<[T]>>()).as_ptr()
}

/// Names are checked by [`check_names`] when the plugin is compiled; other texts end at the first NUL.
fn text(from: &str) -> *const c_char {
    let until = from.find('\0').unwrap_or(from.len());
    CString::new(&from[..until]).unwrap_or_default().into_raw()
}

/// Stops the compilation of a plugin whose names are empty, hold a NUL, or come twice.
pub const fn check_names(names: &[&str]) {
    let mut at = 0;
    while at < names.len() {
        let name = names[at].as_bytes();
        assert!(!name.is_empty(), "a name in export! is empty");
        let mut byte = 0;
        while byte < name.len() {
            assert!(name[byte] != 0, "a name in export! holds a NUL");
            byte += 1;
        }
        let mut other = 0;
        while other < at {
            assert!(!same(name, names[other].as_bytes()), "a name comes twice in export!");
            other += 1;
        }
        at += 1;
    }
}

const fn same(left: &[u8], right: &[u8]) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let mut at = 0;
    while at < left.len() {
        if left[at] != right[at] {
            return false;
        }
        at += 1;
    }
    true
}
