//! Key by key from tables to [`Config`].

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::civil::{Date, Time, Weekday};
use jiff::tz::TimeZone;
use waylay_driver::config::reading::{Findings, TableReader};
use waylay_driver::config::{At, ByteSize, Diagnostic, Pattern, Span};
use waylay_findings::Kind;
use waylay_fleet::engine::Engine;
use waylay_history::suppression::{Suppression, Suppressions};

use super::values::{Read, every_day};
use super::{Config, Dashboard, Fleet, Mix, Retention, Webhook, default};
use crate::stop::Conditions;
use crate::sys;
use crate::window::{Window, Windows};

type Table<'i> = toml::de::DeTable<'i>;

/// What is wrong has been replaced by something so that the rest is checked in the same pass.
pub(super) fn config(document: &Table<'_>, findings: &Findings, path: &Path, folder: &Path) -> Config {
    // Only mixes have scenarios, or include them.
    if document.contains_key("scenario") || document.contains_key("include") {
        return plain(path);
    }
    let mut reader = TableReader::new(document, Span::default(), "a service", findings);
    let out = value(reader.optional::<PathBuf>("out")).unwrap_or_else(|| PathBuf::from("waylay-out"));
    let zone = reader.optional::<Read<TimeZone>>("time-zone").map_or_else(TimeZone::system, |at| at.value.0);
    let list = reader.tables("window", "a window").into_iter().filter_map(window).collect();
    let fleet = reader.table("fleet", "fleet").and_then(fleet);
    let mixes: Vec<(Span, Mix)> = reader
        .required_tables("mix", "a mix", "add a [[mix]] with a `name` and a `config`")
        .into_iter()
        .map(|table| mix(table, folder))
        .collect();
    for (place, (span, mix)) in mixes.iter().enumerate() {
        if let Some((first, _)) = mixes[..place].iter().find(|(_, other)| other.name == mix.name) {
            findings.add(
                Diagnostic::error(*span, format!("two mixes are named `{}`", mix.name))
                    .related(*first, "the first is here"),
            );
        }
    }
    let dashboard = match reader.table("dashboard", "dashboard") {
        Some(table) => dashboard(table, folder),
        None => Some(loopback()),
    };
    let webhook = reader.table("webhook", "webhook").and_then(webhook);
    let retention = reader.table("retention", "retention").map(retention).unwrap_or_default();
    let suppressions =
        reader.tables("suppression", "a suppression").into_iter().filter_map(suppression).collect();
    let log_limit = value(reader.optional::<ByteSize>("log-limit")).map_or(default::LOG_LIMIT, |size| size.0);
    reader.finish();
    Config {
        out,
        windows: Windows { list, zone: zone.clone() },
        fleet,
        mixes: mixes.into_iter().map(|(_, mix)| mix).collect(),
        dashboard,
        webhook,
        retention,
        suppressions: Suppressions::new(suppressions, zone.clone()),
        zone,
        log_limit,
    }
}

fn value<T>(at: Option<At<T>>) -> Option<T> {
    at.map(|at| at.value)
}

fn loopback() -> Dashboard {
    Dashboard {
        listen: SocketAddr::from(([127, 0, 0, 1], default::PORT)),
        token_file: None,
        hosts: Vec::new(),
        url: None,
    }
}

/// A mix that is served as it is.
fn plain(path: &Path) -> Config {
    let name = path.file_stem().map_or_else(|| "mix".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let zone = TimeZone::system();
    Config {
        out: PathBuf::from("waylay-out"),
        windows: Windows { list: Vec::new(), zone: zone.clone() },
        fleet: None,
        mixes: vec![Mix {
            name,
            config: path.to_owned(),
            profile: None,
            share: 1.0,
            duration: None,
            stop: Conditions::default(),
        }],
        dashboard: Some(loopback()),
        webhook: None,
        retention: Retention::default(),
        suppressions: Suppressions::new(Vec::new(), zone.clone()),
        zone,
        log_limit: default::LOG_LIMIT,
    }
}

fn window(mut table: TableReader<'_, '_>) -> Option<Window> {
    let from = table.required::<Read<Time>>("from");
    let to = table.required::<Read<Time>>("to");
    let days: Vec<Weekday> = table.list::<Read<Weekday>>("days").into_iter().map(|day| day.value.0).collect();
    let all = !table.has("days");
    table.finish();
    let days = if all { every_day() } else { days };
    Some(Window { from: from?.value.0, to: to?.value.0, days })
}

fn mix(mut table: TableReader<'_, '_>, folder: &Path) -> (Span, Mix) {
    let findings = table.findings();
    let name = table.required::<String>("name");
    let span = name.as_ref().map_or(table.span(), |name| name.span);
    let config = value(table.required::<PathBuf>("config")).unwrap_or_default();
    let profile = value(table.optional::<String>("profile"));
    let share = table.optional::<f64>("share");
    if let Some(share) = &share
        && !(share.value > 0.0 && share.value.is_finite())
    {
        findings.add(Diagnostic::error(share.span, "a mix's share must be above zero"));
    }
    let duration = table.optional::<Duration>("duration");
    if let Some(At { value: Duration::ZERO, span }) = duration {
        findings.add(Diagnostic::error(span, "a turn must be longer than zero"));
    }
    let stop = Conditions {
        failures: value(table.optional("stop-after-failures")),
        nothing_new_for: value(table.optional("stop-after-quiet")),
    };
    table.finish();
    let mix = Mix {
        name: value(name).unwrap_or_default(),
        config: folder.join(config),
        profile,
        share: value(share).unwrap_or(1.0),
        duration: value(duration),
        stop,
    };
    (span, mix)
}

fn fleet(mut table: TableReader<'_, '_>) -> Option<Fleet> {
    let findings = table.findings();
    let span = table.span();
    let on = table.required::<String>("on");
    let engine = on.as_ref().and_then(|on| match on.value.as_str() {
        "local" => Some(Engine::Local),
        "slurm" => Some(Engine::Slurm),
        other => {
            let help = match other {
                "kubernetes" => {
                    "give the manifests of `waylay fleet run --on kubernetes` to a CronJob of the cluster"
                }
                _ => "known here: local, slurm",
            };
            findings.add(
                Diagnostic::error(
                    on.span,
                    format!("`{other}` is no engine that the service hands nights to"),
                )
                .help(help),
            );
            None
        }
    });
    let shards = table.required::<u64>("shards");
    let at_most = table.optional::<u64>("at-most");
    if [&shards, &at_most].into_iter().flatten().any(|number| number.value == 0) {
        findings
            .add(Diagnostic::error(span, "a night has at least one shard, and runs at least one at a time"));
    }
    let bucket = table.optional::<String>("bucket");
    if let Some(bucket) = bucket.as_ref().filter(|bucket| !bucket.value.starts_with("s3://")) {
        let words = format!("`{}` is no address of a bucket", bucket.value);
        findings.add(Diagnostic::error(bucket.span, words).help("say s3://bucket/folder"));
    }
    let time = value(table.optional("time"));
    let partition = value(table.optional("partition"));
    let options = table.list("sbatch").into_iter().map(|option| option.value).collect();
    table.finish();
    Some(Fleet {
        engine: engine?,
        shards: shards?.value.max(1),
        at_most: value(at_most),
        bucket: value(bucket),
        time,
        partition,
        options,
    })
}

fn dashboard(mut table: TableReader<'_, '_>, folder: &Path) -> Option<Dashboard> {
    let findings = table.findings();
    let span = table.span();
    let enabled = value(table.optional("enabled")).unwrap_or(true);
    let listen = table.optional::<Read<SocketAddr>>("listen");
    let place = listen.as_ref().map_or(span, |at| at.span);
    let listen = listen.map_or_else(|| loopback().listen, |at| at.value.0);
    let token_file = value(table.optional::<PathBuf>("token-file")).map(|file| folder.join(file));
    let hosts = table.list("hosts").into_iter().map(|host| host.value).collect();
    let url = table.optional::<String>("url");
    table.finish();
    if let Some(url) = &url
        && !is_address(&url.value)
    {
        findings.add(Diagnostic::error(url.span, "a dashboard's address begins with http:// or https://"));
    }
    if token_file.is_none() && !listen.ip().is_loopback() {
        findings.add(
            Diagnostic::error(place, "a dashboard that others can reach needs a `token-file`")
                .help(format!("make one with `{}`", sys::MAKE_TOKEN)),
        );
    }
    enabled.then_some(Dashboard {
        listen,
        token_file,
        hosts,
        url: value(url).map(|url| url.trim_end_matches('/').to_owned()),
    })
}

fn is_address(text: &str) -> bool {
    text.starts_with("http://") || text.starts_with("https://")
}

fn webhook(mut table: TableReader<'_, '_>) -> Option<Webhook> {
    let findings = table.findings();
    let url = table.required::<String>("url");
    if let Some(url) = &url
        && !is_address(&url.value)
    {
        findings.add(Diagnostic::error(url.span, "a webhook's address begins with http:// or https://"));
    }
    let every = value(table.optional("every")).unwrap_or(default::WEBHOOK_EVERY);
    table.finish();
    Some(Webhook { url: url?.value, every })
}

fn retention(mut table: TableReader<'_, '_>) -> Retention {
    let retention = Retention {
        campaigns: value(table.optional("campaigns")),
        bytes: value(table.optional::<ByteSize>("bytes")).map(|size| size.0),
        age: value(table.optional("age")),
    };
    table.finish();
    retention
}

fn suppression(mut table: TableReader<'_, '_>) -> Option<Suppression> {
    let findings = table.findings();
    let span = table.span();
    let reason = table.required::<String>("reason");
    let until = table.required::<Read<Date>>("until");
    let signature = value(table.optional::<Pattern>("signature"));
    let test = value(table.optional::<Pattern>("test"));
    let kind = table.optional::<String>("kind");
    if let Some(kind) = &kind
        && Kind::from_word(&kind.value).is_none()
    {
        findings.add(
            Diagnostic::error(kind.span, format!("unknown kind `{}`", kind.value))
                .help(waylay_driver::config::suggestion::help(&kind.value, Kind::WORDS)),
        );
    }
    if signature.is_none() && test.is_none() && kind.is_none() {
        findings.add(
            Diagnostic::error(span, "a suppression of everything hides everything")
                .help("name a `signature`, a `test` or a `kind`"),
        );
    }
    table.finish();
    Some(Suppression { reason: reason?.value, until: until?.value.0, signature, test, kind: value(kind) })
}
