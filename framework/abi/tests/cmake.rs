//! A C and a C++ plugin, built through `find_package(Waylay)`, load and describe themselves.

mod compilers;

use compilers::is_installed;
use std::ffi::CStr;
use std::path::Path;
use std::process::Command;
use waylay_abi as abi;

const LISTS: &str = r#"
cmake_minimum_required(VERSION 3.16)
project(two C CXX)
find_package(Waylay REQUIRED)
waylay_add_plugin(inc inc.c)
waylay_add_plugin(incpp inc.cpp)
"#;

const C_PLUGIN: &str = r#"
#include <stdlib.h>
#include "waylay.h"
static int32_t run(waylay_instance *self, waylay_context *worker) { (void)self; (void)worker; return WAYLAY_OK; }
static const waylay_test_info test = {.size = sizeof test, .name = "idle", .about = "nothing"};
static const waylay_test_info *const tests[] = {&test};
static const waylay_plugin_info plugin = {
    .size = sizeof plugin, .abi_version = WAYLAY_ABI_VERSION, .name = "inc", .tests = tests, .test_count = 1};
const waylay_plugin_info *WaylayPlugin(void) { return &plugin; }
waylay_instance *CreateInstance(const waylay_create_args *args) {
  waylay_instance *made = calloc(1, sizeof *made);
  (void)args;
  if (made != NULL) { made->size = sizeof *made; made->TestMain = run; }
  return made;
}
void DestroyInstance(waylay_instance *instance) { free(instance); }
"#;

const CPP_PLUGIN: &str = r#"
#include "waylay.hpp"
struct Idle : waylay::TestBase { void TestMain(waylay::Worker&) override {} };
WAYLAY_PLUGIN("incpp", waylay::test<Idle>("idle", "nothing"))
"#;

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}:\n{text}");
}

fn plugin_name(file: &Path) -> String {
    // SAFETY: a plugin without initialisers of its own; its description is as the contract says while it is loaded.
    unsafe {
        let library = libloading::Library::new(file).unwrap();
        let describe = library.get::<abi::PluginEntry>(abi::PLUGIN_SYMBOL).unwrap();
        library.get::<abi::CreateEntry>(abi::CREATE_SYMBOL).unwrap();
        library.get::<abi::DestroyEntry>(abi::DESTROY_SYMBOL).unwrap();
        let info = &*describe();
        assert_eq!((info.abi_version, info.test_count), (abi::ABI_VERSION, 1));
        CStr::from_ptr(info.name).to_str().unwrap().to_owned()
    }
}

#[test]
fn find_package_builds_loadable_plugins() {
    if !is_installed("cmake") {
        return;
    }
    let root = env!("CARGO_MANIFEST_DIR");
    for found_by in [format!("-DCMAKE_PREFIX_PATH={root}"), format!("-DWaylay_DIR={root}/cmake")] {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in [("CMakeLists.txt", LISTS), ("inc.c", C_PLUGIN), ("inc.cpp", CPP_PLUGIN)] {
            std::fs::write(folder.path().join(name), text).unwrap();
        }
        let build = folder.path().join("build");
        run(Command::new("cmake").arg("-S").arg(folder.path()).arg("-B").arg(&build).arg(&found_by));
        run(Command::new("cmake").arg("--build").arg(&build));
        assert_eq!(plugin_name(&build.join("libinc.so")), "inc");
        assert_eq!(plugin_name(&build.join("libincpp.so")), "incpp");
    }
}
