//! Signatures of made-up stacks; those of real programs are compared in `tests/`.

use super::*;
use crate::identity::ThreadId;
use crate::snapshot::{SchedulerState, Wait};
use crate::stack::{StackEnd, Trust};

fn frame(function: &str) -> Frame {
    Frame {
        function: Some(function.to_owned()),
        function_offset: None,
        module: Some("/opt/libtest.so".into()),
        offset: 0x1234,
        address: 0x7f00_0000_1234,
        file: Some("src/test.rs".into()),
        line: Some(10),
        inlined: false,
        trust: Trust::Tables,
    }
}

fn frames(functions: &[&str]) -> Vec<Frame> {
    functions.iter().map(|function| frame(function)).collect()
}

fn blocked(functions: &[&str]) -> ThreadStack {
    ThreadStack {
        id: ThreadId(1),
        name: "worker".into(),
        scheduled: None,
        crashed: false,
        state: SchedulerState::Sleeping,
        syscall: None,
        wait: Wait::ThreadUntimed,
        cpu_ns: 0,
        wakeups: 0,
        frames: frames(functions),
        omitted: None,
        end: StackEnd::Root,
    }
}

#[test]
fn the_panic_machinery_and_the_host_are_not_part_of_it() {
    let stack = frames(&[
        "__pthread_kill_implementation",
        "abort",
        "std::panicking::begin_panic_handler",
        "core::panicking::panic_fmt",
        "orders::take::h0123456789abcdef",
        "core::ops::function::FnOnce::call_once",
        "orders::test",
        "waylay_plugin::export::test_main",
        "waylay_host::worker::run",
        "main",
    ]);
    let signature = Signature::of_stack("panic", "orders", Some("slot 7 is empty"), &stack);
    assert_eq!(signature.text, "panic in orders: slot # is empty at test.rs:take < test.rs:test");
}

#[test]
fn a_release_must_not_change_a_hash() {
    let signature = Signature::of_stack("crash SIGSEGV", "orders", None, &frames(&["take", "test"]));
    assert_eq!(signature.text, "crash SIGSEGV in orders at test.rs:take < test.rs:test");
    assert_eq!(signature.hash, "b5e51ade267db48e");
}

#[test]
fn lines_offsets_and_addresses_do_not_count() {
    let stack = frames(&["take", "test"]);
    let mut moved = stack.clone();
    for frame in &mut moved {
        frame.offset += 64;
        frame.address = 0x5500_0000_0000;
        frame.line = frame.line.map(|line| line + 3);
        frame.file = Some("/elsewhere/src/test.rs".into());
        frame.module = Some("/elsewhere/libtest.so".into());
    }
    let of = |stack: &[Frame]| Signature::of_stack("crash", "t", None, stack);
    assert_eq!(of(&stack), of(&moved));
    assert_ne!(of(&stack), of(&frames(&["give", "test"])));
}

#[test]
fn which_thread_holds_which_lock_does_not_matter() {
    let (a, b) = (
        blocked(&["pthread_mutex_lock", "lock_a", "test"]),
        blocked(&["pthread_mutex_lock", "lock_b", "test"]),
    );
    let mut a_runtime = a.clone();
    a_runtime.frames[0].module = Some("/usr/lib/libc.so.6".into());
    a_runtime.frames[0].file = None;
    let one = Signature::of_hang("deadlock", "t", [&a, &b]);
    let other = Signature::of_hang("deadlock", "t", [&b, &a, &a]);
    assert_eq!(one, other);
    let named = Signature::of_hang("deadlock", "t", [&a_runtime]);
    assert_eq!(named.text, "deadlock in t [pthread_mutex_lock < test.rs:lock_a < test.rs:test]");
}

#[test]
fn a_recursion_is_one_failure_wherever_it_ends() {
    let cycle = |first: usize| -> Vec<Frame> {
        (0..300).map(|index| frame(["even", "odd"][(index + first) % 2])).collect()
    };
    let of = |stack: &[Frame]| Signature::of_stack("crash stack overflow", "t", None, stack);
    assert_eq!(of(&cycle(0)), of(&cycle(1)));
    assert!(of(&cycle(0)).text.ends_with("recursion of test.rs:even, test.rs:odd"));
}

#[test]
fn an_inlined_function_is_the_same_as_one_that_stands_alone() {
    let alone = frame("locks::Account<T>::transfer");
    let mut inlined = frame("transfer<u64>");
    inlined.inlined = true;
    let of = |frame: &Frame| Signature::of_stack("crash", "t", None, std::slice::from_ref(frame));
    assert_eq!(of(&alone), of(&inlined));
}

#[test]
fn files_that_every_folder_has_are_told_by_their_folder() {
    let table = [
        ("/home/a/src/orders/mod.rs", "orders/mod.rs"),
        (r"D:\a\src\orders\mod.rs", r"orders\mod.rs"),
        (r"D:\a\src\lib.rs", "lib.rs"),
        ("src/lib.rs", "lib.rs"),
        ("/home/a/shop/src/main.rs", "main.rs"),
        ("mod.rs", "mod.rs"),
        ("/home/a/src/orders.rs", "orders.rs"),
        ("", ""),
    ];
    for (path, tail) in table {
        assert_eq!(file_tail(path), tail);
    }
}

#[test]
fn c_functions_and_functions_without_a_file_have_their_whole_name() {
    let mut take = frame("shop::take");
    take.file = None;
    let mut serve = frame("serve");
    serve.file = Some("/home/a/serve.c".into());
    let signature = Signature::of_stack("crash", "t", None, &[take, serve]);
    assert_eq!(signature.text, "crash in t at shop::take < serve");
}

#[test]
fn nameless_code_is_told_by_its_module() {
    let mut nameless = frame("");
    nameless.function = None;
    nameless.file = None;
    nameless.module = Some("/opt/libstripped.so (deleted)".into());
    let signature = Signature::of_stack("crash", "t", None, &[nameless, frame("test")]);
    assert_eq!(signature.text, "crash in t at libstripped.so!? < test.rs:test");
    assert!(Signature::of_stack("crash", "t", None, &[]).text.ends_with("an unknown place"));
}

#[test]
fn the_call_that_waits_is_found_behind_the_control_library() {
    let mut stack =
        frames(&["call", "std::sys::futex::futex_wait", "std::sync::Mutex<T>::lock", "bank::transfer"]);
    stack[0].module = Some("/opt/libwaylay_control.so".into());
    assert_eq!(waiting_call(&stack).as_deref(), waiting_call(&stack[1..]).as_deref());
    assert!(waiting_call(&stack).is_some_and(|call| call.contains("lock")));
}
