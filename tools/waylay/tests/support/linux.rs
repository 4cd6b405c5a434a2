//! What the tests need of Linux: a compiler, signals, `/proc`.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use super::{Running, Workplace};

/// Lets a hang-up reach the command. Under `nohup cargo test` it is ignored, and what is ignored stays so.
pub(crate) fn forget_nohup(command: &mut Command) {
    // SAFETY: the one call that is made between fork and exec may be made there.
    unsafe {
        command.pre_exec(|| {
            libc::signal(libc::SIGHUP, libc::SIG_DFL);
            Ok(())
        })
    };
}

impl Workplace {
    /// Compiles a plugin in C with one test: see [`C_BEGINNING`].
    pub(crate) fn compile(&self, name: &str, source: &str) -> PathBuf {
        self.compile_whole(name, &format!("{C_BEGINNING}{source}\n"))
    }

    /// Compiles a plugin in C as it is.
    pub(crate) fn compile_whole(&self, name: &str, source: &str) -> PathBuf {
        let from = self.write(&format!("{name}.c"), source);
        let to = self.path().join(format!("lib{name}.so"));
        let include = concat!(env!("CARGO_MANIFEST_DIR"), "/../../framework/abi/include");
        let output = Command::new("cc")
            .args([
                "-std=gnu11",
                "-Wall",
                "-Werror",
                "-shared",
                "-fPIC",
                "-g",
                "-pthread",
                "-I",
                include,
                "-o",
            ])
            .args([&to, &from])
            .output()
            .expect("cc runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        to
    }
}

impl Running {
    pub(crate) fn signal(&self, signal: i32) {
        // SAFETY: a plain call; the child is not waited for yet, so its number is its own.
        unsafe { libc::kill(self.pid(), signal) };
    }
}

/// What a service manager does.
pub(crate) fn ask_to_end(pid: i32) {
    // SAFETY: a plain call.
    unsafe { libc::kill(pid, libc::SIGTERM) };
}

/// How the system is called in records.
pub(crate) const SYSTEM: &str = "linux";

/// The file that runs a failure again.
pub(crate) const REPLAY_SCRIPT: &str = "replay.sh";

/// The debugger that people are told to attach.
pub(crate) const DEBUGGER: &str = "gdb";

/// How much `waylay doctor` looks at.
pub(crate) const DOCTOR_CHECKS: usize = 6;

/// What `waylay doctor` speaks of.
pub(crate) const DOCTOR_WORDS: [&str; 6] =
    ["system", "memory", "ptrace", "control library", "processors", "core pattern"];

/// The file of a plugin.
pub(crate) fn file_of(plugin: &str) -> String {
    format!("lib{plugin}.so")
}

/// Processes whose parent is `driver` and that are hosts.
pub(crate) fn hosts_of(driver: i32) -> Vec<i32> {
    let threads = fs::read_dir(format!("/proc/{driver}/task")).into_iter().flatten().flatten();
    let children = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids = children
        .flat_map(|pids| pids.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>());
    pids.filter(|pid| is_host(*pid)).collect()
}

fn is_host(pid: i32) -> bool {
    let arguments = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    arguments.split(|byte| *byte == 0).nth(1) == Some(b"host")
}

/// Whether there is such a process, and it is not only waiting to be waited for.
pub(crate) fn is_alive(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with(['Z', 'X']))
}

pub(crate) fn kill(pid: i32) {
    // SAFETY: a plain call.
    unsafe { libc::kill(pid, libc::SIGKILL) };
}

/// What plugins of [`Workplace::compile`] begin with: one test, `probe`, that logs its life. The source defines
/// `static int32_t iterate(probe *self, waylay_context *worker)`.
pub(crate) const C_BEGINNING: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include "waylay.h"
typedef struct probe { waylay_instance instance; const waylay_services *services; waylay_context *context; } probe;
static int32_t iterate(probe *self, waylay_context *worker);
static void say(probe *self, const char *text) { self->services->log(self->context, WAYLAY_LOG_INFO, text, strlen(text)); }
static int32_t on_start(waylay_instance *instance);
static int32_t on_main(waylay_instance *instance, waylay_context *worker) { return iterate((probe *)instance, worker); }
static void on_cancelled(waylay_instance *instance);
static void on_end(waylay_instance *instance);
static const waylay_test_info info = {.size = sizeof info, .name = "probe", .about = "a probe"};
static const waylay_test_info *const infos[] = {&info};
static const waylay_plugin_info plugin = {.size = sizeof plugin, .abi_version = WAYLAY_ABI_VERSION, .name = "probe", .tests = infos, .test_count = 1};
const waylay_plugin_info *WaylayPlugin(void) { return &plugin; }
waylay_instance *CreateInstance(const waylay_create_args *args) {
  probe *made = calloc(1, sizeof *made);
  made->instance.size = sizeof made->instance;
  made->instance.OnTestStart = on_start;
  made->instance.TestMain = on_main;
  made->instance.OnTestCancelled = on_cancelled;
  made->instance.OnTestEnd = on_end;
  made->services = args->services;
  made->context = args->context;
  return &made->instance;
}
void DestroyInstance(waylay_instance *instance) { free(instance); }
static int32_t on_start(waylay_instance *instance) { probe *self = (probe *)instance; say(self, "started"); return WAYLAY_OK; }
static void on_cancelled(waylay_instance *instance) { say((probe *)instance, "cancelled"); }
static void on_end(waylay_instance *instance) { say((probe *)instance, "ended"); }
"#;
