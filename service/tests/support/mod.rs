//! A dashboard with nights behind it, and what to ask it with.

#![allow(dead_code, reason = "each test file uses a part")]

pub(crate) mod chromium;
#[path = "../../../framework/history/tests/support/mod.rs"]
pub(crate) mod nights;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;

use jiff::{Span, Timestamp};
use waylay_driver::config::Source;
use waylay_driver::report::Live;
use waylay_driver::store::CampaignState;
use waylay_history::History;
use waylay_history::sighting::Sighting;
use waylay_service::board::{Board, Doing};
use waylay_service::config::{self, Config};
use waylay_service::log::Log;
use waylay_service::reporter::Reporter;
use waylay_service::stop::Conditions;
use waylay_service::web::{self, Site, Web};

/// Text that tries everything.
pub(crate) const HOSTILE: &str = "</script><script>window.owned=1</script><img src=x onerror=\"window.owned=1\">\
    \"'`${1}&lt;\u{202e}<svg/onload=window.owned=1>";

pub(crate) fn config(out: &Path, more: &str) -> Config {
    let text = format!("time-zone = \"UTC\"\n[[mix]]\nname = \"libraries\"\nconfig = \"mix.toml\"\n{more}");
    let mut config = config::parse(Source::new("night.toml", text), Path::new("night.toml"), out).unwrap();
    config.out = out.to_owned();
    if let Some(dashboard) = &mut config.dashboard {
        dashboard.listen.set_port(0);
    }
    config
}

/// A dashboard, and what is on its board.
pub(crate) struct Served {
    pub(crate) web: Web,
    pub(crate) board: Arc<Board>,
    pub(crate) out: tempfile::TempDir,
}

impl Served {
    pub(crate) fn new(fill: impl FnOnce(&Path), more: &str) -> Served {
        let out = tempfile::tempdir().unwrap();
        let token = out.path().join("token");
        std::fs::write(&token, "0123456789abcdef0123\n").unwrap();
        #[cfg(target_os = "linux")]
        std::fs::set_permissions(&token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
        History::open(out.path()).unwrap();
        fill(out.path());
        let config = config(out.path(), more);
        let board = Arc::new(Board::default());
        let dashboard = config.dashboard.clone().unwrap();
        let web = web::start(&dashboard, Site::new(&config, Arc::clone(&board))).unwrap();
        Served { web, board, out }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.web.address()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address())
    }

    /// One request as it is, on a connection of its own: status and everything that came.
    pub(crate) fn raw(&self, request: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(self.address()).unwrap();
        // A server that has heard enough closes while we still write.
        let _ = stream.write_all(request.as_bytes());
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let text = String::from_utf8_lossy(&answer).into_owned();
        (text.get(9..12).and_then(|code| code.parse().ok()).unwrap_or(0), text)
    }

    pub(crate) fn get(&self, path: &str) -> (u16, String) {
        self.get_with(path, "")
    }

    pub(crate) fn get_with(&self, path: &str, headers: &str) -> (u16, String) {
        let host = self.address();
        self.raw(&format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\r\n"))
    }

    /// A campaign at work, on the board, as a driver would tell it.
    pub(crate) fn at_work(&self, seconds: i64) -> Reporter {
        let log = Arc::new(Log::open(&self.out.path().join("serve.log"), 1 << 20).unwrap());
        let mut reporter = Reporter::new(Arc::clone(&self.board), log, Conditions::default());
        self.board.doing(Doing::Running {
            mix: "libraries".into(),
            until: Timestamp::now().checked_add(Span::new().hours(6)).ok(),
        });
        for second in (0..=seconds).step_by((seconds as usize / 120).max(1)) {
            self.tell(&mut reporter, second);
        }
        reporter
    }

    pub(crate) fn tell(&self, reporter: &mut Reporter, second: i64) {
        let started: Timestamp = "2026-11-16T21:00:00Z".parse().unwrap();
        let rate = |second: f64| (40_000.0 * second + 9000.0 * (second / 40.0).sin() * 40.0).max(0.0) as u64;
        let mut record = nights::record(
            "20261116-210000",
            started,
            &[
                ("channel", rate(second as f64) / 2),
                ("map", rate(second as f64) / 3),
                (HOSTILE, rate(second as f64) / 6),
            ],
        );
        record.state = CampaignState::Running;
        record.updated = started + Span::new().seconds(second);
        record.failures = second as u64 / 60;
        record.signatures = (second as u64 / 300).min(4);
        let shares = [0.5, 0.3, 0.2].into_iter().zip([0.51, 0.28, 0.21]);
        for (test, (asked, achieved)) in record.scenarios[0].tests.iter_mut().zip(shares) {
            test.pot = serde_json::from_value(serde_json::json!({
                "container": "melting-pot", "total_ns": 1e9, "deviation_ns": 10.0, "asked": asked, "achieved": achieved,
            }))
            .ok();
        }
        let mut over = record.scenarios[0].clone();
        over.name = "warm-up".into();
        record.scenarios.insert(0, over);
        reporter.campaign(&record, self.out.path());
    }
}

/// Thirty nights with failures of every state, the text of some of them hostile.
pub(crate) fn thirty_nights(out: &Path) {
    let mut history = History::open(out).unwrap();
    for day in 1..=30i64 {
        let started = "2026-10-18T22:00:00Z".parse::<Timestamp>().unwrap() + Span::new().hours(24 * day);
        let tests =
            [("channel", 80_000_000 + day as u64 * 900_000), ("map", 31_000_000), (HOSTILE, 9_000_000)];
        let name = started.strftime("%Y%m%d-%H%M%S").to_string();
        let mut record = nights::record(&name, started, &tests);
        record.updated = started + Span::new().hours(8);
        let mut seen = Vec::new();
        let mut add = |signature: &str, test: &str, count: u64, what: &str| {
            let mut entry = nights::entry(signature, Some(test), count, started + Span::new().minutes(37));
            entry.what = what.to_owned();
            entry.kind = serde_json::from_value(serde_json::json!(signature.split('-').next())).unwrap();
            seen.push(Sighting::of(&entry));
        };
        add(
            "deadlock-b05fe2c2e43f8fce",
            "channel",
            3 + day as u64 % 4,
            "TestMain has not returned for 1.01 s on 2 workers",
        );
        if day % 9 == 2 {
            add(
                "assert-51ac0de0be5e5a1f",
                "map",
                1,
                "assertion failed: entries == 8, found 7 (src/map.rs:211)",
            );
        }
        if day < 21 {
            add("crash-9d1e7c2b7a6f5e43", "channel", 12, "SIGSEGV at 0x18");
        }
        if day == 30 {
            add("assert-00c0ffee00c0ffee", HOSTILE, 2, HOSTILE);
            add("leak-77a1b2c3d4e5f607", "map", 1, "48 bytes per iteration are never freed");
        }
        record.signatures = seen.len() as u64;
        record.failures = seen.iter().map(|one| one.count).sum();
        history.put(&record, &seen, &nights::utc()).unwrap();
    }
}
