//! The text as a whole, on made-up stacks.

use super::*;
use crate::identity::ThreadId;
use crate::snapshot::Syscall;
use crate::stack::Omitted;

fn frame_of(function: &str, module: &str, line: Option<u32>) -> Frame {
    Frame {
        function: Some(function.into()),
        function_offset: line.is_none().then_some(0x10),
        module: Some(module.into()),
        offset: 0x1000 + function.len() as u64,
        address: 0x7f00_0000_1000,
        file: line.map(|_| "src/orders.c".into()),
        line,
        inlined: false,
        trust: Trust::Tables,
    }
}

fn thread(id: u32, name: &str, frames: Vec<Frame>) -> ThreadStack {
    ThreadStack {
        id: ThreadId(id),
        name: name.into(),
        scheduled: None,
        crashed: false,
        state: SchedulerState::Sleeping,
        syscall: Some(Syscall { number: 202, name: Some("futex".into()), arguments: [0; 6] }),
        wait: Wait::ThreadUntimed,
        cpu_ns: 0,
        wakeups: 0,
        frames,
        omitted: None,
        end: StackEnd::Root,
    }
}

#[test]
fn the_faulting_thread_first_and_equal_stacks_together() {
    let libc = "/usr/lib/libc.so.6";
    let waiting = || {
        vec![
            frame_of("__futex_wait", libc, None),
            frame_of("pthread_cond_wait", libc, None),
            frame_of("pool_worker", "/opt/test", Some(30)),
            frame_of("start_thread", libc, None),
            frame_of("clone3", libc, None),
        ]
    };
    let mut crashed = thread(
        9,
        "worker-1",
        vec![
            frame_of("take", "/opt/test", Some(12)),
            frame_of("test_main", "/opt/test", Some(40)),
            frame_of("start_thread", libc, None),
        ],
    );
    crashed.crashed = true;
    crashed.wait = Wait::No;
    let all = [thread(7, "pool-0", waiting()), thread(8, "pool-1", waiting()), crashed];
    let expected = "\
thread 9 \"worker-1\": crashed here
  >  0  take  at src/orders.c:12
  >  1  test_main  at src/orders.c:40
     2  start_thread+0x10  at libc.so.6+0x100c

2 threads: 7 \"pool-0\", 8 \"pool-1\": waits for another thread, without a timeout (futex)
       (2 runtime frames: __futex_wait+0x10, pthread_cond_wait+0x10)
  >  2  pool_worker  at src/orders.c:30
       (2 runtime frames: start_thread+0x10, clone3+0x10)
";
    assert_eq!(stacks(&all, RenderOptions::default()), expected);
    let unfolded = stacks(&all, RenderOptions { unfolded: true });
    assert_eq!(unfolded.lines().filter(|line| line.contains("clone3")).count(), 1);
    assert!(!unfolded.contains("runtime frames"));
}

#[test]
fn gaps_and_lost_ends_are_said() {
    let mut deep = thread(
        1,
        "deep",
        vec![
            frame_of("recurse", "/opt/test", Some(3)),
            frame_of("recurse", "/opt/test", Some(3)),
            frame_of("main", "/opt/test", Some(9)),
        ],
    );
    deep.omitted = Some(Omitted { before: 2, frames: 5000 });
    deep.end = StackEnd::Lost;
    let text = stacks(&[deep], RenderOptions::default());
    assert!(text.contains("  1  recurse"), "{text}");
    assert!(text.contains("… 5000 frames not shown …\n  >  2  main"), "{text}");
    assert!(text.ends_with("(the stack cannot be followed further)\n"), "{text}");
}

#[test]
fn evidence_survives_json() {
    let stack = thread(1, "t", vec![frame_of("take", "/opt/test", Some(12))]);
    let json = serde_json::to_string(&stack).expect("serialises");
    let back: ThreadStack = serde_json::from_str(&json).expect("parses");
    assert_eq!(back, stack);
}

#[test]
fn a_scheduled_thread_is_called_by_its_number_and_does_what_its_schedule_says() {
    let mut unnamed = thread(4711, "program", vec![frame_of("take", "/opt/test", Some(30))]);
    unnamed.number(1, "program");
    let mut named = thread(4712, "teller", unnamed.frames.clone());
    named.number(2, "program");
    assert_eq!((unnamed.title(), named.title()), ("thread 1".into(), "thread 2 (teller)".into()));
    let text = stacks(&[unnamed.clone(), named.clone()], RenderOptions::default());
    assert!(
        text.starts_with("2 threads: thread 1 [4711], thread 2 (teller) [4712]: waits for another"),
        "{text}"
    );
    for (stack, lock) in [(&mut unnamed, "A"), (&mut named, "B")] {
        stack.scheduled.as_mut().unwrap().doing = Some(format!("waits in mutex-lock {lock}"));
    }
    let text = stacks(&[unnamed, named], RenderOptions::default());
    assert!(text.starts_with("thread 1 [4711]: waits in mutex-lock A\n"), "{text}");
    assert!(text.contains("\nthread 2 (teller) [4712]: waits in mutex-lock B\n"), "{text}");
    let nobody = ThreadStack { id: ThreadId(0), ..thread(0, "allocated here", Vec::new()) };
    assert_eq!(nobody.title(), "allocated here");
    assert_eq!(thread(7, "pool", Vec::new()).title(), "thread 7 (pool)");
}
