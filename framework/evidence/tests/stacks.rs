//! Stacks of real processes.

mod target;

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use target::{Program, Target, eventually};
use waylay_evidence::{
    CaptureOptions, CodeAddress, MemoryMap, ProcessId, StackEnd, Symbolizer, ThreadStack, Trust, Wait,
    capture,
};

/// A stack of the process that fulfils a condition, once there is one.
fn stack_that(pid: ProcessId, is_meant: impl Fn(&ThreadStack) -> bool) -> ThreadStack {
    let mut symbolizer = Symbolizer::default();
    eventually("the thread blocks", || {
        let snapshot = capture(pid, &CaptureOptions::default()).map_err(|error| error.to_string())?;
        let stacks = symbolizer.stacks(&snapshot);
        let found = stacks.iter().find(|stack| is_meant(stack)).cloned();
        found.ok_or_else(|| format!("{:?}", stacks.iter().map(names).collect::<Vec<_>>()))
    })
}

fn names(stack: &ThreadStack) -> Vec<&str> {
    stack.frames.iter().map(|frame| frame.function.as_deref().unwrap_or("?")).collect()
}

fn calls(stack: &ThreadStack, function: &str) -> bool {
    names(stack).iter().any(|name| name.contains(function))
}

#[test]
fn all_sixteen_stacks_with_half_of_the_threads_inside_libc() {
    let program = Program::c("sixteen.c", &["-O2", "-g"]);
    let target = program.start(&[]);
    let inside = [
        ("in_mutex", "mutex_lock", Wait::ThreadUntimed),
        ("in_cond", "cond_wait", Wait::ThreadUntimed),
        ("in_sem", "sem_wait", Wait::ThreadUntimed),
        ("in_read", "read", Wait::InputUntimed),
        ("in_sleep", "nanosleep", Wait::Sleep),
        ("in_epoll", "epoll_wait", Wait::InputUntimed),
        ("in_poll", "poll", Wait::InputUntimed),
    ];
    let mut symbolizer = Symbolizer::default();
    eventually("sixteen stacks", || {
        let snapshot =
            capture(target.pid(), &CaptureOptions::default()).map_err(|error| error.to_string())?;
        let stacks = symbolizer.stacks(&snapshot);
        if stacks.len() != 17 {
            return Err(format!("{} threads", stacks.len()));
        }
        let by_name: HashMap<_, _> = stacks.iter().map(|stack| (stack.name.as_str(), stack)).collect();
        let thread = |index: usize| {
            by_name.get(&*format!("worker-{index}")).copied().ok_or(format!("no worker {index}"))
        };
        for stack in &stacks {
            if stack.end != StackEnd::Root {
                return Err(format!("{} ends {:?} after {:?}", stack.name, stack.end, names(stack)));
            }
        }
        for (index, (own, libc, wait)) in inside.iter().enumerate() {
            let stack = thread(index)?;
            // A poll or sleep that an earlier attempt interrupted goes on under another number.
            let same_wait = stack.wait == *wait || (*own == "in_poll" && stack.wait == Wait::Sleep);
            if !(calls(stack, own) && calls(stack, libc) && calls(stack, "thread_main") && same_wait) {
                return Err(format!("{own}: {:?} {:?}", stack.wait, names(stack)));
            }
        }
        if !calls(thread(7)?, "in_malloc") {
            return Err(format!("in_malloc: {:?}", names(thread(7)?)));
        }
        for index in 0..8 {
            let stack = thread(8 + index)?;
            let expected = [format!("innermost_{index}"), format!("spin_{index}"), "thread_main".to_owned()];
            if names(stack)[..3] != expected {
                return Err(format!("spinner {index}: {:?}", names(stack)));
            }
            let innermost = &stack.frames[0];
            if !innermost.file.as_deref().is_some_and(|file| file.ends_with("sixteen.c"))
                || innermost.line.is_none()
            {
                return Err(format!("no line: {innermost:?}"));
            }
        }
        Ok(())
    });
}

/// The stack of the only thread that is at the blocking place.
fn blocked_stack(target: &Target) -> ThreadStack {
    stack_that(target.pid(), |stack| calls(stack, "pause"))
}

fn position(stack: &ThreadStack, function: &str) -> usize {
    names(stack)
        .iter()
        .position(|name| *name == function)
        .unwrap_or_else(|| panic!("{function}: {:?}", names(stack)))
}

#[test]
fn a_signal_handler_on_its_own_stack_leads_to_what_it_interrupted() {
    let program = Program::c("places.c", &["-O1", "-g"]);
    let target = program.start(&["handler"]);
    let stack = blocked_stack(&target);
    let order =
        ["block_here", "in_handler", "interrupted", "handler_thread"].map(|name| position(&stack, name));
    assert!(order.is_sorted(), "{:?}", names(&stack));
    let trampoline = position(&stack, "__restore_rt");
    assert_eq!(stack.frames[trampoline + 1].trust, Trust::Signal, "{:?}", names(&stack));
    assert_eq!(stack.end, StackEnd::Root, "{:?}", names(&stack));
}

#[test]
fn a_frame_found_through_memory_is_passed() {
    let program = Program::c("places.c", &["-O2", "-g", "-fomit-frame-pointer"]);
    let target = program.start(&["realigned"]);
    let stack = blocked_stack(&target);
    let order = ["block_here", "realigned", "before_realigned", "main"].map(|name| position(&stack, name));
    assert!(order.is_sorted(), "{:?}", names(&stack));
    assert!(stack.frames[1..].iter().all(|frame| frame.trust == Trust::Tables), "{:?}", stack.frames);
}

#[test]
fn a_stack_larger_than_the_copy_keeps_both_ends() {
    let program = Program::c("places.c", &["-O1", "-g"]);
    let target = program.start(&["deep"]);
    let stack = blocked_stack(&target);
    let gap = stack.omitted.expect("20,000 frames do not fit");
    assert!(names(&stack)[..gap.before].contains(&"block_here"));
    let outer = &names(&stack)[gap.before..];
    assert!(outer.contains(&"deeper") && outer.contains(&"main"), "{outer:?}");
    assert!(stack.frames.len() <= 256 + 8, "{}", stack.frames.len());

    let options = CaptureOptions { stack_limit: 8 << 20, ..CaptureOptions::default() };
    let snapshot = capture(target.pid(), &options).expect("capture");
    let whole = &Symbolizer::default().stacks(&snapshot)[0];
    assert_eq!(whole.end, StackEnd::Root);
    let total = whole.omitted.expect("more than 256 frames").frames + whole.frames.len();
    assert!(total > 20_000, "{total} frames");
}

#[test]
fn code_without_tables_is_followed_by_its_frame_pointers() {
    let flags =
        ["-O1", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-omit-frame-pointer"];
    let program = Program::c("places.c", &flags);
    let target = program.start(&["plain"]);
    let stack = blocked_stack(&target);
    let main = position(&stack, "main");
    assert_eq!(stack.frames[main].trust, Trust::FramePointer, "{:?}", stack.frames);
    assert!(position(&stack, "block_here") < main);
}

#[test]
fn code_without_tables_and_frame_pointers_is_guessed_and_says_so() {
    let flags =
        ["-O1", "-g", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fomit-frame-pointer"];
    let program = Program::c("places.c", &flags);
    let target = program.start(&["plain"]);
    let stack = blocked_stack(&target);
    let main = position(&stack, "main");
    assert_eq!(stack.frames[main].trust, Trust::Scan, "{:?}", stack.frames);
}

#[test]
fn a_forked_child_is_a_process_like_any_other() {
    let program = Program::c("places.c", &["-O1", "-g"]);
    let mut target = program.start(&["fork"]);
    let child = ProcessId(target.line().parse().expect("a process number"));
    let stack = stack_that(child, |stack| calls(stack, "pause"));
    let order = ["block_here", "in_child", "main"].map(|name| position(&stack, name));
    assert!(order.is_sorted());
    Command::new("kill").args(["-9", &child.to_string()]).status().expect("kill runs");
}

#[test]
fn a_stripped_program_still_has_its_whole_stack() {
    let program = Program::c("places.c", &["-O1", "-s"]);
    let target = program.start(&["plain"]);
    let stack = blocked_stack(&target);
    let file = program.path.to_str().expect("a plain path");
    let own = stack.frames.iter().filter(|frame| frame.module.as_deref() == Some(file));
    assert!(own.clone().count() >= 3, "block_here, main and _start: {:?}", stack.frames);
    assert!(own.clone().any(|frame| frame.function.is_none() && frame.offset != 0), "{:?}", stack.frames);
    assert_eq!(stack.end, StackEnd::Root);
}

#[test]
fn a_deleted_program_is_read_through_its_process() {
    let program = Program::c("places.c", &["-O1", "-g"]);
    let target = program.start(&["plain"]);
    fs::remove_file(&program.path).expect("removable");
    let stack = blocked_stack(&target);
    assert!(position(&stack, "block_here") < position(&stack, "main"));
    assert!(stack.frames[position(&stack, "main")].line.is_some(), "{:?}", stack.frames);
}

#[test]
fn a_replaced_program_is_not_confused_with_its_successor() {
    let program = Program::c("places.c", &["-O1", "-g"]);
    let target = program.start(&["plain"]);
    let successor = Program::c("churn.c", &["-O1", "-g"]);
    fs::remove_file(&program.path).expect("removable");
    fs::copy(&successor.path, &program.path).expect("copied");
    let stack = blocked_stack(&target);
    assert!(position(&stack, "block_here") < position(&stack, "main"));
}

#[test]
fn bare_addresses_are_resolved_from_a_map_saved_earlier() {
    let program = Program::c("places.c", &["-O1", "-g"]);
    let mut target = program.start(&["plain"]);
    let stack = blocked_stack(&target);
    let text = fs::read_to_string(format!("/proc/{}/maps", target.pid())).expect("the map");
    let live = MemoryMap::of(target.pid()).expect("the map");
    target.kill();
    target.wait();
    let outer = position(&stack, "block_here");
    let addresses: Vec<_> =
        stack.frames[outer..].iter().map(|frame| CodeAddress::Return(frame.address)).collect();
    let mut symbolizer = Symbolizer::default();
    for map in [live, MemoryMap::parse(&text).expect("saved text")] {
        symbolizer.prepare(&map);
        let frames = symbolizer.resolve(&map, &addresses);
        let resolved: Vec<_> =
            frames.iter().map(|frame| (&frame.function, frame.line, frame.offset)).collect();
        let expected: Vec<_> =
            stack.frames[outer..].iter().map(|frame| (&frame.function, frame.line, frame.offset)).collect();
        assert_eq!(resolved, expected);
        assert!(frames.iter().all(|frame| frame.trust == Trust::Given));
    }
    let nowhere = symbolizer.resolve(&MemoryMap::default(), &[CodeAddress::Instruction(0x1234)]);
    assert_eq!((nowhere.len(), nowhere[0].address, &nowhere[0].function), (1, 0x1234, &None));
}

#[test]
fn a_deleted_library_is_followed_without_its_file() {
    let library = Program::build("cc", "library.c", &["-O1", "-g", "-shared", "-fPIC"], "libplace.so");
    let program = Program::build("cc", "loader.c", &["-O1", "-g", "-ldl"], "program");
    let target = program.start(&[library.path.to_str().expect("a plain path")]);
    fs::remove_file(&library.path).expect("removable");
    let stack = blocked_stack(&target);
    let order = ["block_in_library", "call_back", "main"].map(|name| position(&stack, name));
    assert!(order.is_sorted(), "{:?}", names(&stack));
    assert_eq!(stack.end, StackEnd::Root);
}
