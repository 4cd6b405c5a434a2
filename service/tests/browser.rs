//! The dashboard in a real browser: wide and narrow, light and dark, with hostile text in everything.
//!
//! With WAYLAY_PICTURES=FOLDER every page is also kept as a picture.

#![cfg(target_os = "linux")]

mod support;

use std::io::Write as _;
use std::process::{Command, Stdio};

use jiff::Timestamp;
use support::chromium::{self, Chromium};
use support::{HOSTILE, Served, nights, thirty_nights};
use waylay_driver::report::Live;
use waylay_history::History;
use waylay_history::sighting::Sighting;

const PAGES: [(&str, &str); 11] = [
    ("live", "/"),
    ("failures", "/failures"),
    ("failure", "/failure/deadlock-b05fe2c2e43f8fce"),
    ("hostile", "/failure/assert-00c0ffee00c0ffee"),
    ("campaigns", "/campaigns"),
    ("campaign", "/campaign/20261116-220000"),
    ("trends", "/trends"),
    ("trend", "/trends?test=map"),
    ("night", "/night/2026-11-17"),
    ("suppressions", "/suppressions"),
    ("nothing", "/failures?q=nothing+fits"),
];

/// Tables that are cut at the right: what they are, and by how much.
const CUT: &str = "[...document.querySelectorAll('.scroll')].filter((one) => one.scrollWidth > one.clientWidth + 1)\
    .map((one) => one.querySelector('thead')?.textContent + ': ' + one.scrollWidth + ' of ' + one.clientWidth).join('; ')";

/// Text with less contrast than WCAG asks of small text, 4.5 to 1. A background is that of the nearest element that has
/// one; what is half transparent is mixed with it.
const PALE: &str = r#"(() => {
    const parts = (colour) => (colour.match(/[\d.]+/g) || []).map(Number);
    const mix = (above, below, part) => above.map((value, place) => value * part + below[place] * (1 - part));
    const light = (rgb) => {
        const [r, g, b] = rgb.map((value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = (element) => {
        for (let one = element; one; one = one.parentElement) {
            const [r, g, b, a = 1] = parts(getComputedStyle(one).backgroundColor);
            if (a === 1) return [r, g, b];
        }
        return [255, 255, 255];
    };
    const pale = new Set();
    for (const element of document.querySelectorAll('body *')) {
        const own = [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
        if (!own || !element.getClientRects().length || ['SCRIPT', 'STYLE', 'OPTION'].includes(element.tagName)) continue;
        const style = getComputedStyle(element);
        const back = behind(element);
        const [r, g, b, a = 1] = parts(style.color);
        const front = mix([r, g, b], back, a * Number(style.opacity));
        const [high, low] = [light(front), light(back)].sort((x, y) => y - x);
        const ratio = (high + 0.05) / (low + 0.05);
        if (ratio < 4.5) pale.add(element.tagName + '.' + element.className + ' ' + ratio.toFixed(2));
    }
    return [...pale].join('; ');
})()"#;

/// Numbers whose word does not fit them.
const ONE_OF_MANY: &str = r#"(document.body.innerText.match(/(^|[^\d.,:-])1 (failures|threads|nights|times|iterations|tests|campaigns|steps|suspensions|workers)\b/g) || []).join('; ')"#;

/// A failure with evidence in a folder, its stacks real and its names hostile.
fn with_evidence(out: &std::path::Path) {
    thirty_nights(out);
    let mut history = History::open(out).unwrap();
    let started: Timestamp = "2026-11-17T22:00:00Z".parse().unwrap();
    let record = nights::record("20261117-220000", started, &[("channel", 5), ("map", 5), (HOSTILE, 5)]);
    let frame = |function: &str, file: &str, line: u32, module: &str| {
        serde_json::json!({
            "function": function, "file": file, "line": line, "module": module, "offset": 4660, "address": 4660,
            "trust": "tables",
        })
    };
    for (signature, test) in [("deadlock-b05fe2c2e43f8fce", "channel"), ("assert-00c0ffee00c0ffee", HOSTILE)]
    {
        let mut entry = nights::entry(signature, Some(test), 4, started);
        entry.what = "TestMain has not returned for 1.01 s on 2 workers".into();
        entry.reason = Some("2 threads wait in mutex.rs:lock, no CPU was used in 100 ms".into());
        if test == HOSTILE {
            entry.what = HOSTILE.into();
        }
        let stack = |id: u32, name: &str, own: &str| {
            serde_json::json!({
                "id": id, "name": name, "state": "sleeping", "wait": "thread-untimed", "cpu_ns": 1, "wakeups": 1,
                "end": "root",
                "frames": [
                    frame("syscall", "../sysdeps/unix/sysv/linux/x86_64/syscall.S", 38, "/lib/x86_64-linux-gnu/libc.so.6"),
                    frame("std::sys::sync::mutex::futex::Mutex::lock_contended", "/rustc/x/library/std/src/sys/sync/mutex/futex.rs", 78, "/opt/tests/libtests.so"),
                    frame(own, "src/transfer.rs", 40, "/opt/tests/libtests.so"),
                    frame("tests::Bank::run", "src/transfer.rs", 88, "/opt/tests/libtests.so"),
                    frame("waylay_plugin::boundary::call", "framework/plugin/src/boundary.rs", 12, "/opt/tests/libtests.so"),
                ],
            })
        };
        let own = if test == HOSTILE { HOSTILE } else { "tests::transfer" };
        entry.stacks = serde_json::from_value(serde_json::json!([
            stack(7, "iteration-0", own),
            stack(8, "iteration-1", own)
        ]))
        .unwrap();
        let folder = out.join("20261117-220000/failures").join(signature);
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("failure.json"), serde_json::to_vec(&entry).unwrap()).unwrap();
        std::fs::write(folder.join("stacks.txt"), "stacks\n").unwrap();
        history.put(&record, &[Sighting::of(&entry)], &nights::utc()).unwrap();
    }
}

fn keep(name: &str, picture: &str) {
    let Some(folder) = std::env::var_os("WAYLAY_PICTURES") else { return };
    std::fs::create_dir_all(&folder).unwrap();
    let file = std::fs::File::create(std::path::Path::new(&folder).join(format!("{name}.png"))).unwrap();
    let mut decoder =
        Command::new("base64").arg("-d").stdin(Stdio::piped()).stdout(Stdio::from(file)).spawn().unwrap();
    decoder.stdin.take().unwrap().write_all(picture.as_bytes()).unwrap();
    assert!(decoder.wait().unwrap().success());
}

#[test]
fn pages_fit_run_no_foreign_script_and_raise_no_complaint() {
    let Some(program) = chromium::program() else { return };
    let served = Served::new(with_evidence, "");
    let mut reporter = served.at_work(5400);
    for (kind, test) in [("a", Some("channel")), ("b", Some(HOSTILE)), ("c", None)] {
        let mut entry = nights::entry(&format!("deadlock-{kind}"), test, 1, Timestamp::now());
        entry.what = HOSTILE.repeat(3);
        reporter.failure(&entry, served.out.path());
    }
    reporter.note(HOSTILE);
    let mut browser = Chromium::start(program);
    for (width, dark) in [(1280, false), (1280, true), (400, false), (400, true)] {
        browser.dress(width, 900, dark);
        for (name, path) in PAGES {
            browser.open(&served.url(path));
            let style = if dark { "dark" } else { "light" };
            let wide = browser.ask("document.documentElement.scrollWidth");
            assert!(wide.as_u64().unwrap() <= u64::from(width), "{name} is {wide} wide on {width}");
            assert_eq!(browser.ask("window.owned === undefined"), true, "{name} ran a foreign script");
            assert_eq!(browser.ask(CUT), "", "{name} on {width}: a table is cut");
            assert_eq!(browser.ask(PALE), "", "{name}, {style}: text that is hard to read");
            assert_eq!(browser.ask(ONE_OF_MANY), "", "{name}");
            let backdrop = browser.ask("getComputedStyle(document.body).backgroundColor");
            let expected = if dark { "rgb(15, 20, 26)" } else { "rgb(246, 247, 249)" };
            assert_eq!(backdrop, expected, "{name} is not {style}");
            if std::env::var_os("WAYLAY_PICTURES").is_some() {
                keep(&format!("{name}-{width}-{style}"), &browser.picture());
            }
        }
    }
    assert_eq!(browser.complaints, [""; 0]);

    // What is live moves by itself, and hostile text in it stays text.
    browser.dress(1280, 900, false);
    browser.open(&served.url("/"));
    browser.until("document.getElementById('connection').textContent === 'live'");
    browser.ask("window.first = document.getElementById('tiles').textContent, true");
    served.tell(&mut reporter, 7200);
    browser.until("document.getElementById('tiles').textContent !== window.first");
    assert_eq!(browser.ask("document.getElementById('failures').textContent.includes('<img src=x')"), true);
    assert_eq!(browser.ask("window.owned === undefined"), true);

    // What a reader opened stays open when numbers change.
    browser.ask("document.getElementById('over-warm-up').open = true");
    browser.ask("window.first = document.getElementById('tests').textContent, true");
    served.tell(&mut reporter, 7300);
    browser.until("document.getElementById('tests').textContent !== window.first");
    assert_eq!(browser.ask("document.getElementById('over-warm-up').open"), true);

    // The line that runs a failure again is whole, with a button beside it.
    browser.open(&served.url("/failure/deadlock-b05fe2c2e43f8fce"));
    let line = browser.ask("document.querySelector('.run pre').textContent");
    assert_eq!(line, "waylay replay waylay-out/x/failures/deadlock-b05fe2c2e43f8fce");
    browser.ask("document.querySelector('.run button').click(), true");
    browser.until("['Copied', 'Selected'].includes(document.querySelector('.run button').textContent)");
    // Own frames stand in front, what is the runtime's is folded away.
    let own = browser.ask("document.querySelector('.stack li.own .fn').textContent");
    assert_eq!(own, "tests::transfer");
    assert_eq!(browser.ask("document.querySelector('.stack details').open"), false);
    assert_eq!(browser.complaints, [""; 0]);
}

#[test]
fn what_is_said_on_a_page_is_taken_from_a_real_browser() {
    let Some(program) = chromium::program() else { return };
    let token = "[dashboard]\nlisten = \"127.0.0.1:1\"\ntoken-file = \"token\"\n";
    let served = Served::new(with_evidence, token);
    let mut browser = Chromium::start(program);
    browser.open(&served.url("/"));
    browser.follow(
        "document.querySelector('input[name=token]').value = '0123456789abcdef0123'; document.querySelector('form').submit()",
    );
    browser.open(&served.url("/failure/deadlock-b05fe2c2e43f8fce"));
    browser.follow(
        "document.querySelector('input[name=acknowledged]').checked = true; document.querySelector('.remark button').click()",
    );
    assert_eq!(browser.ask("document.querySelector('.remark .said').textContent"), "acknowledged");
    let history = History::open(served.out.path()).unwrap();
    assert!(history.remark("deadlock-b05fe2c2e43f8fce").unwrap().unwrap().acknowledged);
}
