//! What people say about a failure on its page: who may, what is kept of it, and what becomes of the failure.

mod support;

use jiff::{Timestamp, ToSpan};
use support::{HOSTILE, Served, nights};
use waylay_history::History;
use waylay_history::sighting::Sighting;

const TOKEN: &str = "[dashboard]\nlisten = \"127.0.0.1:1\"\ntoken-file = \"token\"\n";
const BEARER: &str = "Authorization: Bearer 0123456789abcdef0123\r\n";
const COOKIE: &str = "Cookie: waylay=0123456789abcdef0123\r\n";

fn night(out: &std::path::Path) {
    let record = nights::campaign(1, &[("map", 5)]);
    let seen = Sighting::of(&nights::entry("d-1", Some("map"), 3, record.started));
    History::open(out).unwrap().put(&record, &[seen], &nights::utc()).unwrap();
}

fn say(served: &Served, failure: &str, headers: &str, form: &str) -> (u16, String) {
    let host = served.address();
    served.raw(&format!(
        "POST /failure/{failure}/remark HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n{headers}\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{form}",
        form.len()
    ))
}

#[test]
fn a_failure_is_acknowledged_suppressed_and_given_a_ticket_on_its_page() {
    let served = Served::new(night, TOKEN);
    let page = |path: &str| served.get_with(path, BEARER).1;
    assert!(page("/failure/d-1").contains("Nobody has said anything about it yet."));
    // With `no-referrer`, a browser sends `Origin: null`, and where there is no TLS nothing else.
    assert!(page("/failure/d-1").contains("referrer-policy: same-origin"));
    let until = Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date().saturating_add(9.days());
    let form = format!(
        "acknowledged=on&ticket=https%3A%2F%2Ftickets.example%2F7%3Fa%3D%22%3E%3Cb%3E&until={until}&reason=being+%3Cb%3Efixed"
    );
    let (status, text) = say(&served, "d-1", BEARER, &form);
    assert_eq!(status, 303, "{text}");
    assert!(text.contains("location: /failure/d-1"), "{text}");
    let shown = page("/failure/d-1");
    assert!(
        shown.contains("acknowledged") && shown.contains(&format!("suppressed until {until}")),
        "{shown}"
    );
    assert!(shown.contains("https://tickets.example/7?a=&quot;&gt;&lt;b&gt;"), "{shown}");
    assert!(shown.contains("being &lt;b&gt;fixed") && !shown.contains("being <b>"), "{shown}");
    assert!(page("/failures").contains("suppressed <span class=\"dim\">1</span>"));
    assert!(page("/failures").contains("acknowledged"));
    let listed = page("/suppressions");
    assert!(listed.contains("Suppressed on their pages") && listed.contains("d-1"), "{listed}");
    assert!(page("/").contains("<b>Nothing new</b>"));

    // It is kept: a campaign that sees it again, and a service that starts again, know of it.
    night(served.out.path());
    let mut history = History::open(served.out.path()).unwrap();
    history.apply(&support::config(served.out.path(), "").suppressions, Timestamp::now()).unwrap();
    let row = history.failure("d-1").unwrap().unwrap();
    assert_eq!((row.suppressed.as_deref(), row.acknowledged), (Some("being <b>fixed"), true));
    // With its last day it is over.
    let later = Timestamp::now() + jiff::SignedDuration::from_hours(24 * 11);
    history.apply(&support::config(served.out.path(), "").suppressions, later).unwrap();
    assert_eq!(history.failure("d-1").unwrap().unwrap().suppressed, None);

    // And it can be taken back.
    assert_eq!(say(&served, "d-1", BEARER, "ticket=&until=&reason=").0, 303);
    assert!(page("/failure/d-1").contains("Nobody has said anything about it yet."));
}

#[test]
fn only_who_shows_the_token_can_and_only_from_a_page_of_this_dashboard() {
    let served = Served::new(night, TOKEN);
    let own = format!("{COOKIE}Sec-Fetch-Site: same-origin\r\n");
    let origin = format!("{COOKIE}Origin: http://{}\r\n", served.address());
    for good in [BEARER, &own, &origin] {
        assert_eq!(say(&served, "d-1", good, "acknowledged=on").0, 303, "{good}");
    }
    let wrong = BEARER.replace("0123\r", "0124\r");
    let elsewhere = format!("{COOKIE}Sec-Fetch-Site: cross-site\r\nOrigin: https://evil.example\r\n");
    let sibling = format!("{COOKIE}Sec-Fetch-Site: same-site\r\nOrigin: null\r\n");
    for bad in ["", &wrong, COOKIE, &elsewhere, &sibling, "Sec-Fetch-Site: same-origin\r\n"] {
        assert_eq!(say(&served, "d-1", bad, "acknowledged=on").0, 403, "{bad}");
    }
    assert_eq!(say(&served, "no-such-failure", BEARER, "acknowledged=on").0, 404);
    for bad in ["ticket=javascript:alert(1)", "until=2999-01-01&reason=x", "until=soon&reason=x"] {
        assert_eq!(say(&served, "d-1", BEARER, bad).0, 400, "{bad}");
    }
    let remark = History::open(served.out.path()).unwrap().remark("d-1").unwrap().unwrap();
    assert!(remark.acknowledged && remark.ticket.is_none(), "what was refused changed nothing: {remark:?}");
}

#[test]
fn without_a_token_nothing_can_be_changed_and_the_page_says_so() {
    let served = Served::new(night, "");
    assert_eq!(say(&served, "d-1", "Sec-Fetch-Site: same-origin\r\n", "acknowledged=on").0, 403);
    let page = served.get("/failure/d-1").1;
    assert!(page.contains("token-file") && !page.contains("<form method=\"post\""), "{page}");
    assert!(History::open(served.out.path()).unwrap().remark("d-1").unwrap().is_none());
}

#[test]
fn hostile_words_stay_words() {
    let served = Served::new(night, TOKEN);
    let until = Timestamp::now().to_zoned(jiff::tz::TimeZone::UTC).date();
    let coded: String = HOSTILE.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let form = format!("until={until}&reason={coded}&ticket=https%3A%2F%2F{coded}");
    assert_eq!(say(&served, "d-1", BEARER, &form).0, 303);
    for path in ["/failure/d-1", "/suppressions", "/failures"] {
        let page = served.get_with(path, BEARER).1;
        assert!(!page.contains("<script>window") && !page.contains("<svg/onload"), "{path}: {page}");
    }
}
