//! What is late becomes a finding: two samples of all threads decide whether it is stuck, and how.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use waylay_dist::Seed;
use waylay_evidence::classify::{self, Certainty, HangKind, Observation, Role, ThreadSample};
use waylay_evidence::signature::{self, Signature as EvidenceSignature};
use waylay_evidence::{ThreadId, ThreadStack};
use waylay_page::TestPhase;

use super::draft::Draft;
use super::hang;
use super::investigation::Investigator;
use super::scene::Scene;
use crate::failure::{Kind, Signature};
use crate::host::Overdue;
use crate::report::span;

/// Time between the two samples of a hang: long enough for processor time to show, short enough to report in time.
const BETWEEN_SAMPLES: Duration = Duration::from_millis(100);

/// Whether a hang was decided at once.
pub(crate) struct Decision {
    pub(crate) certain: bool,
}

impl Investigator {
    /// Something is late. Two samples decide what it is.
    pub(crate) fn hang(
        &mut self,
        scene: &Scene<'_>,
        late: &[Overdue],
        seed: Seed,
        grace: Duration,
    ) -> (Draft, Decision) {
        let test = hang::test_of(&late[0]);
        let overdue: Vec<ThreadId> = late
            .iter()
            .map(|late| match late {
                Overdue::Iteration { worker, .. } => {
                    ThreadId(scene.layout.workers[*worker].tid.load(Ordering::Relaxed))
                }
                Overdue::Phase { tid, .. } | Overdue::Loading { tid, .. } => ThreadId(*tid),
            })
            .collect();
        let mut gaps = Vec::new();
        let progress_before = progress_of(scene, late);
        let finished_before = scene.finished_by_test(test);
        let began = Instant::now();
        let first = self.sample(scene, &mut gaps);
        std::thread::sleep(BETWEEN_SAMPLES.saturating_sub(began.elapsed()));
        let interval = began.elapsed();
        let (mut stacks, still) = self.sample_and_hold(scene, &mut gaps);
        let roles = |stacks: &[ThreadStack]| -> Vec<ThreadSample> {
            stacks.iter().map(|stack| ThreadSample::of(stack, role(scene, test, &overdue, stack))).collect()
        };
        let (before, after) = (roles(&first), roles(&stacks));
        let mut verdict = classify::classify(&Observation {
            first: &before,
            second: &after,
            interval,
            returned: late.iter().all(|late| hang::came_back(late, scene.layout)),
            iterations_elsewhere: scene.finished_by_test(test).saturating_sub(finished_before),
            watched: Duration::ZERO,
            grace,
        });
        if progress_of(scene, late) != progress_before && verdict.kind == HangKind::Livelock {
            verdict.kind = HangKind::Slow;
            verdict.reason = "the iteration says that it makes progress".to_owned();
        }
        stacks.sort_by_key(|stack| tells_less(stack, role(scene, test, &overdue, stack)));
        let kind = match verdict.kind {
            HangKind::Deadlock => Kind::Deadlock,
            HangKind::Livelock => Kind::Livelock,
            HangKind::Slow => Kind::Slow,
            HangKind::Starvation => Kind::Starvation,
        };
        let name = scene.test_name(Some(test)).unwrap_or_default();
        let involved: Vec<&ThreadStack> = stacks
            .iter()
            .filter(|stack| match kind {
                // Who holds what does not matter when threads wait for each other; who else computes does not
                // belong to a hang of one thread.
                Kind::Deadlock => role(scene, test, &overdue, stack) != Role::Bystander,
                _ => overdue.contains(&stack.id),
            })
            .collect();
        let signature = Signature::new(kind, EvidenceSignature::of_hang(kind.word(), &name, involved));
        let what = describe_late(late);
        let slot = late.iter().find_map(|late| match late {
            Overdue::Iteration { worker, .. } => Some(*worker),
            Overdue::Phase { .. } | Overdue::Loading { .. } => None,
        });
        let iteration_seed = slot.map_or(Seed::new(0), |slot| scene.seed_of_slot(slot, seed));
        let occurrence = scene.occurrence_of_slot(Some(test), slot, iteration_seed);
        let mut draft = self.draft(scene, kind, signature, what, Some(test), occurrence, stacks, gaps);
        draft.finding.reason = Some(verdict.reason);
        draft.still = still;
        (draft, Decision { certain: verdict.certainty == Certainty::Certain })
    }
}

fn role(scene: &Scene<'_>, test: usize, overdue: &[ThreadId], stack: &ThreadStack) -> Role {
    if overdue.contains(&stack.id) {
        return Role::Overdue;
    }
    let is_worker_of = |test: usize| scene.workers_of(test).contains(&stack.id);
    if is_worker_of(test) {
        return Role::SameTest;
    }
    if let Some(owner) = scene.layout.test_of_thread(stack.id.0) {
        let of_test = (owner as usize) < scene.assignment.plans.len()
            && scene.assignment.outermost(owner as usize) == scene.assignment.outermost(test);
        return if of_test { Role::SameTest } else { Role::Bystander };
    }
    let mine = scene.assignment.outermost(test);
    let others = (0..scene.assignment.plans.len()).filter(|other| scene.assignment.outermost(*other) != mine);
    let other = others.into_iter().any(is_worker_of) || scene.is_pot_worker(&stack.id);
    let plugin = &scene.assignment.plugins[scene.assignment.plans[test].plugin];
    let in_plugin = stack
        .frames
        .iter()
        .any(|frame| frame.module.as_deref().is_some_and(|module| plugin.as_os_str() == module));
    if !other && in_plugin { Role::SameTest } else { Role::Bystander }
}

/// Order of stacks in a hang: threads of the test before bystanders, and those that wait for a lock before those that
/// only wait for other threads to end; among equals, the late one first.
fn tells_less(stack: &ThreadStack, role: Role) -> (bool, bool, bool) {
    let waits_for_end = signature::waiting_call(&stack.frames)
        .is_some_and(|call| ["join", "scope", "park"].iter().any(|word| call.contains(word)));
    (role == Role::Bystander, waits_for_end, role != Role::Overdue)
}

fn progress_of(scene: &Scene<'_>, late: &[Overdue]) -> Vec<u64> {
    let progress = |late: &Overdue| match late {
        Overdue::Iteration { worker, .. } => scene.layout.workers[*worker].progress.load(Ordering::Relaxed),
        Overdue::Phase { .. } | Overdue::Loading { .. } => 0,
    };
    late.iter().map(progress).collect()
}

fn describe_late(late: &[Overdue]) -> String {
    let longest = |since: fn(&Overdue) -> Duration| late.iter().map(since).max().unwrap_or_default();
    let since = longest(|late| match late {
        Overdue::Iteration { since, .. } | Overdue::Phase { since, .. } | Overdue::Loading { since, .. } => {
            *since
        }
    });
    match late[0] {
        Overdue::Iteration { .. } if late.len() == 1 => {
            format!("TestMain has not returned for {}", span(since))
        }
        Overdue::Iteration { .. } => {
            format!("TestMain has not returned for {} on {} workers", span(since), late.len())
        }
        Overdue::Loading { .. } => {
            format!("a constructor of the plugin has not returned for {}", span(since))
        }
        Overdue::Phase { phase, .. } => {
            let call = match phase {
                TestPhase::Creating => "CreateInstance has not returned",
                TestPhase::Starting => "OnTestStart has not returned",
                TestPhase::Cancelling => "OnTestCancelled has not returned",
                TestPhase::Draining => "a worker has not left TestMain after the test was cancelled",
                TestPhase::Ending => "OnTestEnd has not returned",
                TestPhase::Destroying => "DestroyInstance has not returned",
                _ => "a phase has not ended",
            };
            format!("{call} for {}", span(since))
        }
    }
}
