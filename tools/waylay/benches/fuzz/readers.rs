//! The readers that are fed: everything that a test, a disk or a stranger on the network can hand to Waylay.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use waylay_driver::archive::{self, FailureFolder, Since};
use waylay_driver::config::{Overrides, Source};
use waylay_report::{html, junit, markdown, sarif, text};

use super::samples::Samples;
use super::{memory, modules};

/// Reads one input.
pub(crate) type Reader = Box<dyn Fn(&[u8])>;

/// What is fed with what.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) samples: Vec<Vec<u8>>,
    /// Whether inputs are text.
    pub(crate) text: bool,
    /// Bytes of what one case of it is worth, compared with the others: slow ones get fewer cases.
    pub(crate) cost: u32,
    pub(crate) read: Reader,
}

fn target(name: &'static str, samples: Vec<Vec<u8>>, cost: u32, text: bool, read: Reader) -> Target {
    Target { name, samples, text, cost, read }
}

/// All of them. Files that are read from disk are written into `place`.
pub(crate) fn all(samples: &Samples, place: &Path) -> Vec<Target> {
    let mut targets = vec![
        target("page", vec![vec![0; memory::PAGE]], 4, false, memory::page()),
        target("region", vec![vec![0; memory::REGION]], 8, false, memory::region()),
        target("event", events(), 1, true, Box::new(event)),
        target("schedule", samples.of_campaign("schedule.bin"), 1, false, Box::new(schedule)),
        target("toml", configs(), 4, true, Box::new(config)),
        target("service-toml", services(), 4, true, Box::new(service)),
        target("memory-map", maps(), 1, true, Box::new(map)),
        campaign_file(samples, place, "campaign.json"),
        campaign_file(samples, place, "failure.json"),
        strict(samples, place),
    ];
    targets.extend(modules::targets(samples, place));
    targets
}

fn events() -> Vec<Vec<u8>> {
    [
        r#"{"event":"test-refused","test":3,"reason":"it does not start"}"#,
        r#"{"event":"plugin-refused","plugin":0,"reason":"no such symbol"}"#,
        r#"{"event":"left-behind","test":0,"run":17,"threads":2}"#,
        r#"{"event":"kinds","names":["row","pair"]}"#,
        r#"{"event":"described","plugin":{"name":"p","version":"1","about":"","tests":[{"name":"t","about":"x","params":[],
           "combines":false,"takes":[]}],"kinds":[],"hooks":[]}}"#,
    ]
    .map(|line| line.as_bytes().to_vec())
    .to_vec()
}

fn event(bytes: &[u8]) {
    if let Ok(event) = serde_json::from_slice::<waylay_host::event::Event>(bytes) {
        let _ = format!("{event:?}");
    }
}

fn schedule(bytes: &[u8]) {
    if let Ok(schedule) = waylay_schedule::Schedule::decode(bytes) {
        let _ = (schedule.steps(), schedule.threads(), schedule.encode());
    }
}

fn configs() -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../configs");
    let entries = fs::read_dir(folder).expect("configurations").flatten().map(|entry| entry.path());
    let is_config = |path: &PathBuf| path.extension().is_some_and(|end| end == "toml");
    let mut paths: Vec<PathBuf> = entries.filter(is_config).collect();
    paths.sort();
    paths.iter().map(|path| fs::read(path).expect("a configuration")).collect()
}

fn config(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    match waylay_driver::config::parse(Source::new("x.toml", text), &Overrides::default()) {
        // What is printed is read again, and says the same.
        Ok(loaded) => {
            let printed = loaded.config.to_string();
            let again = waylay_driver::config::parse(Source::new("y.toml", printed), &Overrides::default());
            if let Err(problems) = again {
                panic!("what was printed is refused: {problems}");
            }
        }
        Err(problems) => {
            let _ = (problems.render(true), serde_json::to_string(&problems));
        }
    }
}

fn services() -> Vec<Vec<u8>> {
    let more = "out = \"out\"\ntime-zone = \"Europe/Berlin\"\n[[window]]\nfrom = \"22:00\"\nto = \"06:00\"\ndays = [\"mon\"]\n\
        [[mix]]\nname = \"a\"\nconfig = \"a.toml\"\nshare = 2\nduration = \"1h\"\nstop-after-failures = 3\n";
    vec![waylay_service::config::DEFAULT.as_bytes().to_vec(), more.as_bytes().to_vec()]
}

fn service(bytes: &[u8]) {
    let source = Source::new("night.toml", String::from_utf8_lossy(bytes).into_owned());
    if let Err(problems) = waylay_service::config::parse(source, Path::new("night.toml"), Path::new("")) {
        let _ = problems.render(false);
    }
}

fn maps() -> Vec<Vec<u8>> {
    vec![fs::read("/proc/self/maps").expect("a map")]
}

fn map(bytes: &[u8]) {
    if let Ok(map) = waylay_evidence::MemoryMap::parse(&String::from_utf8_lossy(bytes)) {
        for address in [0, 1 << 12, 1 << 40, u64::MAX] {
            let _ = (map.find(address), map.readable_from(address), map.is_code(address));
        }
    }
}

/// The folder of a campaign in which one file is another one each time: reports of every form are made of it.
fn campaign_file(samples: &Samples, place: &Path, name: &'static str) -> Target {
    let folder = place.join(format!("{name}.d")).join("20261118-000000");
    copy(&samples.campaign, &folder);
    let failures: Vec<PathBuf> =
        archive::failure_folders(&folder).into_iter().map(|found| found.folder).collect();
    let path = if name == "failure.json" { failures[0].join(name) } else { folder.join(name) };
    let read = move |bytes: &[u8]| {
        fs::write(&path, bytes).expect("a file");
        let made = jiff::Timestamp::UNIX_EPOCH;
        if let Ok(night) = archive::night(&folder, &Since::Last, made) {
            let _ = (html::report(&night), junit::report(&night), markdown::report(&night));
            let _ = (sarif::report(&night, None), text::report(&night), text::failures(&night));
        }
        let found =
            FailureFolder { campaign: folder.clone(), folder: failures[0].clone(), id: "x".to_owned() };
        if let Ok(failure) = archive::read_failure(&found) {
            let _ = (text::failure(&failure, true), archive::timeline(&failure, &found.folder));
        }
    };
    target(name, samples.of_campaign(name), 80, true, Box::new(read))
}

fn strict(samples: &Samples, place: &Path) -> Target {
    let folder = place.join("strict");
    fs::create_dir_all(&folder).expect("a folder");
    let schedule = samples.of_campaign("schedule.bin").pop().expect("a schedule");
    fs::write(folder.join("schedule.bin"), schedule).expect("a file");
    let read = move |bytes: &[u8]| {
        fs::write(folder.join("strict.json"), bytes).expect("a file");
        if let Ok((record, schedule)) = waylay_explore::recording::load(&folder) {
            let conditions = &record.conditions;
            let _ = (record.program.title(), conditions.patience(), schedule.steps());
            let _ = conditions.settings(record.seed, record.index);
        }
    };
    target("strict.json", samples.of_campaign("strict.json"), 4, true, Box::new(read))
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder").flatten() {
        match entry.path().is_dir() {
            true => copy(&entry.path(), &to.join(entry.file_name())),
            false => drop(fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy")),
        }
    }
}

/// How long a shared memory is pretended to be in use.
pub(crate) const AGE: Duration = Duration::from_secs(1);
