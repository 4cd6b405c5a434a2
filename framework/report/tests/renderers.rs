//! Every format, made from data whose every text is hostile: nothing of it may become markup, and nothing may be lost.

use std::process::Command;

use jiff::Timestamp;
use waylay_findings::Kind;
use waylay_report::model::*;
use waylay_report::{html, junit, markdown, sarif, text};

/// What a test could be called by somebody who means harm.
const HOSTILE: &str = "</td></style><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">\
                       ']]>&|`*[x](javascript:1)\u{0}\u{1b}[2J\u{202e}";

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + second).unwrap()
}

fn frame(origin: Origin) -> Frame {
    Frame {
        function: Some(HOSTILE.into()),
        file: Some(format!("/src/{HOSTILE}.rs")),
        line: Some(7),
        module: Some(HOSTILE.into()),
        offset: 16,
        origin,
    }
}

fn failure(id: &str, state: FailureState, times: u64) -> Failure {
    let occurrence = |number: u64| Occurrence {
        at: at(number as i64),
        scenario: HOSTILE.into(),
        worker: number.is_multiple_of(2).then_some(1),
        iteration: number,
        seed: "0x5eed".into(),
        workers: vec![Worker {
            test: HOSTILE.into(),
            worker: 0,
            state: HOSTILE.into(),
            iteration: 1,
            for_ms: 2,
            running: Some(HOSTILE.into()),
            holds: vec![HOSTILE.into()],
        }],
    };
    let frames = vec![frame(Origin::Runtime), frame(Origin::Runtime), frame(Origin::Own)];
    let stack = |thread: u32| Stack {
        thread,
        name: HOSTILE.into(),
        number: (thread == 2).then_some(2),
        doing: HOSTILE.into(),
        crashed: thread == 1,
        frames: frames.clone(),
    };
    Failure {
        id: id.into(),
        signature: HOSTILE.into(),
        kind: Kind::Crash,
        state,
        what: format!("{HOSTILE}\nsecond line"),
        reason: Some(HOSTILE.into()),
        test: Some(HOSTILE.into()),
        plugin: Some(HOSTILE.into()),
        count: times,
        count_ever: times,
        nights: 2,
        first_seen: Some(at(0)),
        last_seen: Some(at(9)),
        occurrences: (0..times.min(20)).map(occurrence).collect(),
        stacks: (1..40).map(stack).collect(),
        gaps: vec![HOSTILE.into()],
        replay: format!("waylay replay '{HOSTILE}'"),
        folder: HOSTILE.into(),
        files: vec![EvidenceFile { name: HOSTILE.into(), bytes: 5 }],
        reproduction: Some(Reproduction { reproduced: 1, runs: 10, seconds: 1.0 }),
        rate: Some(Reproduction { reproduced: 1, runs: 10, seconds: 1.0 }),
        timeline_svg: Some(format!("<svg xmlns=\"http://www.w3.org/2000/svg\">{HOSTILE}</svg>")),
        ..Failure::default()
    }
}

fn night() -> Night {
    let test = |name: &str, iterations: u64| Test {
        name: name.into(),
        iterations,
        average_ns: 1e6,
        ..Test::default()
    };
    let scenario = Scenario {
        name: HOSTILE.into(),
        mode: Mode::Strict,
        seconds: 3.0,
        suspensions: None,
        tests: vec![
            Test {
                retired: Some(HOSTILE.into()),
                strict: Some(StrictNumbers {
                    strategy: "pct:depth=auto".into(),
                    runs: 500,
                    threads: 2,
                    steps: 50,
                    promises: vec![DepthPromise {
                        depth: 1,
                        per_run: 0.5,
                        runs: 500,
                        conditions: vec![HOSTILE.into()],
                    }],
                    schedules_per_second: 100.0,
                    ..StrictNumbers::default()
                }),
                share: Some(Share {
                    pot: HOSTILE.into(),
                    total_ns: 1e9,
                    asked: 0.5,
                    achieved: 0.4,
                    until_retired: None,
                }),
                ..test(HOSTILE, 500)
            },
            test("healthy", 100),
            test("never-ran", 0),
        ],
    };
    let sample = |second: u64| Sample {
        at_s: second as f64,
        iterations: second * 1000,
        failures: second,
        ..Sample::default()
    };
    let point = |number: i64| NightPoint {
        campaign: HOSTILE.into(),
        started: at(number * 86_400),
        seconds: 1.0,
        iterations: 5,
        failures: 2,
        signatures: 2,
        new_signatures: 1,
    };
    Night {
        format: FORMAT,
        made: at(100),
        campaign: Campaign {
            name: HOSTILE.into(),
            state: CampaignState::Interrupted,
            started: at(0),
            updated: at(30),
            seed: HOSTILE.into(),
            environment: Environment {
                system: HOSTILE.into(),
                processor: HOSTILE.into(),
                ..Environment::default()
            },
            problems: vec![HOSTILE.into()],
            notes: vec![HOSTILE.into()],
            hosts: 3,
            scenarios: vec![scenario],
            series: (0..30).map(sample).collect(),
        },
        failures: vec![
            failure("crash-1", FailureState::New, 3),
            failure("crash-2", FailureState::Ongoing, 50),
            failure("crash-3", FailureState::Resolved, 2),
            Failure { suppressed: Some(HOSTILE.into()), ..failure("crash-4", FailureState::Rare, 1) },
        ],
        compared_with: Some(HOSTILE.into()),
        trend: (0..8).map(point).collect(),
    }
}

/// The names of elements in the order in which they begin; panics when the text is no well-formed XML.
fn elements(xml: &str) -> Vec<(String, String)> {
    let mut open: Vec<&str> = Vec::new();
    let mut found = Vec::new();
    let mut rest = xml;
    while let Some(at) = rest.find('<') {
        assert!(!rest[..at].contains('>') && !rest[..at].contains('\0'), "{}", &rest[..at]);
        let end = at + rest[at..].find('>').expect("a tag ends");
        let tag = &rest[at + 1..end];
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        let name = tag.trim_matches('/').split([' ', '/']).next().unwrap_or_default();
        if let Some(closed) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(closed));
        } else if !tag.starts_with('?') {
            found.push((name.to_owned(), tag.to_owned()));
            if !tag.ends_with('/') {
                open.push(name);
            }
        }
        rest = &rest[end + 1..];
    }
    assert!(open.is_empty(), "{open:?}");
    assert!(xml.chars().all(|c| !c.is_control() || c == '\n' || c == '\t'), "XML has no such characters");
    found
}

fn attribute<'a>(tag: &'a str, name: &str) -> &'a str {
    let begin =
        tag.find(&format!(" {name}=\"")).unwrap_or_else(|| panic!("{name} in {tag}")) + name.len() + 3;
    &tag[begin..begin + tag[begin..].find('"').expect("a value ends")]
}

/// What the verdict, the tile and the marks of the rows count is one number, also where some of it is suppressed.
#[test]
fn as_many_are_counted_as_new_as_are_marked_so() {
    for (new, suppressed) in [(0, 0), (0, 2), (9, 0), (7, 2)] {
        let of = |number: usize, suppressed: Option<&str>| {
            let suppressed = suppressed.map(str::to_owned);
            Failure {
                suppressed,
                ..failure(&format!("crash-{number}"), FailureState::New, 1 + number as u64)
            }
        };
        let mut night = night();
        night.failures = vec![failure("crash-ongoing", FailureState::Ongoing, 4)];
        night.failures.extend((0..new).map(|number| of(number, None)));
        night.failures.extend((0..suppressed).map(|number| of(100 + number, Some("ticket 7"))));
        let page = html::report(&night);
        let rows = page.matches("<span class=\"title\"><span class=\"pill new\">new</span>").count();
        assert_eq!(rows, new);
        let tile = page.split("<span>Different failures</span>").nth(1).expect("a tile");
        assert!(
            tile.starts_with(&format!("<b>{}</b><span>{new} new, ", 1 + new + suppressed)),
            "{new}, {suppressed}: {}",
            &tile[..80]
        );
        let verdict = waylay_report::page::verdict_words(&night);
        assert_eq!(verdict.contains(&format!(" {new} new")), new > 0, "{verdict}");
        let told = verdict.contains(&format!("; {suppressed} suppressed"));
        assert_eq!(told, suppressed > 0, "{verdict}");
    }
}

#[test]
fn junit_is_well_formed_counts_right_and_names_are_stable() {
    let report = junit::report(&night());
    let found = elements(&report);
    let all = |name: &str| found.iter().filter(|(element, _)| element == name).count();
    // The test that failed, however often; the healthy one, the one that never ran, and the problem.
    assert_eq!(all("testcase"), 1 + 1 + 1 + 1);
    assert_eq!((all("failure"), all("error"), all("skipped")), (1, 1, 1));
    // Numbers, seeds and workers are properties of the case, and in no name.
    for name in ["signature", "count", "iteration", "seed", "worker"] {
        assert!(report.contains(&format!("<property name=\"{name}\"")), "{name}");
    }
    let again = junit::report(&Night { made: at(500), ..night() });
    let names = |report: &str| -> Vec<(String, String)> {
        let cases = elements(report).into_iter().filter(|(name, _)| name == "testcase");
        cases
            .map(|(_, tag)| (attribute(&tag, "classname").to_owned(), attribute(&tag, "name").to_owned()))
            .collect()
    };
    assert_eq!(names(&report), names(&again));
    assert!(names(&report).iter().all(|(_, name)| !name.contains("iteration") && !name.contains("0x5eed")));
    let total = &found[0].1;
    assert_eq!(found[0].0, "testsuites");
    assert_eq!(attribute(total, "tests"), all("testcase").to_string());
    assert_eq!(attribute(total, "failures"), all("failure").to_string());
    let suites: Vec<&String> =
        found.iter().filter(|(name, _)| name == "testsuite").map(|(_, tag)| tag).collect();
    for name in ["tests", "failures", "errors", "skipped"] {
        let sum: usize =
            suites.iter().map(|tag| attribute(tag, name).parse::<usize>().expect("a number")).sum();
        let element = if name == "tests" { "testcase" } else { name.trim_end_matches('s') };
        assert_eq!(sum, all(element), "{name}");
    }
    let mut names = names(&report);
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), all("testcase"), "no two cases have one name: consumers would fold them");
}

#[test]
fn a_night_in_which_nothing_ran_is_not_green() {
    let mut night = night();
    night.failures.clear();
    night.campaign.problems.clear();
    night.campaign.scenarios[0].tests.iter_mut().for_each(|test| test.iterations = 0);
    assert_eq!(night.verdict(), Verdict::NothingRan);
    assert!(junit::report(&night).contains("nothing-ran"));
    assert_eq!(sarif::report(&night, None)["runs"][0]["invocations"][0]["executionSuccessful"], false);
    assert!(markdown::report(&night).contains("nothing ran"));
    assert!(html::report(&night).contains("Nothing ran"));
}

#[test]
fn sarif_has_what_the_standard_requires() {
    let log = sarif::report(&night(), Some("/src"));
    assert_eq!(log["version"], "2.1.0");
    let run = &log["runs"][0];
    assert_eq!(run["tool"]["driver"]["name"], "Waylay");
    let rules = run["tool"]["driver"]["rules"].as_array().expect("rules");
    let results = run["results"].as_array().expect("results");
    assert_eq!(results.len(), 4);
    let states: Vec<&str> =
        results.iter().map(|one| one["baselineState"].as_str().expect("a state")).collect();
    assert_eq!(states, ["new", "unchanged", "absent", "new"]);
    for result in results {
        assert!(result["message"]["text"].as_str().is_some_and(|text| !text.is_empty()));
        let rule = &rules[result["ruleIndex"].as_u64().expect("an index") as usize];
        assert_eq!(rule["id"], result["ruleId"]);
        let place = &result["locations"][0]["physicalLocation"];
        assert_eq!(place["region"]["startLine"], 7);
        let uri = place["artifactLocation"]["uri"].as_str().expect("an address");
        assert!(uri.is_ascii() && !uri.contains([' ', '<', '"', '\\']), "{uri}");
        assert_eq!(place["artifactLocation"]["uriBaseId"], "SRCROOT");
        for stack in result["stacks"].as_array().expect("stacks") {
            assert!(stack["frames"].as_array().is_some_and(|frames| !frames.is_empty()));
        }
    }
    assert_eq!(results[3]["suppressions"][0]["kind"], "external");
}

#[test]
fn how_often_in_which_mode_is_in_every_format() {
    let mut night = night();
    let rate =
        |mode, reproduced, runs| ModeRate { mode, seen: Reproduction { reproduced, runs, seconds: 1.0 } };
    night.failures[0].rates = vec![rate(Mode::Free, 13, 765_036), rate(Mode::Strict, 3, 7)];
    let words = "free 13 in 765,036 · strict 3 in 7";
    assert!(markdown::report(&night).contains(&format!("how often: {words}")));
    let sarif = sarif::report(&night, None);
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    let message = results[0]["message"]["text"].as_str().unwrap();
    assert!(message.contains(&format!("\nHow often: {words}\n")), "{message}");
    let rates = &results[0]["properties"]["rates"];
    assert_eq!((&rates[1]["mode"], &rates[1]["reproduced"]), (&"strict".into(), &3.into()), "{rates:#}");
    assert!(results[1]["properties"].get("rates").is_none(), "not where there are none");
}

#[test]
fn text_for_terminals_and_job_summaries_commands_nothing() {
    let night = night();
    let (plain, one) = (text::report(&night), text::failure(&night.failures[0], true));
    for text in [&plain, &one] {
        assert!(!text.contains(['\u{1b}', '\0', '\u{202e}']), "{text}");
    }
    let summary = markdown::report(&night);
    assert!(!summary.contains("<script") && !summary.contains("<img"), "{summary}");
    let mut rows = summary.lines().filter(|line| line.starts_with(['|', '-']));
    assert!(rows.all(|row| !row.contains("](") && !row.contains('`')), "{summary}");
    assert!(summary.len() < 1 << 20);
}

#[test]
fn a_report_of_very_many_failures_can_still_be_opened() {
    let mut night = night();
    let mut one = failure("x", FailureState::New, 1);
    one.stacks.truncate(2);
    night.failures =
        (0..10_000).map(|number| Failure { id: format!("crash-{number}"), ..one.clone() }).collect();
    assert!(html::report(&night).len() < 16 << 20, "{}", html::report(&night).len());
    assert!(markdown::report(&night).len() < 1 << 20);
}

/// What a browser makes of a page, with what `script` found out about it in the title.
fn browse(page: &str, width: u32, script: &str) -> Option<String> {
    let Ok(found) = Command::new("chromium").arg("--version").output() else {
        assert!(std::env::var_os("WAYLAY_REQUIRE_REAL_PROGRAMS").is_none(), "chromium is missing");
        eprintln!("chromium is missing: nothing was tested");
        return None;
    };
    assert!(found.status.success());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("report.html");
    std::fs::write(&file, format!("{page}{script}")).unwrap();
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--timeout=30000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
        .arg(format!("--window-size={width},900"))
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn in_a_real_browser_hostile_text_is_inert_and_nothing_is_wider_than_the_screen() {
    let page = html::report(&night());
    assert_eq!(page.matches("<script").count(), 1);
    let Some(seen) = browse(&page, 1280, "") else { return };
    assert!(!seen.contains("<title>owned"), "a script of a test's name ran");
    assert!(seen.contains("document.title='owned'"), "its text is shown");
    // A copy without the policy, so that a script of ours may measure; what was inert by escaping has to stay so.
    let start = page.find("<meta http-equiv").expect("a policy");
    let end = start + page[start..].find('>').expect("its end") + 1;
    let open = format!("{}{}", &page[..start], &page[end..]);
    let measure = "<script>for (const d of document.querySelectorAll('details')) d.open = true;\
                   document.title = document.title + ' wide ' + document.documentElement.scrollWidth + ' of ' + innerWidth;</script>";
    for width in [1280, 500] {
        let Some(seen) = browse(&open, width, measure) else { return };
        let title = &seen[seen.find("<title>").expect("a title")..seen.find("</title>").expect("its end")];
        assert!(title.starts_with("<title>Waylay"), "{title}");
        let (wide, of) =
            title.rsplit_once(" wide ").and_then(|(_, rest)| rest.split_once(" of ")).expect(title);
        assert!(wide.parse::<u32>().unwrap() <= of.parse::<u32>().unwrap(), "{title}");
    }
}

#[test]
fn a_leak_is_drawn_growing() {
    let growth = Growth { of: "open descriptors".into(), points: vec![(0.0, 7.0), (30.0, 900.0)] };
    let failure = Failure { kind: Kind::Leak, growth: Some(growth), ..Failure::default() };
    let page = waylay_report::page::failure_details(&failure, waylay_report::page::FileLinks::default());
    assert!(
        page.contains("How it grows") && page.contains("open descriptors") && page.contains("30 s"),
        "{page}"
    );
    let without = Failure { growth: None, ..failure };
    let page = waylay_report::page::failure_details(&without, waylay_report::page::FileLinks::default());
    assert!(!page.contains("How it grows"), "{page}");
}
