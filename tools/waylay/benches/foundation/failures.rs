//! Ten thousand iterations that fail, alike and each differently, must keep memory and disk bounded.

use std::time::Instant;

use crate::Line;
use crate::campaign::Campaign;

const FAILURES: u64 = 10_000;
const MIB: u64 = 1 << 20;

pub(crate) fn measure() -> Vec<Line> {
    let mut lines = Vec::new();
    for (test, most_disk) in [("fail-alike", 10 * MIB), ("fail-differently", 400 * MIB)] {
        let config = format!(
            "duration = '10m'\n[[scenario]]\nname = 'failures'\n[[scenario.test]]\nplugin = 'waylay_faults'\n\
             name = '{test}'\nworkers = 2\niterations = {FAILURES}\nmax-failures = 0\n"
        );
        let began = Instant::now();
        let campaign = Campaign::run(&config);
        let took = began.elapsed().as_secs_f64();
        let total = campaign.summary["campaign"]["failures"].as_u64().expect("failures");
        let signatures = campaign.summary["campaign"]["signatures"].as_u64().expect("signatures");
        lines.push(Line {
            what: format!("{test}: failures counted, signatures kept, seconds"),
            measured: format!("{total}, {signatures}, {took:.1}"),
            promised: "10,000; at most 1,000",
            holds: total == FAILURES && signatures <= 1000,
        });
        lines.push(Line {
            what: format!("{test}: disk, driver's peak memory"),
            measured: format!("{} MiB, {} MiB", campaign.disk() / MIB, campaign.peak_rss / MIB),
            promised: if test == "fail-alike" { "10 MiB, 300 MiB" } else { "400 MiB, 300 MiB" },
            holds: campaign.disk() <= most_disk && campaign.peak_rss <= 300 * MIB,
        });
    }
    lines
}
