//! `waylay service` with the Windows service manager, as far as the machine allows: registered, started, asked for, removed.
#![cfg(windows)]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

const NAME: &str = "waylay-test";

fn waylay(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waylay"));
    command.args(arguments).current_dir(folder).stdin(Stdio::null()).env("NO_COLOR", "1");
    command.output().expect("the command runs")
}

/// Removes the service also when the test fails.
struct Installed<'a>(&'a Path);

impl Drop for Installed<'_> {
    fn drop(&mut self) {
        waylay(self.0, &["service", "uninstall", "--name", NAME]);
    }
}

fn health(port: u16) -> Option<String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request = format!("GET /health HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

#[test]
fn a_service_is_installed_started_asked_for_and_removed() {
    let folder = tempfile::tempdir().expect("a folder");
    // A blank and letters that are not ASCII: the manager gets the folder as a part of a command line.
    let folder = folder.path().join("Prüfung ключ");
    fs::create_dir(&folder).expect("a folder");
    let port = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its number").port();
    fs::write(
        folder.join("night.toml"),
        format!(
            "out = \"out\"\n[[mix]]\nname = \"night\"\nconfig = \"mix.toml\"\nduration = \"1m\"\n\
             [dashboard]\nlisten = \"127.0.0.1:{port}\"\n"
        ),
    )
    .expect("a file");
    fs::write(
        folder.join("mix.toml"),
        "[[scenario]]\nname = \"s\"\nduration = \"1m\"\n[[scenario.test]]\nplugin = \"waylay_faults\"\nname = \"nothing\"\n",
    )
    .expect("a file");

    let before = waylay(&folder, &["service", "status", "--name", NAME]);
    let said = String::from_utf8_lossy(&before.stderr).into_owned();
    if said.contains("administrator") {
        eprintln!("this user may not ask the service manager, and that is said: {said}");
        return;
    }
    assert_eq!(before.status.code(), Some(1), "{said}");
    assert!(said.contains("not installed"), "{said}");

    let installed = waylay(&folder, &["service", "install", "night.toml", "--name", NAME]);
    let said = String::from_utf8_lossy(&installed.stderr).into_owned();
    if said.contains("administrator") && installed.status.code() == Some(2) {
        eprintln!("this user may not install services, and that is said: {said}");
        return;
    }
    let _removed = Installed(&folder);
    assert_eq!(installed.status.code(), Some(0), "{said}");
    assert!(said.contains("is installed and started"), "{said}");
    let began = Instant::now();
    while !health(port).is_some_and(|answer| answer.starts_with("HTTP/1.1 200")) {
        let status = waylay(&folder, &["service", "status", "--name", NAME]);
        let log = fs::read_to_string(folder.join("out/serve.log")).unwrap_or_default();
        let words = String::from_utf8_lossy(&status.stderr).into_owned();
        assert!(began.elapsed() < Duration::from_secs(120), "it does not answer: {words}\n{log}");
        std::thread::sleep(Duration::from_millis(200));
    }
    let running = waylay(&folder, &["service", "status", "--name", NAME]);
    assert_eq!(running.status.code(), Some(0), "{}", String::from_utf8_lossy(&running.stderr));

    let removed = waylay(&folder, &["service", "uninstall", "--name", NAME]);
    assert_eq!(removed.status.code(), Some(0), "{}", String::from_utf8_lossy(&removed.stderr));
    let began = Instant::now();
    while health(port).is_some() {
        assert!(began.elapsed() < Duration::from_secs(60), "it goes on");
        std::thread::sleep(Duration::from_millis(200));
    }
    let after = waylay(&folder, &["service", "status", "--name", NAME]);
    assert_eq!(after.status.code(), Some(1), "{}", String::from_utf8_lossy(&after.stderr));
}
