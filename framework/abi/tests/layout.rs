//! The headers say the same as the Rust types: a probe program, made here from the Rust side, prints every constant,
//! size and offset as each compiler sees them.

mod compilers;

use compilers::{Language, installed};
use std::fmt::Write as _;
use std::mem::offset_of;
use std::process::Command;
use waylay_abi as abi;

/// What is compared: how C spells it, and its value in Rust.
struct Fact {
    expression: String,
    value: u64,
}

/// Size and offsets of one struct. The pattern without `..` stops compiling when a field is missing in the list.
macro_rules! layout {
    ($facts:ident, $rust:ident as $c:literal { $($field:ident as $c_field:ident),* $(,)? }) => {
        const _: fn(abi::$rust) = |all| { let abi::$rust { $($field: _),* } = all; };
        $facts.push(Fact { expression: format!("sizeof({})", $c), value: size_of::<abi::$rust>() as u64 });
        $($facts.push(Fact {
            expression: format!("offsetof({}, {})", $c, stringify!($c_field)),
            value: offset_of!(abi::$rust, $field) as u64,
        });)*
    };
    ($facts:ident, $rust:ident as $c:literal { $($field:ident),* $(,)? }) => {
        layout!($facts, $rust as $c { $($field as $field),* });
    };
}

macro_rules! constants {
    ($($rust:ident as $c:ident),* $(,)?) => {
        vec![$(Fact { expression: stringify!($c).to_owned(), value: abi::$rust as u64 }),*]
    };
}

fn facts() -> Vec<Fact> {
    let mut facts = constants!(
        ABI_VERSION as WAYLAY_ABI_VERSION,
        STATUS_OK as WAYLAY_OK,
        STATUS_FAILED as WAYLAY_FAILED,
        STATUS_DONE as WAYLAY_DONE,
        FAILURE_ASSERT as WAYLAY_FAILURE_ASSERT,
        FAILURE_PANIC as WAYLAY_FAILURE_PANIC,
        FAILURE_EXCEPTION as WAYLAY_FAILURE_EXCEPTION,
        LOG_DEBUG as WAYLAY_LOG_DEBUG,
        LOG_INFO as WAYLAY_LOG_INFO,
        LOG_WARN as WAYLAY_LOG_WARN,
        TEST_COMBINES as WAYLAY_TEST_COMBINES,
        TURN_REPEAT as WAYLAY_TURN_REPEAT,
        CONTAINED_UNLOADED as WAYLAY_CONTAINED_UNLOADED,
        CONTAINED_READY as WAYLAY_CONTAINED_READY,
        CONTAINED_RETIRED as WAYLAY_CONTAINED_RETIRED,
    );
    layout!(facts, ParamInfo as "waylay_param_info" { size, flags, name, default_value, about });
    layout!(facts, TestInfo as "waylay_test_info" {
        size, flags, name, about, params, takes, param_count, take_count,
    });
    layout!(facts, KindInfo as "waylay_kind_info" { size, flags, name, about, create, destroy });
    layout!(facts, PluginInfo as "waylay_plugin_info" {
        size, abi_version, name, tests, kinds, test_count, kind_count, hooks, hook_count, reserved,
    });
    layout!(facts, CreateArgs as "waylay_create_args" { size, abi_version, test, services, context });
    layout!(facts, Failure as "waylay_failure" { size, kind, message, message_len, frames, frame_count });
    layout!(facts, Instance as "waylay_instance" {
        size as size, flags as flags, on_test_start as OnTestStart, test_main as TestMain,
        on_test_cancelled as OnTestCancelled, on_test_end as OnTestEnd, state as state,
    });
    layout!(facts, Services as "waylay_services" {
        size, abi_version, fail, log, cancelled, seed, distribution, draw_int, draw_float, draw_nanos, acquire,
        release, progress, keep, combine,
    });
    layout!(facts, Combine as "waylay_combine" {
        size, reserved, container, contained, load, run, waiting, ask, cancel, unload,
    });
    layout!(facts, ContainerInfo as "waylay_container_info" { size, tests, workers, worker, settings });
    layout!(facts, ContainedInfo as "waylay_contained_info" {
        size, state, name, share, average_nanos, given_nanos,
    });
    layout!(facts, Turn as "waylay_turn" { size, test, times, limit_nanos, flags, reserved, iteration });
    layout!(facts, Ran as "waylay_ran" { size, state, times, nanos, failures });
    layout!(facts, HooksInfo as "waylay_hooks_info" {
        size, flags, name, about, create, destroy, on_load, on_unload, on_start, on_stop,
    });
    facts
}

/// A program that prints one value a line.
fn probe(facts: &[Fact], header: &str) -> String {
    let mut source = format!("#include \"{header}\"\n#include <stdio.h>\nint main(void) {{\n");
    for Fact { expression, .. } in facts {
        writeln!(source, "  printf(\"%llu\\n\", (unsigned long long){expression});").unwrap();
    }
    source.push_str("  return 0;\n}\n");
    source
}

fn compare(language: Language, header: &str) {
    let facts = facts();
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join(format!("probe.{}", language.extension()));
    std::fs::write(&source, probe(&facts, header)).unwrap();
    for compiler in installed(language) {
        let program = folder.path().join("probe");
        compiler.compile(language, &source, &program, &[]);
        let output = Command::new(&program).output().unwrap();
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let values: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
        assert_eq!(values.len(), facts.len());
        for (fact, value) in facts.iter().zip(values) {
            assert_eq!(value, fact.value, "{} by {compiler} with {header}", fact.expression);
        }
    }
}

#[test]
fn c_agrees() {
    compare(Language::C, "waylay.h");
}

#[test]
fn cpp_agrees() {
    compare(Language::Cpp, "waylay.h");
    compare(Language::Cpp, "waylay.hpp");
}

/// The header must be usable from several files of one plugin.
#[test]
fn two_files_of_one_program_may_include_the_headers() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("main.cpp");
    let other = folder.path().join("other.cpp");
    std::fs::write(&main, "#include \"waylay.hpp\"\nint other();\nint main() { return other(); }\n").unwrap();
    std::fs::write(&other, "#include \"waylay.hpp\"\nint other() { return 0; }\n").unwrap();
    for compiler in installed(Language::Cpp) {
        compiler.compile(Language::Cpp, &main, &folder.path().join("both"), &[other.to_str().unwrap()]);
    }
}

#[test]
fn the_symbols_are_those_of_the_header() {
    let header = std::fs::read_to_string(compilers::include_folder().join("waylay.h")).unwrap();
    for (symbol, parameters) in [
        (abi::PLUGIN_SYMBOL, "(void);"),
        (abi::CREATE_SYMBOL, "(const waylay_create_args *args);"),
        (abi::DESTROY_SYMBOL, "(waylay_instance *instance);"),
    ] {
        assert!(header.contains(&format!("{symbol}{parameters}")), "{symbol} is not declared");
    }
}
