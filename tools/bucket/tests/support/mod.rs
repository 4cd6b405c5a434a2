//! A real S3 server in this process, a network between that can be told to misbehave, and the command.

#![allow(dead_code, reason = "each file uses a part")]

use std::collections::BTreeMap;
use std::fs;
use std::hash::{Hash, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::sync::{Arc, Mutex};

use s3s::auth::SimpleAuth;
use s3s::service::S3ServiceBuilder;
use s3s_fs::FileSystem;

/// The server's credentials.
pub(crate) const KEY: &str = "waylay";
pub(crate) const SECRET: &str = "a-secret-of-tests";
pub(crate) const BUCKET: &str = "nights";

/// A server with one bucket.
pub(crate) struct Server {
    pub(crate) root: tempfile::TempDir,
    pub(crate) at: SocketAddr,
}

impl Server {
    pub(crate) fn start() -> Server {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join(BUCKET)).unwrap();
        let mut builder = S3ServiceBuilder::new(FileSystem::new(root.path()).unwrap());
        builder.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let service = builder.build();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    let service = service.clone();
                    tokio::spawn(async move {
                        let stream = hyper_util::rt::TokioIo::new(stream);
                        let service = hyper::service::service_fn(
                            move |request: hyper::Request<hyper::body::Incoming>| {
                                let service = service.clone();
                                async move { service.call(request.map(s3s::Body::from)).await }
                            },
                        );
                        let _ = hyper::server::conn::http1::Builder::new()
                            .serve_connection(stream, service)
                            .await;
                    });
                }
            });
        });
        Server { root, at }
    }

    /// Where objects lie whose names begin so.
    pub(crate) fn folder(&self, prefix: &str) -> PathBuf {
        self.root.path().join(BUCKET).join(prefix)
    }
}

/// What becomes of what the client sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// This process is killed.
    Kill(u32),
    /// The connection is cut.
    Cut,
    /// One bit is turned.
    Flip,
}

/// A network to the server: after so many bytes of the client something happens, once.
pub(crate) struct Network {
    pub(crate) at: SocketAddr,
    fault: Arc<Mutex<Option<(u64, Fault)>>>,
}

impl Network {
    pub(crate) fn to(server: SocketAddr) -> Network {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = listener.local_addr().unwrap();
        let fault: Arc<Mutex<Option<(u64, Fault)>>> = Arc::default();
        let plan = Arc::clone(&fault);
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (Ok(client), Ok(server)) = (client, TcpStream::connect(server)) else { continue };
                let (mut back, mut answers) = (client.try_clone().unwrap(), server.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut answers, &mut back);
                    let _ = back.shutdown(Shutdown::Both);
                });
                let plan = Arc::clone(&plan);
                std::thread::spawn(move || forward(client, server, &plan));
            }
        });
        Network { at, fault }
    }

    pub(crate) fn after(&self, bytes: u64, fault: Fault) {
        *self.fault.lock().unwrap() = Some((bytes, fault));
    }

    /// Whether it has happened.
    pub(crate) fn is_over(&self) -> bool {
        self.fault.lock().unwrap().is_none()
    }
}

fn forward(mut client: TcpStream, mut server: TcpStream, plan: &Mutex<Option<(u64, Fault)>>) {
    let mut buffer = [0; 16 << 10];
    while let Ok(read @ 1..) = client.read(&mut buffer) {
        let mut plan = plan.lock().unwrap();
        let happens = match &mut *plan {
            Some((left, fault)) if *left <= read as u64 => Some(*fault),
            Some((left, _)) => {
                *left -= read as u64;
                None
            }
            None => None,
        };
        match happens {
            Some(Fault::Kill(pid)) => {
                let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).status();
            }
            Some(Fault::Cut) => {
                let _ = server.write_all(&buffer[..read / 2]);
                let _ = client.shutdown(Shutdown::Both);
                let _ = server.shutdown(Shutdown::Both);
            }
            // In the middle of a part: its head is in another piece.
            Some(Fault::Flip) => buffer[read / 2] ^= 0x10,
            None => {}
        }
        if happens.is_some() {
            *plan = None;
        }
        drop(plan);
        if server.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = server.shutdown(Shutdown::Write);
}

/// The command, with what it needs to know to reach a server.
pub(crate) fn command(server: SocketAddr, secret: &str, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_waylay-bucket"));
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("AWS_")) {
        command.env_remove(name);
    }
    command
        .args(words)
        .env("AWS_ENDPOINT_URL", format!("http://{server}"))
        .env("AWS_ACCESS_KEY_ID", KEY)
        .env("AWS_SECRET_ACCESS_KEY", secret)
        .env("AWS_REGION", "us-east-1");
    command
}

pub(crate) fn run(server: SocketAddr, words: &[&str]) -> Output {
    command(server, SECRET, words).output().unwrap()
}

/// Runs it, and it has to do what it should.
pub(crate) fn succeed(server: SocketAddr, words: &[&str]) -> String {
    let ran = run(server, words);
    assert!(ran.status.success(), "{words:?}: {}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// A sender that is at work.
pub(crate) struct Sending {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
}

impl Sending {
    /// Starts it, and waits until it has begun.
    pub(crate) fn start(server: SocketAddr, words: &[&str]) -> Sending {
        let mut child = command(server, SECRET, words)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Sending { child, input }
    }

    /// Nothing more is written; returns its exit code, or none when it was killed.
    pub(crate) fn end(mut self) -> Option<i32> {
        self.input = None;
        self.child.wait().unwrap().code()
    }
}

/// What is in a folder, by name: length and a digest. Without names that begin with a dot.
pub(crate) fn content(folder: &Path) -> BTreeMap<String, (usize, u64)> {
    fn walk(folder: &Path, name: &str, found: &mut BTreeMap<String, (usize, u64)>) {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let own = entry.file_name().to_string_lossy().into_owned();
            let path = if name.is_empty() { own.clone() } else { format!("{name}/{own}") };
            if own.starts_with('.') {
                continue;
            } else if entry.path().is_dir() {
                walk(&entry.path(), &path, found);
            } else {
                let bytes = fs::read(entry.path()).unwrap();
                let mut digest = std::hash::DefaultHasher::new();
                bytes.hash(&mut digest);
                found.insert(path, (bytes.len(), digest.finish()));
            }
        }
    }
    let mut found = BTreeMap::new();
    walk(folder, "", &mut found);
    found
}

/// Writes a file below a folder.
pub(crate) fn write(folder: &Path, path: &str, content: &[u8]) {
    let path = folder.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

/// Bytes that do not repeat.
pub(crate) fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}
