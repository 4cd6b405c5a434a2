//! A config file as it was written: every key typed and placed, nothing decided yet.
//!
//! Optional keys stay optional here, so that `[defaults]` can fill what a test leaves open and the command
//! line can replace what the file says. [`validate`](super::validate) turns this into a
//! [`Config`](super::Config).

use std::path::PathBuf;
use std::time::Duration;

use toml::de::DeTable;
use waylay_dist::Seed;
use waylay_evidence::DumpSize;

use super::bytes::ByteSize;
use super::diagnostic::Findings;
use super::dump::DumpFormat;
use super::mode::{FileMode, Mode};
use super::pattern::Pattern;
use super::randomizer::RandomizerKeys;
use super::reader::TableReader;
use super::source::{At, Span};
use super::strict::StrictKeys;
use super::test_table::{TestKeys, TestTable};

type Optional<T> = Option<At<T>>;

/// The whole file.
pub(super) struct ConfigFile {
    pub(super) seed: Optional<Seed>,
    pub(super) duration: Optional<Duration>,
    pub(super) out: Optional<PathBuf>,
    pub(super) plugin_path: Vec<At<PathBuf>>,
    pub(super) defaults: TestKeys,
    pub(super) scenarios: Vec<ScenarioTable>,
    pub(super) randomizer: Option<RandomizerKeys>,
    pub(super) leaks: LeakKeys,
    pub(super) evidence: EvidenceKeys,
}

/// One `[[scenario]]`.
pub(super) struct ScenarioTable {
    pub(super) span: Span,
    pub(super) name: Optional<String>,
    pub(super) mode: Optional<Mode>,
    pub(super) duration: Optional<Duration>,
    pub(super) share: Optional<f64>,
    pub(super) randomizer: Option<RandomizerKeys>,
    pub(super) strict: StrictKeys,
    pub(super) dump: Optional<DumpSize>,
    pub(super) tests: Vec<TestTable>,
}

/// `[leaks]`.
#[derive(Default)]
pub(super) struct LeakKeys {
    pub(super) enabled: Optional<bool>,
    pub(super) sample_bytes: Optional<ByteSize>,
    pub(super) warm_up: Optional<Duration>,
    pub(super) false_alarms_per_hour: Optional<f64>,
    pub(super) handles: Optional<bool>,
    pub(super) threads: Optional<bool>,
}

/// `[evidence]`.
#[derive(Default)]
pub(super) struct EvidenceKeys {
    pub(super) dump: Optional<DumpSize>,
    pub(super) has_formats: bool,
    pub(super) dump_format: Vec<At<DumpFormat>>,
    pub(super) dump_limit: Optional<ByteSize>,
    pub(super) dumps_per_signature: Optional<u32>,
    pub(super) max_signatures: Optional<u32>,
    pub(super) keep_hung: Optional<bool>,
    pub(super) log_limit: Optional<ByteSize>,
    pub(super) mode: Optional<FileMode>,
    pub(super) redact: Vec<At<Pattern>>,
}

impl ConfigFile {
    pub(super) fn read(document: &DeTable<'_>, findings: &Findings) -> Self {
        let mut reader = TableReader::new(document, Span::default(), "a config", findings);
        let file = Self {
            seed: reader.optional("seed"),
            duration: reader.optional("duration"),
            out: reader.optional("out"),
            plugin_path: reader.list("plugin-path"),
            defaults: reader.table("defaults", "defaults").map(TestKeys::read_alone).unwrap_or_default(),
            scenarios: reader
                .required_tables("scenario", "a scenario", "add a [[scenario]] with a [[scenario.test]]")
                .into_iter()
                .map(ScenarioTable::read)
                .collect(),
            randomizer: reader.table("randomizer", "randomizer").map(RandomizerKeys::read),
            leaks: reader.table("leaks", "leaks").map(LeakKeys::read).unwrap_or_default(),
            evidence: reader.table("evidence", "evidence").map(EvidenceKeys::read).unwrap_or_default(),
        };
        reader.known_before(&["include", "profile"]);
        reader.finish();
        file
    }
}

impl ScenarioTable {
    fn read(mut reader: TableReader<'_, '_>) -> Self {
        let scenario = Self {
            span: reader.span(),
            name: reader.required("name"),
            mode: reader.optional("mode"),
            duration: reader.optional("duration"),
            share: reader.optional("share"),
            randomizer: reader.table("randomizer", "randomizer").map(RandomizerKeys::read),
            strict: StrictKeys {
                strategy: reader.optional("strategy"),
                depth: reader.optional("depth"),
                runs: reader.optional("runs"),
                stop_after_quiet: reader.optional("stop-after-quiet"),
                max_steps: reader.optional("max-steps"),
                limit_is_failure: reader.optional("limit-is-failure"),
                idle_timeouts: reader.renamed("idle-timeouts", "timeouts"),
                memory: reader.optional("memory"),
                level: reader.optional("level"),
                patch: reader.optional("patch"),
                minimize: reader.optional("minimize"),
            },
            dump: reader.optional("dump"),
            tests: reader
                .required_tables("test", "a test", "add a [[scenario.test]]")
                .into_iter()
                .map(TestTable::read)
                .collect(),
        };
        reader.finish();
        scenario
    }
}

impl LeakKeys {
    fn read(mut reader: TableReader<'_, '_>) -> Self {
        let keys = Self {
            enabled: reader.optional("enabled"),
            sample_bytes: reader.optional("sample-bytes"),
            warm_up: reader.optional("warm-up"),
            false_alarms_per_hour: reader.optional("false-alarms-per-hour"),
            handles: reader.optional("handles"),
            threads: reader.optional("threads"),
        };
        reader.finish();
        keys
    }
}

impl EvidenceKeys {
    fn read(mut reader: TableReader<'_, '_>) -> Self {
        let keys = Self {
            dump: reader.optional("dump"),
            has_formats: reader.has("dump-format"),
            dump_format: reader.list("dump-format"),
            dump_limit: reader.optional("dump-limit"),
            dumps_per_signature: reader.optional("dumps-per-signature"),
            max_signatures: reader.optional("max-signatures"),
            keep_hung: reader.optional("keep-hung"),
            log_limit: reader.optional("log-limit"),
            mode: reader.optional("mode"),
            redact: reader.list("redact"),
        };
        reader.finish();
        keys
    }
}
