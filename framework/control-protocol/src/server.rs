//! The fork server's messages.
//!
//! The driver sends [`Request`]s over a socket that the program inherited; the library, waiting in front of `main`,
//! forks a child per request and sends two [`Reply`]s: that the child started, and how it ended. Settings and
//! results of the run are in the region.

use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// What the driver asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Request {
    /// Run the program once, as the region says.
    Run = 1,
    /// Make the runs that are ordered in the region, each from a snapshot. The process makes no other runs from then on.
    Batch = 2,
}

impl Request {
    /// The request with this code.
    pub fn from_code(code: u32) -> Option<Request> {
        [Request::Run, Request::Batch].into_iter().find(|request| *request as u32 == code)
    }
}

/// What the library answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The program reached `main` and waits for requests.
    Ready,
    /// The run began in this process.
    Started(i32),
    /// The process ended with this status, as `waitpid` gives it.
    Ended(i32),
    /// So many of the ordered runs have a record.
    Made(i32),
    /// This process can take no snapshot; the region's text says why. It goes on as a fork server.
    Unable,
}

impl Reply {
    /// The bytes on the wire: a code and a number.
    pub fn to_bytes(self) -> [u8; 8] {
        let (code, value) = match self {
            Reply::Ready => (1u32, 0),
            Reply::Started(process) => (2, process),
            Reply::Ended(status) => (3, status),
            Reply::Made(runs) => (4, runs),
            Reply::Unable => (5, 0),
        };
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&code.to_le_bytes());
        bytes[4..].copy_from_slice(&value.to_le_bytes());
        bytes
    }

    /// The reply behind these bytes.
    pub fn from_bytes(bytes: [u8; 8]) -> Option<Reply> {
        let [a, b, c, d, e, f, g, h] = bytes;
        let value = i32::from_le_bytes([e, f, g, h]);
        match u32::from_le_bytes([a, b, c, d]) {
            1 => Some(Reply::Ready),
            2 => Some(Reply::Started(value)),
            3 => Some(Reply::Ended(value)),
            4 => Some(Reply::Made(value)),
            5 => Some(Reply::Unable),
            _ => None,
        }
    }
}

/// Why the driver could not go on with a fork server.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// The socket failed, or the program is gone.
    #[error("the fork server does not answer: {0}")]
    Socket(#[from] io::Error),
    /// The answer makes no sense.
    #[error("the fork server answered {0:?} where {1} was expected")]
    Unexpected(Option<Reply>, &'static str),
}

/// The driver's end of the socket.
#[derive(Debug)]
pub struct ServerLink {
    socket: UnixStream,
}

impl ServerLink {
    /// A link, and the other end for the program to inherit (its descriptor stays open across `exec`).
    pub fn pair() -> io::Result<(ServerLink, UnixStream)> {
        let (ours, theirs) = UnixStream::pair()?;
        // SAFETY: clears the flags of a descriptor we own.
        unsafe { libc::fcntl(theirs.as_raw_fd(), libc::F_SETFD, 0) };
        Ok((ServerLink { socket: ours }, theirs))
    }

    /// Waits until the program is at `main`.
    pub fn wait_ready(&mut self, patience: Duration) -> Result<(), ServerError> {
        match self.receive(patience)? {
            Some(Reply::Ready) => Ok(()),
            other => Err(ServerError::Unexpected(other, "ready")),
        }
    }

    /// Starts a run; returns the process it runs in.
    pub fn start(&mut self, patience: Duration) -> Result<i32, ServerError> {
        self.socket.write_all(&(Request::Run as u32).to_le_bytes())?;
        match self.receive(patience)? {
            Some(Reply::Started(process)) => Ok(process),
            other => Err(ServerError::Unexpected(other, "the start of a run")),
        }
    }

    /// Waits for the end of the run; `None` when `patience` is over and it still goes on.
    pub fn wait_end(&mut self, patience: Duration) -> Result<Option<i32>, ServerError> {
        match self.receive(patience) {
            Ok(Some(Reply::Ended(status))) => Ok(Some(status)),
            Ok(other) => Err(ServerError::Unexpected(other, "the end of a run")),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Has the ordered runs made.
    pub fn start_batch(&mut self) -> Result<(), ServerError> {
        Ok(self.socket.write_all(&(Request::Batch as u32).to_le_bytes())?)
    }

    /// Waits until the batch is over: how many runs have a record, or [`Reply::Unable`]; `None` when `patience` is over
    /// and it still goes on.
    pub fn wait_batch(&mut self, patience: Duration) -> Result<Option<Reply>, ServerError> {
        match self.receive(patience) {
            Ok(Some(reply @ (Reply::Made(_) | Reply::Unable))) => Ok(Some(reply)),
            Ok(other) => Err(ServerError::Unexpected(other, "the end of a batch")),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The descriptor, to wait for several servers at once.
    pub fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    fn receive(&mut self, patience: Duration) -> io::Result<Option<Reply>> {
        self.socket.set_read_timeout(Some(patience.max(Duration::from_millis(1))))?;
        let mut bytes = [0; 8];
        self.socket.read_exact(&mut bytes)?;
        Ok(Reply::from_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_survive_the_wire() {
        for reply in [Reply::Ready, Reply::Started(123), Reply::Ended(-9), Reply::Made(7), Reply::Unable] {
            assert_eq!(Reply::from_bytes(reply.to_bytes()), Some(reply));
        }
        assert_eq!(Reply::from_bytes([9; 8]), None);
    }

    #[test]
    fn a_run_is_asked_for_and_reported() {
        let (mut link, mut program) = ServerLink::pair().unwrap();
        let patience = Duration::from_secs(5);
        program.write_all(&Reply::Ready.to_bytes()).unwrap();
        link.wait_ready(patience).unwrap();
        program.write_all(&Reply::Started(42).to_bytes()).unwrap();
        assert_eq!(link.start(patience).unwrap(), 42);
        let mut asked = [0; 4];
        program.read_exact(&mut asked).unwrap();
        assert_eq!(Request::from_code(u32::from_le_bytes(asked)), Some(Request::Run));
        assert_eq!(link.wait_end(Duration::from_millis(1)).unwrap(), None);
        program.write_all(&Reply::Ended(256).to_bytes()).unwrap();
        assert_eq!(link.wait_end(patience).unwrap(), Some(256));
        drop(program);
        assert!(link.start(patience).is_err());
    }
}
