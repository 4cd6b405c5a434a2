//! The service's configuration: TOML with every problem found in one pass, as in a mix.

mod read;
mod schema;
mod values;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use jiff::tz::TimeZone;
use waylay_driver::config::{self as driver, Diagnostics, LoadError, Source};
use waylay_fleet::engine::Engine;
use waylay_history::suppression::Suppressions;

use crate::stop::Conditions;
use crate::window::Windows;

pub use schema::schema;

/// A configuration of the service with comments, as `configs/nightly.toml` has it.
pub const DEFAULT: &str = include_str!("../../../configs/nightly.toml");

/// Everything that the service is told.
#[derive(Clone, Debug)]
pub struct Config {
    /// The folder that campaigns are written to.
    pub out: PathBuf,
    /// Whose clock windows, nights and suppressions go by.
    pub zone: TimeZone,
    /// When campaigns run.
    pub windows: Windows,
    /// Who runs them, if not this machine alone.
    pub fleet: Option<Fleet>,
    /// What runs, in turn; at least one.
    pub mixes: Vec<Mix>,
    /// The dashboard; none when nothing is served.
    pub dashboard: Option<Dashboard>,
    /// Who is told of new failures.
    pub webhook: Option<Webhook>,
    /// How much evidence is kept.
    pub retention: Retention,
    /// What nobody wants to hear of.
    pub suppressions: Suppressions,
    /// How large each of the two files of the service's log may grow.
    pub log_limit: u64,
}

/// A mix of the rotation.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Its name, which no other one has.
    pub name: String,
    /// The configuration that `waylay run` would be given.
    pub config: PathBuf,
    /// The profile of it that is used.
    pub profile: Option<String>,
    /// Its part of the time, relative to the others.
    pub share: f64,
    /// How long one turn lasts; as long as its configuration says when absent.
    pub duration: Option<Duration>,
    /// What ends a turn early.
    pub stop: Conditions,
}

/// The engine that mixes are handed to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fleet {
    /// Which one.
    pub engine: Engine,
    /// How many shards a night has.
    pub shards: u64,
    /// How many of them at the same time, at most.
    pub at_most: Option<u64>,
    /// The bucket that shards leave their results in, if they do not share the folder.
    pub bucket: Option<String>,
    /// Longest time of a shard, as Slurm takes it.
    pub time: Option<String>,
    /// The partition of Slurm.
    pub partition: Option<String>,
    /// Further options for sbatch.
    pub options: Vec<String>,
}

/// Where the dashboard is, and who may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dashboard {
    /// Address and port.
    pub listen: SocketAddr,
    /// A file with the token that has to be shown; needed for any address but the loopback.
    pub token_file: Option<PathBuf>,
    /// Names under which the dashboard is reached beside addresses, such as that of a proxy.
    pub hosts: Vec<String>,
    /// The address that messages link to, without a slash at its end; where it listens when absent.
    pub url: Option<String>,
}

impl Dashboard {
    /// What addresses of its pages begin with, when it listens at `at`; none where that is no address that leads anywhere.
    pub fn base(&self, at: SocketAddr) -> Option<String> {
        let listens = (!at.ip().is_unspecified()).then(|| format!("http://{at}"));
        self.url.clone().or(listens)
    }
}

/// Who is told of new failures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Webhook {
    /// Where to post.
    pub url: String,
    /// At most one message in this time; what comes up meanwhile is in the next.
    pub every: Duration,
}

/// How much evidence is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Campaigns.
    pub campaigns: Option<u64>,
    /// Bytes.
    pub bytes: Option<u64>,
    /// Time since they began.
    pub age: Option<Duration>,
}

/// Values of keys that a file leaves out.
pub mod default {
    use super::*;

    /// The port; nothing else is known to use it.
    pub const PORT: u16 = 7979;
    /// One message a minute is read; one a second is muted.
    pub const WEBHOOK_EVERY: Duration = Duration::from_secs(60);
    /// A night of lines, several times over.
    pub const LOG_LIMIT: u64 = 10 << 20;
}

/// Reads a configuration of the service. A plain mix is one, too: it runs again and again, at any time.
pub fn load(path: &Path) -> Result<Config, LoadError> {
    let source = driver::source_of(path)?;
    let folder = path.parent().map(Path::to_owned).unwrap_or_default();
    Ok(parse(source, path, &folder)?)
}

/// Reads a configuration from text; `path` is where it is from and `folder` what paths are relative to.
pub fn parse(source: Source, path: &Path, folder: &Path) -> Result<Config, Diagnostics> {
    let (config, _): (Config, Arc<Source>) =
        driver::read(source, |document, findings| read::config(document, findings, path, folder))?;
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Config, String> {
        let source = Source::new("nightly.toml", text);
        parse(source, Path::new("night/nightly.toml"), Path::new("night"))
            .map_err(|problems| problems.render(false))
    }

    #[test]
    fn a_whole_configuration_is_read() {
        let config = read(
            r#"
            out = "results"
            time-zone = "Europe/Berlin"
            [[window]]
            from = "22:00"
            to = "06:30"
            days = ["mon", "Friday"]
            [[mix]]
            name = "a"
            config = "a.toml"
            share = 2
            duration = "30m"
            stop-after-failures = 5
            stop-after-quiet = "10m"
            [[mix]]
            name = "b"
            config = "/etc/b.toml"
            [fleet]
            on = "slurm"
            shards = 64
            at-most = 16
            bucket = "s3://nights/team"
            time = "08:00:00"
            partition = "low"
            sbatch = ["--mem=4G"]
            [dashboard]
            listen = "0.0.0.0:80"
            token-file = "token"
            hosts = ["night.example"]
            url = "https://night.example/waylay/"
            [webhook]
            url = "https://example.org/x"
            every = "5m"
            [retention]
            campaigns = 100
            bytes = "2GiB"
            age = "90d"
            [[suppression]]
            reason = "ticket 7"
            until = "2026-12-31"
            test = "queue-*"
            kind = "deadlock"
            "#,
        )
        .unwrap();
        assert_eq!(config.windows.list[0].days.len(), 2);
        assert_eq!(config.mixes[0].config, Path::new("night/a.toml"));
        assert_eq!(config.mixes[1].config, Path::new("/etc/b.toml"));
        assert_eq!((config.mixes[0].share, config.mixes[1].share), (2.0, 1.0));
        assert_eq!(config.mixes[0].stop.failures, Some(5));
        let fleet = config.fleet.unwrap();
        assert_eq!((fleet.engine, fleet.shards, fleet.at_most), (Engine::Slurm, 64, Some(16)));
        assert_eq!((fleet.bucket.as_deref(), &*fleet.options[0]), (Some("s3://nights/team"), "--mem=4G"));
        let dashboard = config.dashboard.unwrap();
        assert_eq!(dashboard.listen.to_string(), "0.0.0.0:80");
        assert_eq!(dashboard.token_file.as_deref(), Some(Path::new("night/token")));
        assert_eq!(dashboard.url.as_deref(), Some("https://night.example/waylay"));
        assert_eq!(
            config.retention,
            Retention {
                campaigns: Some(100),
                bytes: Some(2 << 30),
                age: Some(Duration::from_secs(90 * 86_400))
            }
        );
        assert_eq!(config.suppressions.list().len(), 1);
    }

    #[test]
    fn little_is_enough_and_listens_on_the_loopback_only() {
        let config = read("[[mix]]\nname = \"a\"\nconfig = \"a.toml\"").unwrap();
        let dashboard = config.dashboard.unwrap();
        assert!(dashboard.listen.ip().is_loopback() && dashboard.token_file.is_none());
        assert!(config.windows.list.is_empty() && config.webhook.is_none());
    }

    #[test]
    fn a_plain_mix_is_served_as_it_is() {
        let config = read("duration = \"1m\"\n[[scenario]]\nname = \"s\"\n").unwrap();
        assert_eq!(config.mixes.len(), 1);
        assert_eq!(config.mixes[0].config, Path::new("night/nightly.toml"));
        assert_eq!(config.mixes[0].name, "nightly");
    }

    #[test]
    fn every_problem_is_found_at_once_with_what_was_meant() {
        let problems = read(
            "[[window]]\nfrom = \"25:00\"\ntoo = \"06:00\"\ndays = [\"moon\"]\n\
             [[mix]]\nname = \"a\"\nconfig = \"a\"\nshare = 0\n[[mix]]\nname = \"a\"\nconfig = \"b\"\n\
             [dashboard]\nlisten = \"0.0.0.0:80\"\n[webhook]\nurl = \"ftp://x\"\n[[suppression]]\nuntil = \"soon\"\n\
             [retention]\nage = 0\n[fleet]\non = \"cloud\"\nshards = 0\nbucket = \"nights\"\n",
        )
        .unwrap_err();
        for text in [
            "nightly.toml:2:8",
            "did you mean `to`?",
            "moon",
            "share",
            "two mixes are named `a`",
            "needs a `token-file`",
            "http",
            "needs a `reason`",
            "soon",
            "`cloud` is no engine",
            "a night has at least one shard",
            "is no address of a bucket",
        ] {
            assert!(problems.contains(text), "{text} is not in\n{problems}");
        }
    }
}
