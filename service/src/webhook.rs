//! Tells somebody of new failures: one message for all that came up, at most so often, and of each failure once.
//!
//! What was told is written to the history after the other side has taken it. So nothing is lost when it does not answer
//! or when the service is killed in between; the same message may then come twice.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use serde_json::{Value, json};
use waylay_history::query::FailureRow;
use waylay_history::{History, HistoryError};
use waylay_report::model::BuildRange;

use crate::config::Webhook;
use crate::log::Log;
use crate::web::part;

/// Failures that one message lists; a hundred lines would not be read.
const LISTED: u64 = 20;
/// How long the other side may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether the service ends.
const LOOK: Duration = Duration::from_millis(200);

/// Tells until `stop`, and once more then. Messages link to the dashboard, where one is served.
pub fn tell(webhook: &Webhook, dashboard: Option<&str>, out: &Path, log: &Arc<Log>, stop: &AtomicBool) {
    let mut history = match History::open(out) {
        Ok(history) => history,
        Err(error) => return log.line(&format!("nobody is told of new failures: {error}")),
    };
    let mut last: Option<Instant> = None;
    loop {
        let over = stop.load(Ordering::Relaxed);
        if over || last.is_none_or(|last| last.elapsed() >= webhook.every) {
            match tell_once(webhook, dashboard, &mut history) {
                Ok(0) => {}
                Ok(_) => last = Some(Instant::now()),
                Err(problem) => {
                    // It is tried again, as seldom as when it works.
                    last = Some(Instant::now());
                    log.line(&format!("nobody could be told of new failures: {problem}"));
                }
            }
        }
        if over {
            return;
        }
        crate::reopen::open_again(out, &mut history, log);
        // New failures are looked for once a second at most.
        let until = Instant::now() + Duration::from_secs(1);
        while Instant::now() < until && !stop.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK);
        }
    }
}

/// Tells of everything that nobody was told of. How many that were.
fn tell_once(webhook: &Webhook, dashboard: Option<&str>, history: &mut History) -> Result<usize, String> {
    let words = |error: HistoryError| error.to_string();
    let new = history.unnoticed(LISTED).map_err(words)?;
    if new.is_empty() {
        return Ok(0);
    }
    let told: Vec<Told> = new
        .iter()
        .map(|row| {
            // What of it is no longer there is left out; the failure is told all the same.
            let known = history.known_failure(&row.signature).ok().flatten().map(|known| known.failure);
            Told {
                row,
                link: dashboard.map(|base| format!("{base}/failure/{}", part(&row.signature))),
                replay: known.as_ref().map(|known| known.replay.clone()).filter(|line| !line.is_empty()),
                builds: known.and_then(|known| known.builds),
            }
        })
        .collect();
    let message = message(&told).to_string();
    let agent: ureq::Agent =
        ureq::Agent::config_builder().timeout_global(Some(PATIENCE)).max_redirects(0).build().into();
    let sent = agent.post(&webhook.url).header("content-type", "application/json").send(&message);
    let counted = if sent.is_ok() { "sent" } else { "refused" };
    history.add_to("webhook", counted, 1.0).map_err(words)?;
    sent.map_err(|error| error.to_string())?;
    let signatures: Vec<String> = new.iter().map(|row| row.signature.clone()).collect();
    history.noticed(&signatures).map_err(words)?;
    Ok(new.len())
}

/// A failure as a message tells it.
#[derive(Debug, Serialize)]
pub struct Told<'a> {
    /// What the list has of it.
    #[serde(flatten)]
    pub row: &'a FailureRow,
    /// Its page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// The command that runs it again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replay: Option<String>,
    /// Which builds had it and which did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub builds: Option<BuildRange>,
}

/// The message: a text that chat programs show, and the same for machines.
pub fn message(new: &[Told<'_>]) -> Value {
    let title = match new.len() {
        1 => "Waylay found a new failure".to_owned(),
        number => format!("Waylay found {number} new failures"),
    };
    let lines = new.iter().map(|told| {
        let row = told.row;
        let test = if row.test.is_empty() { "the host itself" } else { &row.test };
        let what: String = row.what.lines().next().unwrap_or_default().chars().take(200).collect();
        let mut line = format!("• {} in {test}: {what} ({})", row.kind, row.signature);
        let builds = told.builds.as_ref().map(|builds| builds.lines().join("; "));
        for more in [&told.link, &told.replay, &builds].into_iter().flatten() {
            line += &format!("\n  {more}");
        }
        line
    });
    let text: Vec<String> = std::iter::once(title).chain(lines).collect();
    json!({ "text": text.join("\n"), "failures": new })
}
