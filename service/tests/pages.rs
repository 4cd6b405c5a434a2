//! What the dashboard says with nothing behind it, with one night and with a hundred, and of the builds of a failure.

mod support;

use jiff::{Span, Timestamp};
use support::{Served, nights};
use waylay_history::History;
use waylay_history::sighting::Sighting;
use waylay_history::write::Context;

fn start() -> Timestamp {
    "2026-08-01T22:00:00Z".parse().unwrap()
}

#[test]
fn pages_without_anything_say_what_will_come() {
    let served = Served::new(|_| (), "");
    for (path, words) in [
        ("/", "With the first campaign its numbers come here"),
        ("/failures", "What campaigns find is listed here"),
        ("/campaigns", "the first begins when a window opens"),
        ("/trends", "After the first one there is"),
        ("/suppressions", "is counted and listed here"),
    ] {
        let (status, text) = served.get(path);
        assert_eq!(status, 200);
        assert!(text.contains(words), "{path}: {text}");
    }
}

/// So many nights with two campaigns each, of a mix and by hand.
fn some_nights(out: &std::path::Path, number: i64) {
    let mut history = History::open(out).unwrap();
    for night in 0..number {
        for (hour, mix) in [(0, Some("libraries")), (1, None)] {
            let at = start() + Span::new().hours(24 * night + hour);
            let record = nights::record(&at.strftime("%Y%m%d-%H%M%S").to_string(), at, &[("map", 5)]);
            history.put(&record, &[], &Context { mix: mix.map(str::to_owned), ..nights::utc() }).unwrap();
        }
    }
}

#[test]
fn trends_show_the_campaigns_of_one_night_and_each_of_a_hundred() {
    let bars = |text: &str| text.matches("<title>5 iterations</title>").count();
    let one = Served::new(|out| some_nights(out, 1), "").get("/trends").1;
    assert!(one.contains("per campaign"), "{one}");
    assert_eq!(bars(&one), 2, "{one}");
    let hundred = Served::new(|out| some_nights(out, 100), "").get("/trends").1;
    assert!(hundred.contains("per night") && !hundred.contains("per campaign"), "{hundred}");
    assert_eq!(hundred.matches("<title>10 iterations</title>").count(), 100, "{hundred}");
}

#[test]
fn campaigns_are_called_by_what_ran() {
    let served = Served::new(|out| some_nights(out, 1), "");
    let list = served.get("/campaigns").1;
    // One is a turn of a mix, the other was run by hand and has one scenario.
    for (name, title) in [("20260801-220000", "libraries"), ("20260801-230000", "night")] {
        assert!(list.contains(&format!("<a href=\"/campaign/{name}\">{title}</a>")), "{title}: {list}");
        let page = served.get(&format!("/campaign/{name}")).1;
        assert!(page.contains(&format!("<h1>{title}, 2026-08-01 2")), "{title}: {page}");
    }
}

#[test]
fn a_failure_says_since_which_build_it_is_seen() {
    let served = Served::new(
        |out| {
            let mut history = History::open(out).unwrap();
            for (night, commit) in ["3f2a9c1", "77aa001"].into_iter().enumerate() {
                let at = start() + Span::new().hours(24 * night as i64);
                let name = at.strftime("%Y%m%d-%H%M%S").to_string();
                let mut record = nights::record(&name, at, &[("map", 1000)]);
                let file = serde_json::json!({
                    "file": "/somewhere/libtests.so", "bytes": 1, "build_id": format!("{night}{night}"), "commit": commit,
                });
                let build = serde_json::json!([{ "plugin": "/somewhere/libtests.so", "modules": [file] }]);
                record.builds = serde_json::from_value(build).unwrap();
                let seen =
                    (night == 1).then(|| Sighting::of(&nights::entry("deadlock-1", Some("map"), 90, at)));
                history.put(&record, seen.as_slice(), &nights::utc()).unwrap();
            }
        },
        "",
    );
    let page = served.get("/failure/deadlock-1").1;
    let words = "first seen in libtests.so 11 of commit 77aa001; last clean build libtests.so 00 of commit 3f2a9c1 (1,000 runs)";
    assert!(page.contains(words), "{page}");
}
