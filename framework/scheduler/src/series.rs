//! Runs that are repeated inside one process: which comes next, what it is given, and what is counted. Pure.
//!
//! Between two runs the strategy learns. How often the first one is made again is decided by [`Settling`]. A run that fails
//! or leaves threads behind is the last one; what the strategy knows is then handed over to the process that goes on.
//!
//! A process that follows a schedule of another one first makes runs of that one, with that one's strategy: what it was to
//! follow waits in [`Future`] meanwhile.

use std::sync::atomic::{AtomicU64, Ordering};

use waylay_control_protocol::{Added, Begun, Earlier, Ending, RegionMap, RunSummary, Site, Tally};
use waylay_schedule::{
    AnyStrategy, Handover, Outcome, Run, RunParameters, RunReport, Seed, Strategy, ThreadId,
};

use super::heard::Heard;
use super::learning::Learning;
use super::limits::Limits;
use super::plan::{named, strategy};
use super::scheduler::Scheduler;
use super::settling::Settling;

/// What is kept about the runs of this process.
#[derive(Default)]
pub struct Series {
    /// What the first run is given, when another process left it.
    resume: Option<RunParameters>,
    /// What the run that goes on was given.
    planned: RunParameters,
    seed: Seed,
    index: u64,
    /// Runs that began.
    begun: u64,
    going: bool,
    settling: Settling,
    /// The run that comes next is the last one again.
    again: bool,
    /// Which plain accesses are steps.
    learning: Learning,
    /// In which orders events came.
    heard: Heard,
    /// What is followed once the runs of the past are made.
    future: Option<Future>,
    /// A run was stopped or left threads behind: there is no further one.
    over: bool,
    /// Steps of each thread of the run that ended.
    lengths: Vec<u64>,
}

/// A run that follows a schedule, behind runs that do not.
struct Future {
    strategy: AnyStrategy,
    resume: Option<RunParameters>,
    /// Runs that come before it.
    earlier: u64,
    limits: Limits,
    /// The plain accesses that are steps in it, and whether it is looked at.
    steps: Option<(Vec<Site>, bool)>,
}

/// What runs are made with.
pub struct Stage<'a> {
    /// Who runs next.
    pub sched: &'a mut Scheduler,
    /// Shared with the driver.
    pub region: &'a RegionMap,
    /// When a run has gone on for long enough.
    pub limits: &'a mut Limits,
}

impl Series {
    /// The runs that the region asks for, and the strategy of the first. Runs of the past have passed once, so nothing ends
    /// them.
    pub fn of(region: &RegionMap, limits: &mut Limits) -> Result<(Series, AnyStrategy), String> {
        let (strategy, parameters) = strategy(region)?;
        let seed = Seed(region.settings().seed);
        let Some((earlier, past)) = region.recalled() else {
            let learning = Learning::of(region, &parameters);
            let resume = given(parameters);
            let settling = Settling::at_most(region.settings().settle.into());
            let heard = Heard::until_quiet(region.settings().quiet);
            return Ok((Series { seed, resume, settling, learning, heard, ..Series::default() }, strategy));
        };
        let (first, begun_with) = named(past)?;
        let future = Future {
            strategy,
            resume: given(parameters),
            earlier: earlier.count(),
            limits: std::mem::take(limits),
            steps: region.chosen().map(|sites| (sites.to_vec(), region.settings().profile != 0)),
        };
        let learning = Learning::of(region, &begun_with);
        let series = Series {
            seed,
            resume: given(begun_with),
            settling: Settling::exactly(earlier.repeats),
            learning,
            future: Some(future),
            ..Series::default()
        };
        Ok((series, first))
    }

    /// How many runs began, the one that goes on included.
    pub fn begun(&self) -> u64 {
        self.begun
    }

    /// Whether a run goes on.
    pub fn is_going(&self) -> bool {
        self.going
    }

    /// Whether the run that goes on comes before the one that the process was started for.
    pub fn is_in_the_past(&self) -> bool {
        self.future.is_some()
    }

    /// Whether the run that goes on follows a schedule or switches that it was given.
    pub fn follows(&self, region: &RegionMap) -> bool {
        !self.is_in_the_past() && (region.replay().is_some() || region.guidance().is_some())
    }

    /// The past is made: from here on the strategy is asked that the process was started with.
    fn arrive(&mut self, stage: &mut Stage<'_>) {
        if let Some(future) = self.future.take_if(|future| self.begun == future.earlier) {
            *stage.sched.strategy() = future.strategy;
            *stage.limits = future.limits;
            self.resume = future.resume;
            self.settling.is_over();
            self.again = false;
            self.learning = Learning::default();
            if let Some((sites, looked_at)) = future.steps {
                stage.region.choose_again(&sites, looked_at);
            }
        }
    }

    /// Plans a run and tells the strategy that it begins; or says why there is none. No thread takes part yet.
    pub fn begin(&mut self, index: u64, mut stage: Stage<'_>) -> Result<Run, Begun> {
        if self.over {
            return Err(Begun::Refused);
        }
        self.arrive(&mut stage);
        let Stage { sched, region, limits } = stage;
        if self.heard.is_quiet(&region.report().tally) {
            return Err(Begun::Exhausted);
        }
        let run = Run { seed: self.seed, index };
        let again = std::mem::take(&mut self.again).then(|| std::mem::take(&mut self.planned));
        let given = again.or_else(|| self.resume.take());
        let Some(parameters) = given.or_else(|| sched.strategy().plan(run)) else {
            return Err(Begun::Exhausted);
        };
        self.count_beginning(region, index, &parameters);
        self.learning.begin(region, index);
        sched.clear();
        limits.begin();
        if !self.is_in_the_past() && !self.follows(region) {
            self.heard.begin(self.begun, sched.strategy());
        }
        sched.strategy().begin(run, &parameters);
        self.planned = parameters;
        self.index = index;
        self.begun += 1;
        self.going = true;
        Ok(run)
    }

    fn count_beginning(&self, region: &RegionMap, index: u64, parameters: &RunParameters) {
        let report = region.report();
        let tally = &report.tally;
        if self.begun == 0 {
            tally.first.store(index + 1, Ordering::Relaxed);
        }
        report.partly_controlled.store(0, Ordering::Relaxed);
        add(&tally.runs, 1);
        // The timers of threads are among those that a strategy by priority counts, and promises for.
        let threads = tally.threads.load(Ordering::Relaxed).max(parameters.threads);
        tally.threads.store(threads, Ordering::Relaxed);
        let by_depth = parameters.promised_depth().is_some_and(|depth| depth > 0);
        if by_depth && parameters.steps > tally.reach.load(Ordering::Relaxed) {
            // The runs so far could not reach the end of the longest: they promise nothing by depth.
            forget_aims(tally);
            tally.reach.store(parameters.steps, Ordering::Relaxed);
        }
        if let Some(depth) = aimed_at(parameters, tally) {
            add(&tally.aimed[depth], 1);
        }
    }

    /// The run that ended is made again, so it never was.
    fn uncount(&self, region: &RegionMap) {
        let tally = &region.report().tally;
        less(&tally.runs);
        self.uncount_aim(tally);
        add(&tally.repeats, 1);
    }

    fn count_end(&self, region: &RegionMap, summary: &RunSummary) {
        let tally = &region.report().tally;
        add(&tally.steps, summary.steps);
        tally.longest.store(tally.longest.load(Ordering::Relaxed).max(summary.steps), Ordering::Relaxed);
        tally.threads.store(tally.threads.load(Ordering::Relaxed).max(summary.threads), Ordering::Relaxed);
        if summary.partly_controlled != 0 {
            add(&tally.partly_controlled, 1);
            // What took part without being scheduled is in no bound.
            self.uncount_aim(tally);
        }
        tally.left.store(summary.left, Ordering::Relaxed);
    }

    fn uncount_aim(&self, tally: &Tally) {
        if let Some(place) = aimed_at(&self.planned, tally) {
            less(&tally.aimed[place]);
        }
    }

    /// The run has come to its end, with this many threads left behind.
    pub fn end(&mut self, failed: bool, left: u32, stage: Stage<'_>) -> RunSummary {
        let Stage { sched, region, .. } = stage;
        let mut summary = summary(sched, region, left);
        let news = self.learning.end(region);
        if failed || left > 0 {
            self.settling.is_over();
        }
        self.going = false;
        let again = self.settling.again(|| region.told().schedule);
        let counts = (!again && !failed).then_some(self.index);
        self.heard.end(counts, sched.strategy(), &region.report().tally);
        if again {
            summary.again = 1;
            self.again = true;
            self.uncount(region);
        } else {
            self.count_end(region, &summary);
            if !failed {
                count_reach(region, sched.strategy().reach(), &summary);
            }
            self.tell_strategy(sched, if failed { Outcome::Failed } else { Outcome::Passed });
        }
        if news != Added::Known {
            // What was aimed at before was aimed without these steps, and promises nothing about them.
            forget_aims(&region.report().tally);
            if news == Added::Again {
                region.report().tally.reach.store(0, Ordering::Relaxed);
            }
            self.begin_again(sched, news);
        }
        if left > 0 {
            self.hand_over(sched, region);
        }
        summary
    }

    /// The run is stopped where it is, because of a failure or at a limit. Says whether somebody looks at its numbers whatever
    /// it was.
    pub fn stop(&mut self, ending: Ending, stage: Stage<'_>) -> bool {
        let Stage { sched, region, .. } = stage;
        self.going = false;
        let summary = summary(sched, region, 0);
        self.count_end(region, &summary);
        if matches!(ending, Ending::StepLimit | Ending::Awaiting) && summary.partly_controlled == 0 {
            // Nobody knows what it would have shown behind the limit.
            self.uncount_aim(&region.report().tally);
        }
        let outcome = match ending {
            Ending::StepLimit | Ending::Livelock | Ending::Awaiting => Outcome::Cut,
            _ => Outcome::Failed,
        };
        self.tell_strategy(sched, outcome);
        if self.learning.stop(region) {
            self.begin_again(sched, Added::New);
        }
        self.hand_over(sched, region);
        self.follows(region) || self.is_in_the_past()
    }

    /// The process ends between two runs, and another may go on.
    pub fn leave_off(&mut self, stage: Stage<'_>) {
        let begun = stage.region.report().tally.runs.load(Ordering::Relaxed) > 0;
        if begun && !self.over {
            self.hand_over(stage.sched, stage.region);
        }
    }

    /// Leaves what the strategy knows for the process that goes on.
    fn hand_over(&mut self, sched: &mut Scheduler, region: &RegionMap) {
        self.over = true;
        let next = Run { seed: self.seed, index: self.index + 1 };
        let quiet = self.heard.is_quiet(&region.report().tally);
        let next = if quiet { None } else { sched.strategy().plan(next) };
        let handover = Handover { run: std::mem::take(&mut self.planned), next };
        if let Ok(text) = serde_json::to_string(&handover) {
            region.hand_over(&text);
        }
    }

    /// Other accesses are steps from now on: a strategy that goes from one schedule to the next begins again.
    fn begin_again(&mut self, sched: &mut Scheduler, news: Added) {
        if let Some(spec) = self.learning.begin_again(news) {
            *sched.strategy() = spec.build();
            // What the run that is made again was given is a place in a search that is over.
            self.again = false;
        } else {
            sched.strategy().steps_changed();
        }
    }

    fn tell_strategy(&mut self, sched: &mut Scheduler, outcome: Outcome) {
        self.lengths.clear();
        let threads = 0..sched.thread_count() as u32;
        self.lengths.extend(threads.map(|index| sched.thread(ThreadId(index)).steps));
        let (steps, news) = (sched.steps, outcome == Outcome::Failed);
        sched.end(&RunReport { outcome, steps, lengths: &self.lengths, news });
    }
}

/// Where a run is counted by what it promises something for; none when it promises nothing.
fn aimed_at(parameters: &RunParameters, tally: &Tally) -> Option<usize> {
    let depth = parameters.promised_depth()? as usize;
    // One that a process makes before it has learned what the process before it knew does not reach as far.
    let reaches = depth == 0 || parameters.steps >= tally.reach.load(Ordering::Relaxed);
    reaches.then(|| depth.min(tally.aimed.len() - 1))
}

/// The runs so far promise nothing any more.
fn forget_aims(tally: &Tally) {
    tally.aimed.iter().for_each(|runs| runs.store(0, Ordering::Relaxed));
}

/// The runs that come before the one that follows a schedule.
pub fn recalled(region: &RegionMap) -> Option<Earlier> {
    region.recalled().map(|(earlier, _)| earlier)
}

/// What a first run is given, unless its strategy has to plan it itself.
fn given(parameters: RunParameters) -> Option<RunParameters> {
    let fresh = parameters == RunParameters::of(parameters.strategy.as_str());
    (!fresh).then_some(parameters)
}

fn summary(sched: &Scheduler, region: &RegionMap, left: u32) -> RunSummary {
    let report = region.report();
    RunSummary {
        steps: sched.steps,
        switches: sched.switches,
        stretches: report.stretches.load(Ordering::Relaxed),
        threads: sched.thread_count() as u32,
        partly_controlled: report.partly_controlled.load(Ordering::Relaxed),
        left,
        again: 0,
    }
}

fn less(word: &AtomicU64) {
    word.store(word.load(Ordering::Relaxed).saturating_sub(1), Ordering::Relaxed);
}

/// A run that passed and is longer than those before were planned for makes these worthless.
fn count_reach(region: &RegionMap, reach: u64, summary: &RunSummary) {
    let tally = &region.report().tally;
    if summary.partly_controlled == 0 && reach > tally.reach.load(Ordering::Relaxed) {
        forget_aims(tally);
        tally.reach.store(reach, Ordering::Relaxed);
    }
}

/// One thread writes, so a load and a store are enough.
fn add(word: &AtomicU64, more: u64) {
    word.store(word.load(Ordering::Relaxed) + more, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use waylay_control_protocol::{Instrumentation, Level, Settings, Stretch, Switching};
    use waylay_schedule::{Event, EventKind};

    use super::*;

    struct Process {
        region: RegionMap,
        sched: Scheduler,
        limits: Limits,
        series: Series,
    }

    impl Process {
        fn started(region: RegionMap) -> Process {
            let settings = region.settings();
            let mut limits = Limits::of(settings.max_steps);
            let (series, strategy) = Series::of(&region, &mut limits).expect("it says what to do");
            let sched = Scheduler::recording_into(&region, &settings, strategy);
            Process { region, sched, limits, series }
        }

        fn stage(&mut self) -> (&mut Series, Stage<'_>) {
            let Process { region, sched, limits, series } = self;
            (series, Stage { sched, region, limits })
        }

        /// One thread, with so many steps behind its first.
        fn run(&mut self, index: u64, steps: u64) -> Result<(), Begun> {
            let (series, stage) = self.stage();
            series.begin(index, stage)?;
            self.sched.add_thread();
            for _ in 0..steps {
                self.sched.step(Event::on_thread(EventKind::Yield, ThreadId::MAIN));
            }
            Ok(())
        }

        fn end(&mut self, failed: bool, left: u32) -> RunSummary {
            let (series, stage) = self.stage();
            series.end(failed, left, stage)
        }

        fn count(&self, of: fn(&waylay_control_protocol::Tally) -> &AtomicU64) -> u64 {
            of(&self.region.report().tally).load(Ordering::Relaxed)
        }
    }

    fn settings(max_steps: u64) -> Settings {
        let mut settings = Settings::new(Switching::Baton, 7, 0);
        (settings.in_process, settings.max_steps) = (1, max_steps);
        settings
    }

    fn region(change: impl FnOnce(&mut Settings, &mut RegionMap)) -> RegionMap {
        let mut region = RegionMap::create().expect("memory");
        let mut settings = settings(1_000);
        change(&mut settings, &mut region);
        region.prepare(settings, r#"{"strategy":"random"}"#).expect("short");
        region
    }

    #[test]
    fn a_run_that_is_made_again_is_not_counted() {
        let mut process = Process::started(region(|settings, _| settings.settle = 3));
        for (steps, again) in [(9, 1), (5, 1), (5, 0)] {
            process.run(4, steps).expect("it begins");
            assert_eq!(process.end(false, 0).again, again);
        }
        assert_eq!((process.count(|tally| &tally.runs), process.count(|tally| &tally.repeats)), (1, 2));
        assert_eq!((process.count(|tally| &tally.first), process.count(|tally| &tally.steps)), (5, 6));
        process.run(5, 2).expect("it begins");
        assert_eq!((process.end(false, 0).again, process.count(|tally| &tally.runs)), (0, 2));
        assert_eq!((process.count(|tally| &tally.longest), process.series.begun()), (6, 4));
    }

    #[test]
    fn a_run_that_leaves_threads_behind_or_fails_is_the_last_one() {
        for left_or_stopped in [true, false] {
            let mut process = Process::started(region(|settings, _| settings.settle = 3));
            process.run(0, 3).expect("it begins");
            if left_or_stopped {
                assert_eq!(process.end(false, 2).left, 2);
            } else {
                let (series, stage) = process.stage();
                assert!(
                    !series.stop(Ending::Exited, stage),
                    "nobody looks at the numbers of one that was only stopped"
                );
            }
            assert_eq!(process.run(1, 3), Err(Begun::Refused));
            let handover: Handover = serde_json::from_str(&process.region.handed()).expect("it is written");
            assert_eq!(handover.run.strategy, "random");
            assert!(handover.next.is_some(), "a random walk always has another run");
        }
    }

    #[test]
    fn a_process_that_ends_between_runs_hands_over_once_it_made_one() {
        let mut process = Process::started(region(|_, _| {}));
        let (series, stage) = process.stage();
        series.leave_off(stage);
        assert_eq!(process.region.handed(), "");
        process.run(0, 3).expect("it begins");
        process.end(false, 0);
        assert!(!process.series.is_going());
        let (series, stage) = process.stage();
        series.leave_off(stage);
        assert_ne!(process.region.handed(), "");
    }

    fn learning(strategy: &str, sites: &[Site]) -> RegionMap {
        let mut region = RegionMap::create().expect("memory");
        region.set_instrumentation(Instrumentation::new(Level::Auto, true));
        let mut settings = settings(1_000);
        region.choose(&mut settings, sites);
        region.learn(&mut settings, sites.len());
        region.prepare(settings, &format!(r#"{{"strategy":"{strategy}"}}"#)).expect("short");
        region
    }

    #[test]
    fn what_a_run_shows_is_a_step_from_the_next_on() {
        let mut process = Process::started(learning("random", &[Site(3)]));
        process.run(0, 1).expect("it begins");
        assert_eq!(process.region.settings().profile, 1, "the first are looked at");
        process.region.add_conflicting(Site(5));
        process.region.add_conflicting(Site(3));
        process.region.report().accesses.store(70, Ordering::Relaxed);
        process.end(false, 0);
        assert_eq!(process.region.chosen(), Some(&[Site(3), Site(5)][..]));
        process.run(17, 1).expect("it begins");
        assert_eq!((process.region.settings().profile, process.region.conflicting().len()), (0, 0));
        process.end(false, 0);
        let counts = (process.count(|tally| &tally.looked_at), process.count(|tally| &tally.accesses));
        assert_eq!((counts, process.region.chosen().map(<[Site]>::len)), ((1, 70), Some(2)));
        process.run(18, 1).expect("it begins");
        process.region.report().reached.store(1, Ordering::Relaxed);
        process.end(false, 0);
        process.run(19, 1).expect("it begins");
        assert_eq!(process.region.settings().profile, 1, "the last one came by new code");
        process.region.add_conflicting(Site(9));
        let (series, stage) = process.stage();
        series.stop(Ending::Exited, stage);
        assert_eq!(process.region.chosen().map(<[Site]>::len), Some(2), "what the failing run had stays");
    }

    /// A process that goes on where another was with k = 100, and has to learn for itself what the other knew.
    fn gone_on() -> Process {
        let parameters = RunParameters {
            threads: 2,
            steps: 100,
            depth: 2,
            bare: true,
            ..RunParameters::of("pct:depth=2,phases=none,final-wait=off,starvation=off")
        };
        let mut region = RegionMap::create().expect("memory");
        region.set_instrumentation(Instrumentation::new(Level::Auto, true));
        let mut settings = settings(1_000);
        region.choose(&mut settings, &[]);
        region.learn(&mut settings, 0);
        let text = serde_json::to_string(&parameters).expect("plain data");
        region.prepare(settings, &text).expect("short");
        Process::started(region)
    }

    #[test]
    fn runs_count_that_are_controlled_and_reach_as_far_as_the_longest() {
        let mut process = gone_on();
        for index in 0..4 {
            process.run(index, 0).expect("it begins");
            process.sched.add_thread();
            for _ in 0..5 {
                process.sched.step(Event::on_thread(EventKind::Yield, ThreadId::MAIN));
            }
            assert!(index == 0 || process.series.planned.steps < 100, "{:?}", process.series.planned);
            process.end(false, 0);
        }
        assert_eq!(process.series.planned.promised_depth(), Some(2));
        assert_eq!(process.count(|tally| &tally.aimed[2]), 1, "the others say nothing about 100 steps");
        let mut process = gone_on();
        process.run(0, 1).expect("it begins");
        process.region.report().partly_controlled.store(1, Ordering::Relaxed);
        process.end(false, 0);
        assert_eq!(process.count(|tally| &tally.aimed[2]), 0, "what took part is in no bound");
        let mut process = gone_on();
        process.run(0, 1).expect("it begins");
        process.region.add_conflicting(Site(5));
        process.end(false, 0);
        assert_eq!(process.count(|tally| &tally.aimed[2]), 0, "it was made without what is a step now");
    }

    #[test]
    fn a_search_begins_again_with_a_new_step() {
        let mut process = Process::started(learning("dfs", &[]));
        process.run(0, 1).expect("it begins");
        process.region.add_conflicting(Site(5));
        process.end(false, 0);
        process.run(1, 1).expect("it has not seen everything, although one thread has one schedule");
        assert_eq!(process.region.settings().profile, 1);
        process.end(false, 0);
        assert_eq!(process.run(2, 1), Err(Begun::Exhausted));
    }

    /// Runs of the past learn as they did, and the schedule behind them has the steps that it had.
    #[test]
    fn runs_of_the_past_learn_for_themselves() {
        let mut region = RegionMap::create().expect("memory");
        region.set_instrumentation(Instrumentation::new(Level::Auto, true));
        let mut settings = settings(10);
        region.choose(&mut settings, &[Site(3), Site(5), Site(7)]);
        region.recall(
            &mut settings,
            Earlier { first: 3, repeats: 0, through: 4 },
            r#"{"strategy":"random"}"#,
        );
        region.learn(&mut settings, 1);
        let schedule = [Stretch { thread: 0, first: u32::from(EventKind::ThreadStart.code()), steps: 4 }];
        region.prepare_replay(settings, &schedule).expect("short");
        let mut process = Process::started(region);
        process.run(3, 1).expect("it begins");
        assert_eq!((process.region.chosen(), process.region.settings().profile), (Some(&[Site(3)][..]), 1));
        process.region.add_conflicting(Site(9));
        process.end(false, 0);
        process.run(40, 3).expect("it begins");
        let all = [Site(3), Site(5), Site(7)];
        assert_eq!((process.region.chosen(), process.region.settings().profile), (Some(&all[..]), 0));
    }

    /// The first run twice, the second once, and then the schedule; only there a limit holds.
    #[test]
    fn runs_of_the_past_come_before_a_schedule() {
        let mut region = RegionMap::create().expect("memory");
        let mut settings = settings(10);
        let earlier = Earlier { first: 3, repeats: 1, through: 5 };
        region.recall(&mut settings, earlier, r#"{"strategy":"random"}"#);
        let schedule = [Stretch { thread: 0, first: u32::from(EventKind::ThreadStart.code()), steps: 4 }];
        region.prepare_replay(settings, &schedule).expect("short");
        let mut process = Process::started(region);
        for (run, again) in earlier.runs().zip([1, 0, 0]) {
            process.run(run, 30).expect("it begins");
            assert!(process.series.is_in_the_past() && !process.series.follows(&process.region));
            assert!(!process.limits.are_reached(31));
            assert_eq!(process.end(false, 0).again, again, "{run}");
        }
        process.run(5, 3).expect("it begins");
        assert!(!process.series.is_in_the_past() && process.series.follows(&process.region));
        assert!(process.limits.are_reached(10));
        process.sched.report_into(&process.region, process.series.is_in_the_past());
        assert_eq!(process.region.report().diverged.load(Ordering::Relaxed), 0, "{}", process.region.text());
        let (series, stage) = process.stage();
        assert!(series.stop(Ending::Exited, stage), "whoever has a schedule followed looks at the numbers");
    }
}
