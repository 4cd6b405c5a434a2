//! What has to be there before a test of a build folder, and is put away behind the last one: CTest's fixtures.
//!
//! A fixture is a name. Tests set it up, others need it, others clean it up. Those that set up and clean up may be scripts, and may
//! not bear to be run a thousand times: they run once, freely, and are not explored.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Pause between two looks whether one is done.
const PAUSE: Duration = Duration::from_millis(5);

/// A test that sets something up or cleans it up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// Its name.
    pub name: String,
    /// The fixtures that it is for.
    pub fixtures: Vec<String>,
    /// Those that it needs itself.
    pub needs: Vec<String>,
    /// Its program and the arguments.
    pub command: Vec<String>,
    /// Where it runs.
    pub folder: PathBuf,
    /// Variables that it gets.
    pub environment: Vec<(String, String)>,
    /// Variables that are taken from it.
    pub unset: Vec<String>,
    /// How long it may take.
    pub patience: Duration,
}

/// The fixtures of a build folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fixtures {
    /// What sets them up.
    pub setups: Vec<Step>,
    /// What cleans them up.
    pub cleanups: Vec<Step>,
}

/// Fixtures that are there. They are cleaned up when this is dropped.
#[derive(Debug, Default)]
pub struct SetUp<'a> {
    /// In the order in which they are run.
    cleanups: Vec<&'a Step>,
    /// Those that could not be set up, with the reason.
    pub missing: Vec<(String, String)>,
}

impl Fixtures {
    /// Sets up what is needed, and what that needs in turn.
    pub fn set_up(&self, needs: &BTreeSet<&str>) -> SetUp<'_> {
        self.set_up_by(needs, &mut |step| run(step))
    }

    fn set_up_by(
        &self,
        needs: &BTreeSet<&str>,
        run: &mut dyn FnMut(&Step) -> Result<(), String>,
    ) -> SetUp<'_> {
        let wanted = self.wanted(needs);
        let is_for = |step: &Step, name: &str| step.fixtures.iter().any(|fixture| fixture == name);
        let mut open: Vec<&Step> = self
            .setups
            .iter()
            .filter(|step| step.fixtures.iter().any(|one| wanted.contains(one.as_str())))
            .collect();
        let mut done: Vec<&Step> = Vec::new();
        let mut missing: Vec<(String, String)> = Vec::new();
        while !open.is_empty() {
            // One is ready when nothing is open that sets up what it needs.
            let ready =
                |step: &&Step| !step.needs.iter().any(|name| open.iter().any(|other| is_for(other, name)));
            let Some(place) = open.iter().position(ready) else {
                let names: Vec<&str> = open.iter().map(|step| step.name.as_str()).collect();
                let why = format!("{} wait for each other", names.join(" and "));
                missing.extend(
                    open.iter().flat_map(|step| &step.fixtures).map(|one| (one.clone(), why.clone())),
                );
                break;
            };
            let step = open.remove(place);
            let without = missing.iter().find(|(name, _)| step.needs.contains(name));
            let result = match without {
                Some((name, why)) => Err(format!("{} needs {name}: {why}", step.name)),
                None => run(step).map_err(|why| format!("{} {why}", step.name)),
            };
            match result {
                Ok(()) => done.push(step),
                Err(why) => missing.extend(step.fixtures.iter().map(|one| (one.clone(), why.clone()))),
            }
        }
        // What was set up last is put away first, and what failed half-way may have left something.
        let place = |step: &Step| {
            done.iter()
                .rposition(|made| step.fixtures.iter().any(|name| is_for(made, name)))
                .unwrap_or(usize::MAX)
        };
        let mut cleanups: Vec<&Step> = self
            .cleanups
            .iter()
            .filter(|step| step.fixtures.iter().any(|one| wanted.contains(one.as_str())))
            .collect();
        cleanups.sort_by_key(|step| std::cmp::Reverse(place(step)));
        SetUp { cleanups, missing }
    }

    /// What is needed, and whatever those need that set it up or clean it up.
    fn wanted<'a>(&'a self, needs: &BTreeSet<&'a str>) -> BTreeSet<&'a str> {
        let mut wanted = needs.clone();
        loop {
            let before = wanted.len();
            for step in self.setups.iter().chain(&self.cleanups) {
                if step.fixtures.iter().any(|fixture| wanted.contains(fixture.as_str())) {
                    wanted.extend(step.needs.iter().map(String::as_str));
                }
            }
            if wanted.len() == before {
                return wanted;
            }
        }
    }
}

impl Drop for SetUp<'_> {
    fn drop(&mut self) {
        for step in &self.cleanups {
            if let Err(why) = run(step) {
                eprintln!("waylay: {} {why}", step.name);
            }
        }
    }
}

/// Runs one to its end.
fn run(step: &Step) -> Result<(), String> {
    match ended(step) {
        Ok(Some(status)) if status.success() => Ok(()),
        Ok(Some(status)) => Err(format!("failed ({status})")),
        Ok(None) => Err(format!("did not end within {:?}", step.patience)),
        Err(error) => Err(format!("cannot be run: {error}")),
    }
}

fn ended(step: &Step) -> io::Result<Option<ExitStatus>> {
    let (program, arguments) = step.command.split_first().ok_or(io::ErrorKind::NotFound)?;
    let mut command = Command::new(program);
    command.args(arguments).current_dir(&step.folder);
    step.unset.iter().for_each(|name| {
        command.env_remove(name);
    });
    command.envs(step.environment.iter().map(|(name, value)| (name, value)));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    waylay_driver::give_back_mask(&mut command);
    let mut child = command.spawn()?;
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begun.elapsed() > step.patience {
            let _ = child.kill();
            let _ = child.wait();
            return Ok(None);
        }
        std::thread::sleep(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(name: &str, fixture: &str, needs: &[&str]) -> Step {
        Step {
            name: name.to_owned(),
            fixtures: vec![fixture.to_owned()],
            needs: needs.iter().map(|&one| one.to_owned()).collect(),
            ..Step::default()
        }
    }

    fn names(steps: &[&Step]) -> Vec<String> {
        steps.iter().map(|step| step.name.clone()).collect()
    }

    #[test]
    fn what_is_needed_is_set_up_in_order_and_put_away_in_the_other() {
        let fixtures = Fixtures {
            setups: vec![
                step("fill", "data", &["server"]),
                step("start", "server", &[]),
                step("other", "x", &[]),
            ],
            cleanups: vec![step("stop", "server", &[]), step("empty", "data", &[])],
        };
        let mut ran = Vec::new();
        let mut there = fixtures.set_up_by(&BTreeSet::from(["data"]), &mut |step| {
            ran.push(step.name.clone());
            Ok(())
        });
        assert_eq!(ran, ["start", "fill"]);
        assert_eq!(names(&there.cleanups), ["empty", "stop"]);
        assert_eq!(there.missing, []);
        there.cleanups.clear();
        let mut there =
            fixtures.set_up_by(&BTreeSet::from(["data"]), &mut |_| Err("failed (exit status: 1)".to_owned()));
        let expected = [
            ("server".to_owned(), "start failed (exit status: 1)".to_owned()),
            ("data".to_owned(), "fill needs server: start failed (exit status: 1)".to_owned()),
        ];
        assert_eq!(there.missing, expected);
        there.cleanups.clear();
        let fixtures = Fixtures {
            setups: vec![step("a", "one", &["two"]), step("b", "two", &["one"])],
            cleanups: Vec::new(),
        };
        let there = fixtures.set_up_by(&BTreeSet::from(["one"]), &mut |_| Ok(()));
        assert_eq!(there.missing[0].1, "a and b wait for each other");
    }
}
