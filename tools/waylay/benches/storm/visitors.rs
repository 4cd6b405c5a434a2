//! Visitors of a service's dashboard that mean no good.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::dice::Dice;
use super::scene::Scene;

const REQUESTS: &[&str] = &[
    "GET / HTTP/1.1\r\n",
    "GET /events HTTP/1.1\r\nHost: x\r\n\r\n",
    "GET /failures?state=%ff%00&page=-1 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "GET /failure/../../../etc/passwd HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "GET /campaign/%2e%2e/%2e%2e HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "POST /suppress HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
    "POST / HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
    "\r\n\r\n\r\n\r\n",
    "\u{0}\u{1}\u{2}\u{3}",
    "GET / HTTP/9.9\r\n\r\n",
];

fn address(scene: &Scene) -> Option<String> {
    let text = fs::read_to_string(scene.folder.join("stderr.txt")).ok()?;
    Some(text.split("http://").nth(1)?.split('/').next()?.to_owned())
}

fn connect(scene: &Scene) -> Option<TcpStream> {
    let stream = TcpStream::connect(address(scene)?).ok()?;
    stream.set_read_timeout(Some(Duration::from_millis(100))).ok()?;
    stream.set_write_timeout(Some(Duration::from_millis(100))).ok()?;
    Some(stream)
}

/// Requests that are none, in full or in part, and with bytes that are not text.
pub(crate) fn garbage(scene: &mut Scene, dice: &mut Dice) -> bool {
    let mut made = false;
    for _ in 0..20 {
        let Some(mut stream) = connect(scene) else { break };
        let mut request = dice.one(REQUESTS).as_bytes().to_vec();
        for _ in 0..dice.below(4) {
            let at = dice.below(request.len());
            request[at] = dice.below(256) as u8;
        }
        made |= stream.write_all(&request).is_ok();
        let _ = stream.read(&mut [0; 1024]);
    }
    made
}

/// A request a byte at a time, which never ends.
pub(crate) fn slow(scene: &mut Scene, dice: &mut Dice) -> bool {
    let Some(mut stream) = connect(scene) else { return false };
    let request = b"GET /failures HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ";
    for byte in request.iter().take(1 + dice.below(request.len())) {
        if stream.write_all(&[*byte]).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Many at once, which look at the live page and go away in the middle.
pub(crate) fn crowd(scene: &mut Scene, dice: &mut Dice) -> bool {
    let streams: Vec<TcpStream> = (0..20 + dice.below(120)).map_while(|_| connect(scene)).collect();
    for mut stream in &streams {
        let _ = stream.write_all(b"GET /events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n");
    }
    std::thread::sleep(dice.time(Duration::from_millis(200)));
    !streams.is_empty()
}
