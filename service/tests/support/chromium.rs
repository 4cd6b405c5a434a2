//! A real browser, without a window: started, led to a page, asked what it sees.
//!
//! It is spoken to through two pipes (`--remote-debugging-pipe`): JSON messages that end with a zero byte.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// The browser.
pub(crate) struct Chromium {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    number: u64,
    session: Option<String>,
    /// What happened on pages: errors, refusals, dialogs.
    pub(crate) complaints: Vec<String>,
    _profile: tempfile::TempDir,
}

/// The browser's program, if there is one. Where it must be there, its absence is a failure.
pub(crate) fn program() -> Option<&'static str> {
    let known = ["chromium", "chromium-browser", "google-chrome"];
    let is_there = |name: &&str| {
        Command::new(name).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
    };
    let found = known.into_iter().find(|name| is_there(name));
    if found.is_none() {
        assert!(
            std::env::var_os("WAYLAY_REQUIRE_REAL_PROGRAMS").is_none(),
            "there is no chromium, which this machine is to have"
        );
        eprintln!("there is no chromium: nothing was tested");
    }
    found
}

impl Chromium {
    pub(crate) fn start(program: &str) -> Chromium {
        let profile = tempfile::tempdir().unwrap();
        // A shell puts our pipes where the browser wants them, 3 and 4.
        let line = format!(
            "exec 3<&0 4>&1 1>&2 </dev/null; exec {program} --headless=new --no-sandbox --disable-gpu --no-first-run \
             --disable-dev-shm-usage --disable-extensions --disable-background-networking --hide-scrollbars \
             --force-color-profile=srgb --remote-debugging-pipe --user-data-dir=\"$1\" about:blank"
        );
        let mut child = Command::new("sh")
            .args(["-c", &line, "sh"])
            .arg(profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut browser =
            Chromium { child, to, from, number: 0, session: None, complaints: Vec::new(), _profile: profile };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let wanted = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", wanted);
        browser.session = Some(session["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// A window of that size, light or dark.
    pub(crate) fn dress(&mut self, width: u32, height: u32, dark: bool) {
        let phone = width < 600;
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone }),
        );
        let scheme = if dark { "dark" } else { "light" };
        let feature = json!({ "name": "prefers-color-scheme", "value": scheme });
        self.call("Emulation.setEmulatedMedia", json!({ "features": [feature] }));
    }

    /// Opens a page and waits until it is loaded.
    pub(crate) fn open(&mut self, address: &str) {
        self.call("Page.navigate", json!({ "url": address }));
        while self.read()["method"] != "Page.loadEventFired" {}
    }

    /// The value of an expression on the page.
    pub(crate) fn ask(&mut self, expression: &str) -> Value {
        let wanted = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", wanted);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Does something on the page that leads to another page, and waits until that is loaded.
    pub(crate) fn follow(&mut self, statement: &str) {
        // Not before the answer is on its way: the page that gives it is still there then.
        self.ask(&format!("(setTimeout(() => {{ {statement} }}, 50), 1)"));
        while self.read()["method"] != "Page.loadEventFired" {}
    }

    /// Waits until an expression on the page is true.
    pub(crate) fn until(&mut self, expression: &str) {
        // As long as the test may take: a loaded machine is slow, and a page that never gets there hangs the test.
        for _ in 0..3000 {
            if self.ask(expression) == true {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        panic!("never: {expression}");
    }

    /// A picture of the whole page, as base64 of a PNG.
    pub(crate) fn picture(&mut self) -> String {
        let answer =
            self.call("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true }));
        answer["data"].as_str().unwrap().to_owned()
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.number += 1;
        let mut message = json!({ "id": self.number, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut text = message.to_string().into_bytes();
        text.push(0);
        self.to.write_all(&text).unwrap();
        loop {
            let answer = self.read();
            if answer["id"] == self.number {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].clone();
            }
        }
    }

    fn read(&mut self) -> Value {
        let mut text = Vec::new();
        self.from.read_until(0, &mut text).unwrap();
        assert_eq!(text.pop(), Some(0), "the browser is gone");
        let message: Value = serde_json::from_slice(&text).unwrap();
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown" | "Page.javascriptDialogOpening") => {
                self.complaints.push(message["params"].to_string());
            }
            Some("Log.entryAdded") => self.complaints.push(message["params"]["entry"].to_string()),
            _ => {}
        }
        message
    }
}

impl Drop for Chromium {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
