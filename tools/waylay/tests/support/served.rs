//! Servers of the distribution, each with a client that is not part of the schedule: it talks to every run, and the last thing
//! that it says ends the server.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::Workplace;
use super::real::is_here;

/// Where a server listens, in its folder.
const SOCKET: &str = "socket";

/// How long the client waits for an answer: as long as a run may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server, its arguments, and what is said: questions and answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Served {
    pub(crate) name: &'static str,
    arguments: &'static [&'static str],
    conversation: &'static [(&'static str, &'static str)],
    farewell: &'static str,
}

/// The servers.
pub(crate) const SERVERS: [Served; 2] = [
    Served {
        name: "memcached",
        arguments: &["-u", "root", "-s", SOCKET, "-t", "2", "-A", "-m", "8"],
        conversation: &[
            ("set k 0 0 5\r\nhello\r\n", "STORED\r\n"),
            ("get k\r\n", "VALUE k 0 5\r\nhello\r\nEND\r\n"),
        ],
        farewell: "shutdown\r\n",
    },
    Served {
        name: "redis-server",
        arguments: &[
            "--port",
            "0",
            "--unixsocket",
            SOCKET,
            "--save",
            "",
            "--io-threads",
            "2",
            "--io-threads-do-reads",
            "yes",
            "--logfile",
            "/dev/null",
        ],
        conversation: &[("SET k hello\r\n", "+OK\r\n"), ("GET k\r\n", "$5\r\nhello\r\n")],
        farewell: "SHUTDOWN NOSAVE\r\n",
    },
];

impl Served {
    /// Whether the server can be run here.
    pub(crate) fn is_here(&self) -> bool {
        is_here(self.name)
    }

    /// Explores the server; returns the summary, and how many conversations went as they should.
    pub(crate) fn explore(&self, runs: u64) -> (Value, u64) {
        let place = Workplace::new();
        let socket = place.path().join(SOCKET);
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let client = scope.spawn(|| self.talk_until(&over, &socket));
            let runs = runs.to_string();
            let options = [
                "explore",
                "--json",
                "--quiet",
                "--seed",
                "3",
                "--timeout",
                "60s",
                "--runs",
                &runs,
                "--",
                self.name,
            ];
            let ran = place.waylay(&[&options[..], self.arguments].concat());
            over.store(true, Ordering::Relaxed);
            let summary = serde_json::from_str(&ran.stdout)
                .unwrap_or_else(|error| panic!("{self:?}: {error}: {ran:#?}"));
            (summary, client.join().expect("the client"))
        })
    }

    /// Talks to one run after the other.
    fn talk_until(&self, over: &AtomicBool, socket: &Path) -> u64 {
        let mut right = 0;
        while !over.load(Ordering::Relaxed) {
            match UnixStream::connect(socket) {
                Ok(server) => right += u64::from(self.talk(server).is_ok_and(|as_expected| as_expected)),
                Err(_) => thread::sleep(Duration::from_millis(2)),
            }
        }
        right
    }

    /// One conversation. A server that is about to end may still let a client in.
    fn talk(&self, mut server: UnixStream) -> std::io::Result<bool> {
        server.set_read_timeout(Some(PATIENCE))?;
        let mut as_expected = true;
        for (question, answer) in self.conversation {
            server.write_all(question.as_bytes())?;
            let mut heard = vec![0; answer.len()];
            server.read_exact(&mut heard)?;
            as_expected &= heard == answer.as_bytes();
        }
        server.write_all(self.farewell.as_bytes())?;
        // Until the server is gone, so that the next conversation is with the next run.
        let _ = server.read_to_end(&mut Vec::new());
        Ok(as_expected)
    }
}
