//! Who is there: the target's threads, their names, and which of them may be suspended.
//!
//! Looking costs time (a folder to list, a file per name), so the census is taken as often as it stays below a small
//! share of the time, and less often while nobody comes or goes. Threads rename themselves, mostly soon after they
//! start, which is why a young name is read again when its thread is twice as old, and an old one rarely.

use std::time::{Duration, Instant};

use crate::identity::{Ordinal, ThreadId};

/// A census that took t is followed by at least this many t without one: at most 2 % of the time.
const PAUSE: u32 = 50;
/// The pause after many a census that found nothing new: each such doubles it, up to this many t, but not beyond
/// `QUIET` (a census that was itself kept waiting for the processor took long).
const LONGEST_PAUSE: u32 = 400;
const QUIET: Duration = Duration::from_millis(50);
/// On a processor that the target leaves to us only now and then, our own time is what is scarce: a census that took t of it
/// is followed by at least this many t of other work, or by `QUIET`.
const WORK: u32 = 25;
/// The longest distance at which a name is read again.
const SETTLED: Duration = Duration::from_secs(1);
/// How long a thread that could not be stopped is left alone.
const LEAVE_ALONE: Duration = Duration::from_secs(1);

/// A thread of the target.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub(crate) thread: ThreadId,
    pub(crate) ordinal: Ordinal,
    pub(crate) name: String,
    pub(crate) tally: Tally,
    may_suspend: bool,
    first_seen: Instant,
    named_at: Instant,
    left_alone_until: Option<Instant>,
}

/// What was done to a thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) suspensions: u64,
    pub(crate) suspended: Duration,
}

/// The threads of the target, by id.
#[derive(Debug, Default)]
pub(crate) struct Census {
    members: Vec<Member>,
    next_ordinal: u32,
    due: Option<Due>,
    /// In times of what a census takes; 0 before the first.
    pause: u32,
}

/// When to look again.
#[derive(Debug, Clone, Copy)]
struct Due {
    at: Instant,
    /// Of our own time on a processor; from `quiet_until` on it does not count.
    work: Duration,
    quiet_until: Instant,
}

/// A moment, and our own time on a processor by then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) at: Instant,
    pub(crate) work: Duration,
}

/// A change of the census.
pub(crate) enum Change<'a> {
    /// A thread was seen for the first time.
    Joined(&'a Member),
    /// A thread is gone.
    Left(&'a Member),
}

impl Census {
    /// Whether it is time to look again; `work` tells our own time on a processor.
    pub(crate) fn is_due(&self, now: Instant, work: impl FnOnce() -> Duration) -> bool {
        self.due.is_none_or(|due| now >= due.at && (now >= due.quiet_until || work() >= due.work))
    }

    /// Says that looking took from `began` to `now`.
    pub(crate) fn taken(&mut self, began: Moment, now: Moment) {
        let (took, worked) = (now.at - began.at, now.work.saturating_sub(began.work));
        self.due = Some(Due {
            at: now.at + (took * self.pause).min(QUIET).max(took * PAUSE),
            work: now.work + worked * WORK,
            quiet_until: now.at + QUIET,
        });
    }

    /// Takes over the list of threads; `name_of` is asked for names that are new or old enough.
    pub(crate) fn update(
        &mut self,
        now: Instant,
        mut threads: Vec<ThreadId>,
        may_suspend: impl Fn(ThreadId, &str) -> bool,
        mut name_of: impl FnMut(ThreadId) -> Option<String>,
        mut change: impl FnMut(Change<'_>),
    ) {
        threads.sort_unstable();
        let mut changed = false;
        self.members.retain(|member| {
            let stays = threads.binary_search(&member.thread).is_ok();
            if !stays {
                changed = true;
                change(Change::Left(member));
            }
            stays
        });
        let known = self.members.len();
        for thread in threads {
            if self.members[..known].binary_search_by_key(&thread, |member| member.thread).is_ok() {
                continue;
            }
            // A thread that ended between the list and its name was never there.
            let Some(name) = name_of(thread) else { continue };
            let member = Member {
                thread,
                ordinal: Ordinal(self.next_ordinal),
                may_suspend: may_suspend(thread, &name),
                name,
                tally: Tally::default(),
                first_seen: now,
                named_at: now,
                left_alone_until: None,
            };
            self.next_ordinal = self.next_ordinal.wrapping_add(1);
            changed = true;
            change(Change::Joined(&member));
            self.members.push(member);
        }
        for member in &mut self.members[..known] {
            let name_age = now.saturating_duration_since(member.named_at);
            let age_when_named = member.named_at.saturating_duration_since(member.first_seen);
            if name_age >= age_when_named.min(SETTLED)
                && let Some(name) = name_of(member.thread)
            {
                member.named_at = now;
                if name != member.name {
                    changed = true;
                    member.may_suspend = may_suspend(member.thread, &name);
                    member.name = name;
                }
            }
        }
        self.pause = if changed { PAUSE } else { self.pause.saturating_mul(2).clamp(PAUSE, LONGEST_PAUSE) };
        self.members.sort_unstable_by_key(|member| member.thread);
    }

    /// The threads that may be suspended now, in order of their ids.
    pub(crate) fn eligible(&self, now: Instant) -> impl Iterator<Item = &Member> {
        self.members.iter().filter(move |member| {
            member.may_suspend && member.left_alone_until.is_none_or(|until| now >= until)
        })
    }

    /// All threads that are there.
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    pub(crate) fn member_mut(&mut self, thread: ThreadId) -> Option<&mut Member> {
        let index = self.members.binary_search_by_key(&thread, |member| member.thread).ok()?;
        Some(&mut self.members[index])
    }
}

impl Member {
    /// Whether it is one of those to choose from.
    pub(crate) fn may_suspend(&self) -> bool {
        self.may_suspend
    }

    /// Leaves a thread that could not be stopped alone for a while.
    pub(crate) fn leave_alone(&mut self, now: Instant) {
        self.left_alone_until = Some(now + LEAVE_ALONE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;

    struct Fixture {
        census: Census,
        settings: Settings,
        start: Instant,
    }

    impl Fixture {
        fn new(settings: &str) -> Fixture {
            let settings = Settings::from_toml(settings).expect("valid");
            Fixture { census: Census::default(), settings, start: Instant::now() }
        }

        /// Returns (joined ordinals, left ordinals, names read).
        fn update(&mut self, at_ms: u64, threads: &[(u32, &str)]) -> (Vec<u32>, Vec<u32>, usize) {
            let (mut joined, mut left, mut read) = (Vec::new(), Vec::new(), 0);
            let name_of = |thread: ThreadId| {
                read += 1;
                threads.iter().find(|(id, _)| *id == thread.0).map(|(_, name)| (*name).to_owned())
            };
            let ids = threads.iter().map(|(id, _)| ThreadId(*id)).collect();
            let now = self.start + Duration::from_millis(at_ms);
            let settings = &self.settings;
            let may_suspend = |_, name: &str| settings.may_suspend(name);
            self.census.update(now, ids, may_suspend, name_of, |change| match change {
                Change::Joined(member) => joined.push(member.ordinal.0),
                Change::Left(member) => left.push(member.ordinal.0),
            });
            (joined, left, read)
        }

        fn eligible(&self, at_ms: u64) -> Vec<u32> {
            let now = self.start + Duration::from_millis(at_ms);
            self.census.eligible(now).map(|member| member.thread.0).collect()
        }
    }

    #[test]
    fn threads_come_and_go_and_keep_their_ordinals() {
        let mut fixture = Fixture::new("");
        assert_eq!(fixture.update(0, &[(12, "b"), (10, "a")]).0, [0, 1]);
        assert_eq!(fixture.update(1, &[(10, "a"), (12, "b"), (11, "c")]), (vec![2], vec![], 3));
        assert_eq!(fixture.eligible(1), [10, 11, 12]);
        let (joined, left, _) = fixture.update(2, &[(11, "c")]);
        assert_eq!((joined, left), (vec![], vec![0, 1]));
        assert_eq!(fixture.census.member_mut(ThreadId(11)).map(|member| member.ordinal), Some(Ordinal(2)));
        assert!(fixture.census.member_mut(ThreadId(10)).is_none());
    }

    #[test]
    fn a_young_thread_that_renames_itself_is_noticed_at_once_an_old_one_within_a_second() {
        let mut fixture = Fixture::new("");
        fixture.update(0, &[(10, "main"), (11, "main")]);
        fixture.update(1, &[(10, "main"), (11, "waylay-watch")]);
        assert_eq!(fixture.eligible(1), [10]);
        fixture.update(1500, &[(10, "main"), (11, "waylay-watch")]);
        assert_eq!(fixture.update(1600, &[(10, "waylay-late"), (11, "waylay-watch")]).2, 0);
        fixture.update(2500, &[(10, "waylay-late"), (11, "waylay-watch")]);
        assert_eq!(fixture.eligible(2500), [] as [u32; 0]);
    }

    #[test]
    fn names_decide_who_is_eligible() {
        let mut fixture = Fixture::new("include = ['w*']\nexclude = ['w2']");
        fixture.update(0, &[(1, "main"), (2, "w1"), (3, "w2"), (4, "waylay-x")]);
        assert_eq!(fixture.eligible(0), [2]);
    }

    #[test]
    fn a_thread_that_could_not_be_stopped_is_left_alone_for_a_while() {
        let mut fixture = Fixture::new("");
        fixture.update(0, &[(1, "a"), (2, "b")]);
        let now = fixture.start;
        fixture.census.member_mut(ThreadId(1)).expect("there").leave_alone(now);
        assert_eq!(fixture.eligible(500), [2]);
        assert_eq!(fixture.eligible(1000), [1, 2]);
    }

    #[test]
    fn looking_takes_a_small_share_of_the_time() {
        let mut census = Census::default();
        let start = Instant::now();
        let enough = || Duration::MAX;
        assert!(census.is_due(start, enough));
        let began = Moment { at: start, work: Duration::ZERO };
        census.taken(began, Moment { at: start + Duration::from_millis(1), work: Duration::ZERO });
        assert!(!census.is_due(start + Duration::from_millis(50), enough));
        assert!(census.is_due(start + Duration::from_millis(51), enough));
    }

    #[test]
    fn looking_takes_a_small_share_of_our_own_time_where_we_get_little() {
        let mut census = Census::default();
        let start = Instant::now();
        let (ms, us) = (Duration::from_millis, Duration::from_micros);
        let began = Moment { at: start, work: ms(7) };
        census.taken(began, Moment { at: start + us(20), work: ms(7) + us(20) });
        // By the clock it is time after a millisecond; of our own time 500 us have to pass first.
        let later = start + ms(10);
        assert!(!census.is_due(later, || ms(7) + us(400)));
        assert!(census.is_due(later, || ms(7) + us(520)));
        assert!(
            census.is_due(start + ms(51), || ms(7) + us(30)),
            "new threads are seen after 50 ms at the latest"
        );
    }

    #[test]
    fn looking_takes_a_smaller_share_while_nobody_comes_or_goes() {
        let mut fixture = Fixture::new("");
        let mut pause_after = |took_us: u64, threads: &[(u32, &str)]| {
            fixture.update(0, threads);
            let (start, took) = (fixture.start, Duration::from_micros(took_us));
            let work = Duration::ZERO;
            fixture.census.taken(Moment { at: start, work }, Moment { at: start + took, work });
            (1..1000).find(|times| fixture.census.is_due(start + took * *times, || work)).map(|due| due - 1)
        };
        let alone: &[_] = &[(1, "a")];
        assert_eq!([(); 6].map(|()| pause_after(100, alone)), [50, 100, 200, 400, 400, 400].map(Some));
        assert_eq!(pause_after(500, alone), Some(100), "50 ms are enough");
        assert_eq!(pause_after(2000, alone), Some(50), "a census that takes long stays a small share");
        assert_eq!(pause_after(100, &[(1, "a"), (2, "b")]), Some(50));
        assert_eq!(pause_after(100, &[(1, "a"), (2, "b")]), Some(100));
        assert_eq!(pause_after(100, alone), Some(50));
    }
}
