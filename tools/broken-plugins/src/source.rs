//! The C sources of plugins that are broken by what they say or do.

use crate::{Broken, write};
use std::fs;
use std::path::Path;
use std::process::Command;

/// What all sources begin with: the contract, and the parts of a good plugin.
const BEGINNING: &str = r#"
#include <stdlib.h>
#include <unistd.h>
#include "waylay.h"
static int32_t run(waylay_instance *self, waylay_context *worker) { (void)self; (void)worker; usleep(100); return WAYLAY_OK; }
static const waylay_test_info idle = {.size = sizeof idle, .name = "idle", .about = "nothing"};
static const waylay_test_info *const one[] = {&idle};
static inline waylay_instance *made(int complete) {
  waylay_instance *instance = calloc(1, sizeof *instance);
  if (instance == NULL) return NULL;
  instance->size = sizeof *instance;
  if (complete) instance->TestMain = run;
  return instance;
}
#define PLUGIN(...) \
  static const waylay_plugin_info plugin = {.size = sizeof plugin, .abi_version = WAYLAY_ABI_VERSION, .name = "broken", __VA_ARGS__}; \
  const waylay_plugin_info *WaylayPlugin(void) { return &plugin; }
#define LIFE(complete) \
  waylay_instance *CreateInstance(const waylay_create_args *args) { (void)args; return made(complete); } \
  void DestroyInstance(waylay_instance *instance) { free(instance); }
"#;

pub(crate) const GOOD: &str = "PLUGIN(.tests = one, .test_count = 1) LIFE(1)";

pub(crate) fn of(broken: Broken) -> &'static str {
    match broken {
        Broken::UnresolvedSymbol => {
            "extern int nobody_has_this(void);
             PLUGIN(.tests = one, .test_count = 1)
             waylay_instance *CreateInstance(const waylay_create_args *args) { (void)args; return made(nobody_has_this()); }
             void DestroyInstance(waylay_instance *instance) { free(instance); }"
        }
        Broken::NoSymbols => "int unrelated(void) { return one[0]->size + (made(0) == NULL); }",
        Broken::NoCreate => "PLUGIN(.tests = one, .test_count = 1) int unrelated(void) { return made(0) == NULL; }",
        Broken::FutureAbi => {
            "static const waylay_plugin_info plugin = {.size = 4096, .abi_version = 99, .name = \"broken\"};
             const waylay_plugin_info *WaylayPlugin(void) { return &plugin; }
             int unrelated(void) { return one[0]->size; }
             LIFE(1)"
        }
        Broken::ShortInfo => {
            "static const waylay_plugin_info plugin = {.size = 8, .abi_version = 1, .name = \"broken\"};
             const waylay_plugin_info *WaylayPlugin(void) { return &plugin; }
             int unrelated(void) { return one[0]->size; }
             LIFE(1)"
        }
        Broken::NullInfo => {
            "const waylay_plugin_info *WaylayPlugin(void) { return NULL; }
             int unrelated(void) { return one[0]->size; }
             LIFE(1)"
        }
        Broken::NoTests => "PLUGIN(.tests = one, .test_count = 0) LIFE(1)",
        Broken::TwiceTheName => {
            "static const waylay_test_info *const two[] = {&idle, &idle};
             int unrelated(void) { return one[0]->size; }
             PLUGIN(.tests = two, .test_count = 2) LIFE(1)"
        }
        Broken::NullName => {
            "static const waylay_test_info nameless = {.size = sizeof nameless};
             static const waylay_test_info *const tests[] = {&nameless};
             int unrelated(void) { return one[0]->size; }
             PLUGIN(.tests = tests, .test_count = 1) LIFE(1)"
        }
        Broken::BadDefault => {
            "static const waylay_param_info param = {.size = sizeof param, .name = \"batch\", .default_value = \"{ uniform = \"};
             static const waylay_param_info *const params[] = {&param};
             static const waylay_test_info drawing = {.size = sizeof drawing, .name = \"drawing\", .params = params, .param_count = 1};
             static const waylay_test_info *const tests[] = {&drawing};
             int unrelated(void) { return one[0]->size; }
             PLUGIN(.tests = tests, .test_count = 1) LIFE(1)"
        }
        Broken::CrashingConstructor => {
            "__attribute__((constructor)) static void crash(void) { int *volatile nowhere = NULL; *nowhere = 1; }
             PLUGIN(.tests = one, .test_count = 1) LIFE(1)"
        }
        Broken::ExitingConstructor => {
            "__attribute__((constructor)) static void leave(void) { exit(0); }
             PLUGIN(.tests = one, .test_count = 1) LIFE(1)"
        }
        Broken::HangingConstructor => {
            "__attribute__((constructor)) static void wait(void) { for (;;) pause(); }
             PLUGIN(.tests = one, .test_count = 1) LIFE(1)"
        }
        Broken::NoTestMain => "PLUGIN(.tests = one, .test_count = 1) LIFE(0)",
        // Made from GOOD, or from no source at all.
        Broken::Missing
        | Broken::Empty
        | Broken::NotElf
        | Broken::Truncated
        | Broken::Folder
        | Broken::WrongClass
        | Broken::WrongMachine
        | Broken::UnresolvedLibrary => GOOD,
    }
}

pub(crate) fn compile(source: &str, to: &Path, more: &[&str]) {
    let from = to.with_extension("c");
    write(&from, format!("{BEGINNING}{source}\n").as_bytes());
    let output = Command::new("cc")
        .args([
            "-std=gnu11",
            "-shared",
            "-fPIC",
            "-g",
            "-I",
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../framework/abi/include"),
        ])
        .arg(&from)
        .arg("-o")
        .arg(to)
        .args(more)
        .output()
        .unwrap_or_else(|error| panic!("cannot run cc: {error}; install gcc"));
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cc does not compile {}:\n{errors}", from.display());
}

/// Links against a library and then removes that library.
pub(crate) fn compile_against_a_ghost(to: &Path) {
    let folder = to.parent().unwrap_or(Path::new("."));
    let ghost = folder.join("libwaylay_ghost.so");
    compile("int ghost(void) { return one[0]->size + (made(0) == NULL); }", &ghost, &[]);
    let library = format!("-L{}", folder.display());
    let needs = "extern int ghost(void); int haunted(void) { return ghost(); } PLUGIN(.tests = one, .test_count = 1) LIFE(1)";
    compile(needs, to, &["-Wl,--no-as-needed", &library, "-lwaylay_ghost"]);
    fs::remove_file(&ghost).unwrap_or_else(|error| panic!("cannot remove {}: {error}", ghost.display()));
}
