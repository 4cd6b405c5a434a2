//! How the target is disturbed: what the user wrote, and the same once it is known to make sense.
//!
//! ```toml
//! [randomizer]
//! period  = { uniform = { min = "0s", max = "2ms" } }      # rest between two windows
//! suspend = { uniform = { min = "100us", max = "2ms" } }   # how long threads are held
//! count   = 1                                              # how many threads at a time
//! include = ["worker-*"]                                   # only threads with these names
//! exclude = ["gc"]                                         # never threads with these names
//! ```
//!
//! Every key may be absent. Problems carry the key, so that a file can point at the place; the driver, which reads
//! the table itself, makes a [`RawSettings`] and gets the same problems.

use std::fmt;
use std::time::Duration;

use rand::Rng;
use serde::{Deserialize, Serialize};
use waylay_dist::spec::{Uniform, Value};
use waylay_dist::{Dist, Place, Spec, Unit, parse_duration};

use crate::pattern::Pattern;
use crate::sys::LONGEST_NAME;

/// Our own threads: they are never suspended, whatever the patterns say.
pub const SERVICE_THREADS: &str = "waylay-*";

/// The settings as written.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawSettings {
    /// Rest between two windows (RP).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period: Option<Spec>,
    /// How long threads are held (SD).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<Spec>,
    /// How many threads are held at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub count: Option<Spec>,
    /// Names of the threads to choose from; all when empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub include: Vec<Pattern>,
    /// Names of threads to leave alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exclude: Vec<Pattern>,
}

/// The settings, checked.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Rest between two windows (RP).
    pub period: Times,
    /// How long threads are held (SD).
    pub suspend: Times,
    /// How many threads are held at a time; at least one.
    pub count: Count,
    /// Names of the threads to choose from; all when empty.
    pub include: Vec<Pattern>,
    /// Names of threads to leave alone; [`SERVICE_THREADS`] come on top.
    pub exclude: Vec<Pattern>,
}

/// A distribution of durations.
#[derive(Debug, Clone)]
pub struct Times {
    spec: Spec,
    dist: Dist,
}

/// A distribution of whole numbers from 1.
#[derive(Debug, Clone)]
pub struct Count {
    spec: Spec,
    dist: Dist,
}

/// One thing wrong with the settings.
#[derive(Debug, Clone, PartialEq)]
pub struct SettingsProblem {
    /// The key that has it.
    pub key: &'static str,
    /// Where inside the key's distribution, if it is one.
    pub place: Place,
    /// What is wrong and what to do.
    pub message: String,
}

/// Why there are no settings.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("cannot be read: {0}")]
    Read(std::io::Error),
    /// The text is no TOML, or has keys or types that are not ours.
    #[error("{0}")]
    Toml(#[from] toml::de::Error),
    /// The values make no sense; at least one problem.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Problems(Vec<SettingsProblem>),
}

impl fmt::Display for SettingsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Place { interval: None, key: None } => write!(f, "{}: {}", self.key, self.message),
            place => write!(f, "{}, {place}: {}", self.key, self.message),
        }
    }
}

impl RawSettings {
    /// Reads the keys at the top of a text, or those of its table `[randomizer]` if there is one; other tables of
    /// such a file are somebody else's.
    ///
    /// # Errors
    /// When the text is not TOML or has keys that are not ours.
    pub fn from_toml(text: &str) -> Result<RawSettings, toml::de::Error> {
        #[derive(Deserialize)]
        struct File {
            randomizer: Option<RawSettings>,
        }
        match toml::from_str::<File>(text)?.randomizer {
            Some(settings) => Ok(settings),
            None => toml::from_str(text),
        }
    }

    /// What is said here, and where nothing is said, what `other` says.
    #[must_use]
    pub fn or(self, other: RawSettings) -> RawSettings {
        let list = |mine: Vec<Pattern>, theirs| if mine.is_empty() { theirs } else { mine };
        RawSettings {
            period: self.period.or(other.period),
            suspend: self.suspend.or(other.suspend),
            count: self.count.or(other.count),
            include: list(self.include, other.include),
            exclude: list(self.exclude, other.exclude),
        }
    }

    /// Checks everything.
    ///
    /// # Errors
    /// All problems at once.
    pub fn check(self) -> Result<Settings, Vec<SettingsProblem>> {
        let mut problems = Vec::new();
        // The default keeps what the bound of the `bound` module assumes: one thread at a time, uniform times. 100 µs is long
        // enough for a thread on another processor to run some 100,000 instructions past the suspended one.
        let period = self.period.unwrap_or_else(|| uniform("0s", "2ms"));
        let suspend = self.suspend.unwrap_or_else(|| uniform("100us", "2ms"));
        let count = self.count.unwrap_or_else(|| Spec::fixed(Value::Int(1)));
        let period = Times::check("period", period, &mut problems);
        let suspend = Times::check("suspend", suspend, &mut problems);
        let count = Count::check(count, &mut problems);
        for (key, patterns) in [("include", &self.include), ("exclude", &self.exclude)] {
            for pattern in patterns {
                check_pattern(key, pattern, &mut problems);
            }
        }
        match (period, suspend, count) {
            (Some(period), Some(suspend), Some(count)) if problems.is_empty() => {
                Ok(Settings { period, suspend, count, include: self.include, exclude: self.exclude })
            }
            _ => Err(problems),
        }
    }
}

impl Settings {
    /// Reads and checks a TOML text.
    ///
    /// # Errors
    /// When the text is not TOML, or all that is wrong with its values.
    pub fn from_toml(text: &str) -> Result<Settings, SettingsError> {
        RawSettings::from_toml(text)?.check().map_err(SettingsError::Problems)
    }

    /// Whether a thread of this name may be suspended.
    pub fn may_suspend(&self, name: &str) -> bool {
        let any = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(name));
        !Pattern::new(SERVICE_THREADS).matches(name)
            && !any(&self.exclude)
            && (self.include.is_empty() || any(&self.include))
    }

    /// The settings as they would be written.
    pub fn to_raw(&self) -> RawSettings {
        RawSettings {
            period: Some(self.period.spec.clone()),
            suspend: Some(self.suspend.spec.clone()),
            count: Some(self.count.spec.clone()),
            include: self.include.clone(),
            exclude: self.exclude.clone(),
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        RawSettings::default().check().expect("the defaults make sense")
    }
}

fn uniform(min: &str, max: &str) -> Spec {
    Spec::Uniform(Uniform { min: Value::Text(min.into()), max: Value::Text(max.into()) })
}

fn check_pattern(key: &'static str, pattern: &Pattern, problems: &mut Vec<SettingsProblem>) {
    let text = pattern.to_string();
    if let Some(longest) = LONGEST_NAME
        && !text.contains('*')
        && text.len() > longest
    {
        let message = format!(
            "`{text}` can match no thread: the kernel cuts names off after {longest} bytes, write `{}*`",
            text.chars().take(12).collect::<String>()
        );
        problems.push(SettingsProblem { key, place: Place::default(), message });
    }
}

/// Checks a distribution and its unit.
fn check_dist(
    key: &'static str,
    spec: &Spec,
    unit: Unit,
    problems: &mut Vec<SettingsProblem>,
) -> Option<Dist> {
    match Dist::new(spec) {
        Ok(dist) if dist.unit() == unit => return Some(dist),
        Ok(_) => {
            let message = match unit {
                Unit::Duration => "a number without a unit: write a duration, such as \"2ms\"",
                Unit::Number => "a duration: write a number of threads, such as 2",
            };
            problems.push(SettingsProblem { key, place: Place::default(), message: message.into() });
        }
        Err(found) => problems.extend(found.into_iter().map(|problem| SettingsProblem {
            key,
            place: problem.place,
            message: problem.kind.to_string(),
        })),
    }
    None
}

impl Times {
    fn check(key: &'static str, spec: Spec, problems: &mut Vec<SettingsProblem>) -> Option<Times> {
        if let Some((place, least)) = least(&spec)
            && least < 0.0
        {
            let message = format!("can be {least}, but time is never negative: give it a min of 0s or more");
            problems.push(SettingsProblem { key, place, message });
            return None;
        }
        let dist = check_dist(key, &spec, Unit::Duration, problems)?;
        Some(Times { spec, dist })
    }

    /// Draws one.
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> Duration {
        self.dist.sample_duration(rng)
    }

    /// The longest that can be drawn; none without an upper end.
    pub fn longest(&self) -> Option<Duration> {
        most(&self.spec).map(|nanoseconds| Duration::from_nanos(nanoseconds as u64))
    }

    /// Whether all durations between the ends are alike.
    pub fn is_uniform(&self) -> bool {
        matches!(self.spec, Spec::Uniform(_))
    }

    /// The distribution as written.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }
}

impl Count {
    fn check(spec: Spec, problems: &mut Vec<SettingsProblem>) -> Option<Count> {
        let key = "count";
        let dist = check_dist(key, &spec, Unit::Number, problems)?;
        let message = match least(&spec) {
            Some((_, least)) if least >= 1.0 => return Some(Count { spec, dist }),
            Some((place, least)) => {
                (place, format!("can be {least}: each window suspends at least 1 thread"))
            }
            None => (
                Place::default(),
                "can be 0 or negative: a window suspends at least 1 thread, give it min = 1".to_owned(),
            ),
        };
        problems.push(SettingsProblem { key, place: message.0, message: message.1 });
        None
    }

    /// Draws one; at least 1.
    pub fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> usize {
        usize::try_from(self.dist.sample_int(rng)).unwrap_or(1).max(1)
    }

    /// The most that can be drawn; none without an upper end.
    pub fn most(&self) -> Option<u64> {
        most(&self.spec).map(|most| most as u64)
    }

    /// The distribution as written.
    pub fn spec(&self) -> &Spec {
        &self.spec
    }
}

/// A value as a number; durations in nanoseconds. None for a text that is no duration, which is reported elsewhere.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(value) => Some(*value as f64),
        Value::Float(value) => Some(*value),
        Value::Text(text) => parse_duration(text).ok().map(|duration| duration.as_nanos() as f64),
    }
}

/// The least value that can be drawn and where it is written; none when it is not limited.
fn least(spec: &Spec) -> Option<(Place, f64)> {
    let at_min = |value| Some((Place { interval: None, key: Some("min") }, number(value)?));
    match spec {
        Spec::Uniform(uniform) if uniform.min == uniform.max => {
            Some((Place::default(), number(&uniform.min)?))
        }
        Spec::Uniform(uniform) => at_min(&uniform.min),
        Spec::Exponential(exponential) => at_min(&exponential.min),
        Spec::Gaussian(gaussian) => at_min(gaussian.min.as_ref()?),
        Spec::Weighted(intervals) => intervals
            .iter()
            .enumerate()
            .filter(|(_, interval)| interval.p > 0.0)
            .filter_map(|(i, interval)| {
                Some((Place { interval: Some(i), key: Some("min") }, number(&interval.min)?))
            })
            .min_by(|a, b| a.1.total_cmp(&b.1)),
    }
}

/// The greatest value that can be drawn; none when it is not limited.
fn most(spec: &Spec) -> Option<f64> {
    match spec {
        Spec::Uniform(uniform) => number(&uniform.max),
        Spec::Exponential(exponential) => number(&exponential.max),
        Spec::Gaussian(gaussian) => number(gaussian.max.as_ref()?),
        Spec::Weighted(intervals) => intervals
            .iter()
            .filter(|interval| interval.p > 0.0)
            .filter_map(|interval| number(&interval.max))
            .max_by(f64::total_cmp),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(text: &str) -> Vec<String> {
        match Settings::from_toml(text) {
            Err(SettingsError::Problems(problems)) => problems.iter().map(ToString::to_string).collect(),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn an_empty_text_is_the_default() {
        let settings = Settings::from_toml("").expect("valid");
        assert_eq!(settings.to_raw(), Settings::default().to_raw());
        assert_eq!(settings.count.most(), Some(1));
        assert_eq!(settings.period.longest(), Some(Duration::from_millis(2)));
    }

    #[test]
    fn a_table_in_a_larger_file_is_found() {
        let settings =
            Settings::from_toml("[randomizer]\ncount = 3\n[[scenario]]\nname = 'x'").expect("valid");
        assert_eq!(settings.count.most(), Some(3));
    }

    #[test]
    fn what_is_written_reads_back() {
        let text = "period = { exponential = { min = '0s', max = '5ms' } }\nsuspend = '3ms'\n\
                    count = { weighted = [{ min = 1, max = 1, p = 0.9 }, { min = 2, max = 8, p = 0.1 }] }\n\
                    include = ['worker-*']\nexclude = ['gc']";
        let raw = Settings::from_toml(text).expect("valid").to_raw();
        let again = RawSettings::from_toml(&toml::to_string(&raw).expect("writable")).expect("readable");
        assert_eq!(raw, again);
    }

    #[test]
    fn a_count_of_zero_is_refused_with_its_place() {
        for (text, expected) in [
            ("count = 0", "count: can be 0: each window suspends at least 1 thread"),
            (
                "count = { uniform = { min = 0, max = 4 } }",
                "count, min: can be 0: each window suspends at least 1 thread",
            ),
            (
                "count = { uniform = { min = 0.5, max = 0.7 } }",
                "count, min: can be 0.5: each window suspends at least 1 thread",
            ),
            (
                "count = { gaussian = { mean = 5, sigma = 1 } }",
                "count: can be 0 or negative: a window suspends at least 1 thread, give it min = 1",
            ),
            (
                "count = { weighted = [{ min = 1, max = 2, p = 0.5 }, { min = 0, max = 0, p = 0.5 }] }",
                "count, interval 1, min: can be 0: each window suspends at least 1 thread",
            ),
            ("count = '2ms'", "count: a duration: write a number of threads, such as 2"),
        ] {
            assert_eq!(problems(text), [expected]);
        }
        let never = "count = { weighted = [{ min = 1, max = 2, p = 1.0 }, { min = 0, max = 0, p = 0.0 }] }";
        assert!(Settings::from_toml(never).is_ok());
    }

    #[test]
    fn negative_and_unitless_times_are_refused() {
        assert_eq!(
            problems("period = { uniform = { min = -5, max = 3 } }"),
            ["period, min: can be -5, but time is never negative: give it a min of 0s or more"]
        );
        assert_eq!(
            problems("suspend = 3"),
            ["suspend: a number without a unit: write a duration, such as \"2ms\""]
        );
        assert_eq!(
            problems("suspend = '-3ms'").len(),
            2,
            "both ends of a plain value are wrong: {:?}",
            problems("suspend = '-3ms'")
        );
    }

    #[test]
    fn all_problems_come_at_once() {
        let found = problems("period = 1\nsuspend = 2\ncount = 0");
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn names_longer_than_the_kernel_keeps_are_refused() {
        let found = problems("count = 0\nexclude = ['a-name-of-20-letters']");
        if LONGEST_NAME.is_none() {
            assert_eq!(found.len(), 1, "{found:?}");
            return;
        }
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found[1].starts_with("exclude: `a-name-of-20-letters` can match no thread"), "{found:?}");
    }

    #[test]
    fn unknown_keys_are_refused() {
        let error = Settings::from_toml("periode = '1ms'").expect_err("misspelt");
        assert!(error.to_string().contains("periode"), "{error}");
    }

    #[test]
    fn flags_win_over_the_file() {
        let flags = RawSettings { count: Some(Spec::fixed(Value::Int(2))), ..RawSettings::default() };
        let file = RawSettings::from_toml("count = 5\nsuspend = '1ms'\nexclude = ['gc']").expect("valid");
        let both = flags.or(file).check().expect("valid");
        assert_eq!((both.count.most(), both.suspend.longest()), (Some(2), Some(Duration::from_millis(1))));
        assert!(!both.may_suspend("gc"));
    }

    #[test]
    fn service_threads_are_never_chosen() {
        let settings = Settings::from_toml("include = ['*']").expect("valid");
        assert!(!settings.may_suspend("waylay-watch"));
        assert!(settings.may_suspend("worker"));
        let some = Settings::from_toml("include = ['w*']\nexclude = ['w2']").expect("valid");
        assert_eq!(["w1", "w2", "x"].map(|name| some.may_suspend(name)), [true, false, false]);
    }
}
