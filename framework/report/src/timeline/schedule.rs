//! A timeline from a recorded schedule: who ran for how many steps, and what each did first.

use waylay_schedule::Schedule;

use super::{Doing, Failing, Span, SwitchPoint, Timeline, Unit};

/// The timeline of a schedule that ended in `what`.
pub fn timeline(title: &str, schedule: &Schedule, what: &str) -> Timeline {
    let mut timeline = Timeline::new(title, Unit::Steps);
    timeline.lanes = (0..schedule.threads()).map(|thread| format!("thread {thread}")).collect();
    let mut at = 0_u64;
    let mut before = None;
    for segment in schedule.segments() {
        let lane = segment.thread.index();
        if let Some(from) = before {
            timeline.switches.push(SwitchPoint { at, from, to: lane, forced: false });
        }
        let to = at.saturating_add(segment.steps);
        timeline.add(Span {
            lane,
            from: at,
            to,
            doing: Doing::Running,
            label: segment.first.name().to_owned(),
        });
        (at, before) = (to, Some(lane));
    }
    timeline.end = at;
    timeline.failing = Some(Failing { at, lane: before, what: what.to_owned() });
    timeline.notes.push("made from the schedule alone: who waited for what was not recorded".to_owned());
    timeline
}
