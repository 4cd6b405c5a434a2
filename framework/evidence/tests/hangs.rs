//! Hung processes: what kind of hang it is, and what makes two hangs the same.

mod target;

use std::thread;
use std::time::{Duration, Instant};

use target::{Program, Target, eventually};
use waylay_evidence::classify::{Certainty, HangKind, Observation, Role, ThreadSample, Verdict, classify};
use waylay_evidence::render::{self, RenderOptions};
use waylay_evidence::signature::Signature;
use waylay_evidence::{CaptureOptions, SchedulerState, Symbolizer, ThreadStack, Wait, capture};

fn workers(target: &Target, symbolizer: &mut Symbolizer, name: &str) -> Vec<ThreadStack> {
    let snapshot = capture(target.pid(), &CaptureOptions::default()).expect("capture");
    let mut stacks = symbolizer.stacks(&snapshot);
    stacks.retain(|stack| stack.name.starts_with(name));
    stacks
}

/// Takes two samples like the driver does and asks for the verdict.
fn judge(target: &Target, iterations_elsewhere: u64) -> Verdict {
    let mut symbolizer = Symbolizer::default();
    let mut sample = || -> Vec<ThreadSample> {
        workers(target, &mut symbolizer, "worker")
            .iter()
            .map(|stack| ThreadSample::of(stack, Role::Overdue))
            .collect()
    };
    let began = Instant::now();
    let first = sample();
    thread::sleep(Duration::from_millis(100));
    let second = sample();
    let grace = Duration::from_secs(1);
    classify(&Observation {
        first: &first,
        second: &second,
        interval: began.elapsed(),
        returned: false,
        iterations_elsewhere,
        watched: Duration::ZERO,
        grace,
    })
}

/// Waits until both workers are where they hang.
fn settled(target: &Target, there: impl Fn(&ThreadStack) -> bool) {
    let mut symbolizer = Symbolizer::default();
    eventually("both workers hang", || {
        let stacks = workers(target, &mut symbolizer, "worker");
        (stacks.len() == 2 && stacks.iter().all(&there)).then_some(()).ok_or(format!("{stacks:?}"))
    });
}

#[test]
fn each_kind_of_hang_is_told_from_the_outside() {
    let program = Program::c("hangs.c", &["-O1", "-g"]);
    let is_in = |function: &'static str| {
        move |stack: &ThreadStack| {
            stack.frames.iter().any(|frame| frame.function.as_deref().is_some_and(|name| name == function))
        }
    };
    let cases = [
        ("deadlock", "crosswise", HangKind::Deadlock, true),
        ("livelock", "spin", HangKind::Livelock, false),
        ("polling", "poll_flag", HangKind::Livelock, false),
        ("slow", "sleep_long", HangKind::Slow, false),
        ("input", "read_input", HangKind::Deadlock, false),
    ];
    for (kind, function, expected, at_once) in cases {
        let target = program.start(&[kind]);
        let blocks = matches!(kind, "deadlock" | "slow" | "input");
        settled(&target, |stack| is_in(function)(stack) && (!blocks || stack.wait != Wait::No));
        // A busy machine may let a polling thread sleep through an interval.
        let verdict = eventually(kind, || {
            let verdict = judge(&target, 0);
            if verdict.kind == expected || kind != "polling" { Ok(verdict) } else { Err(verdict.reason) }
        });
        assert_eq!(verdict.kind, expected, "{kind}: {}", verdict.reason);
        assert_eq!(verdict.certainty == Certainty::Certain, at_once, "{kind}: {}", verdict.reason);
    }
    let target = program.start(&["deadlock"]);
    settled(&target, |stack| stack.wait == Wait::ThreadUntimed && is_in("crosswise")(stack));
    let verdict = judge(&target, 12);
    assert_eq!(verdict.kind, HangKind::Starvation, "{}", verdict.reason);
    let verdict = judge(&target, 0);
    assert!(verdict.reason.contains("both threads of the test wait in"), "{}", verdict.reason);
    assert!(verdict.reason.contains("mutex_lock"), "{}", verdict.reason);
}

fn deadlocked_tellers(program: &Program) -> Vec<ThreadStack> {
    let target = program.start(&[]);
    let mut symbolizer = Symbolizer::default();
    eventually("both tellers wait", || {
        let stacks = workers(&target, &mut symbolizer, "teller");
        let waits = |stack: &ThreadStack| {
            stack.wait == Wait::ThreadUntimed
                && stack
                    .frames
                    .iter()
                    .any(|frame| frame.function.as_deref().is_some_and(|name| name.contains("lock")))
        };
        (stacks.len() == 2 && stacks.iter().all(waits)).then(|| stacks.clone()).ok_or(format!("{stacks:?}"))
    })
}

#[test]
fn the_signature_of_a_rust_hang_survives_a_rebuild() {
    let builds = [
        Program::rust("locks.rs", &["-g", "-Copt-level=2"]),
        Program::rust(
            "locks.rs",
            &["-Cdebuginfo=line-tables-only", "-Copt-level=2", "--cfg=extra", "-Ccodegen-units=1"],
        ),
        Program::rust("locks.rs", &["-g", "-Copt-level=0", "--cfg=extra", "-Csymbol-mangling-version=v0"]),
    ];
    let hangs: Vec<_> = builds.iter().map(deadlocked_tellers).collect();
    let signatures: Vec<_> = hangs.iter().map(|stacks| Signature::of_hang("deadlock", "t", stacks)).collect();
    assert_eq!(signatures[0], signatures[1]);
    assert_eq!(signatures[0], signatures[2]);
    assert!(signatures[0].text.contains("mutex.rs:lock < locks.rs:transfer < "), "{}", signatures[0]);

    let text = render::stacks(&hangs[0], RenderOptions::default());
    assert!(text.contains("waits for another thread, without a timeout (futex)"), "{text}");
    let own = |line: &str| line.contains('>') && line.contains("transfer") && line.contains("locks.rs:");
    assert!(text.lines().any(own), "{text}");
    assert!(text.contains("runtime frames: "), "{text}");
}

#[test]
fn the_signature_of_a_c_hang_survives_a_rebuild_and_tells_hangs_apart() {
    let sign = |program: &Program, kind: &str| {
        let target = program.start(&[kind]);
        let mut symbolizer = Symbolizer::default();
        settled(&target, |stack| stack.state == SchedulerState::Sleeping && stack.wait != Wait::No);
        Signature::of_hang("deadlock", "t", &workers(&target, &mut symbolizer, "worker"))
    };
    let one = Program::c("hangs.c", &["-O1", "-g"]);
    let other = Program::c("hangs.c", &["-O1", "-g", "-DUNRELATED", "-falign-functions=64", "-fno-plt"]);
    assert_eq!(sign(&one, "deadlock"), sign(&other, "deadlock"));
    assert_ne!(sign(&one, "deadlock"), sign(&one, "input"));
}
