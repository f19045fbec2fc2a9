//! A pass-through between an agent and the gateway, which keeps what the agent sent.

use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Bytes of one connection that are kept.
const LONGEST: usize = 64 << 20;

/// Passes connections on to one address until the test's end.
pub(crate) struct Between {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Vec<u8>>>>,
}

/// An event, with what its body said of who spoke.
pub(crate) struct Event {
    pub(crate) metadata: Value,
    pub(crate) kind: String,
    pub(crate) fields: Value,
}

impl Between {
    pub(crate) fn start(to: SocketAddr) -> Between {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let seen: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let shared = Arc::clone(&seen);
        thread::spawn(move || {
            for from in listener.incoming().flatten() {
                let seen = Arc::clone(&shared);
                thread::spawn(move || pass(from, to, &seen));
            }
        });
        Between { address, seen }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The events of all uploads so far.
    pub(crate) fn events(&self) -> Vec<Event> {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.iter().flat_map(|bytes| uploads(bytes)).flat_map(|body| events(&body)).collect()
    }
}

/// The events of a body of the intake.
pub(crate) fn events(body: &str) -> Vec<Event> {
    let mut metadata = Value::Null;
    let mut all = Vec::new();
    for line in body.lines().filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_str(line).unwrap();
        let (kind, fields) = line.as_object().unwrap().iter().next().unwrap();
        if kind == "metadata" {
            metadata = fields.clone();
        } else {
            all.push(Event { metadata: metadata.clone(), kind: kind.clone(), fields: fields.clone() });
        }
    }
    all
}

fn pass(mut from: TcpStream, to: SocketAddr, seen: &Mutex<Vec<Vec<u8>>>) {
    let Ok(mut there) = TcpStream::connect(to) else { return };
    let (Ok(mut back), Ok(mut answers)) = (from.try_clone(), there.try_clone()) else { return };
    let number = {
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.push(Vec::new());
        seen.len() - 1
    };
    let returns = thread::spawn(move || {
        drop(io::copy(&mut answers, &mut back));
        drop(back.shutdown(Shutdown::Write));
    });
    let mut bytes = [0; 16 << 10];
    while let Ok(read @ 1..) = from.read(&mut bytes) {
        // Kept first, so that what has an answer is there.
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen[number].extend_from_slice(&bytes[..read]);
        assert!(seen[number].len() < LONGEST, "the agent sent too much");
        drop(seen);
        if there.write_all(&bytes[..read]).is_err() {
            break;
        }
    }
    drop(there.shutdown(Shutdown::Write));
    drop(returns.join());
}

/// The decompressed bodies of the uploads among the requests of a connection.
fn uploads(mut bytes: &[u8]) -> Vec<String> {
    let mut bodies = Vec::new();
    while let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
        let head = String::from_utf8_lossy(&bytes[..at]).to_lowercase();
        let value = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(':'));
            lines.find(|(known, _)| *known == name).map(|(_, value)| value.trim().to_owned())
        };
        let (body, rest) = match value("content-length") {
            Some(length) => {
                let (body, rest) = bytes[at + 4..].split_at(length.parse().unwrap());
                (body.to_vec(), rest)
            }
            None if value("transfer-encoding").is_some() => chunks(&bytes[at + 4..]),
            None => (Vec::new(), &bytes[at + 4..]),
        };
        if head.starts_with("post /intake/v2/events") {
            bodies.push(decompressed(&body));
        }
        bytes = rest;
    }
    assert!(bytes.is_empty(), "{} bytes are no request", bytes.len());
    bodies
}

/// A body in chunks, and what is behind it.
fn chunks(mut bytes: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut body = Vec::new();
    loop {
        let at = bytes.windows(2).position(|two| two == b"\r\n").expect("a chunk's size");
        let size = usize::from_str_radix(str::from_utf8(&bytes[..at]).unwrap(), 16).unwrap();
        body.extend_from_slice(&bytes[at + 2..at + 2 + size]);
        bytes = &bytes[at + 2 + size + 2..];
        if size == 0 {
            return (body, bytes);
        }
    }
}

/// A body as the intake takes it: by its first bytes.
#[allow(clippy::disallowed_methods, reason = "what is read here was sent by the test's own agents")]
fn decompressed(body: &[u8]) -> String {
    let mut text = String::new();
    match body {
        [0x1f, 0x8b, ..] => flate2::read::MultiGzDecoder::new(body).read_to_string(&mut text).unwrap(),
        [first, ..] if first & 15 == 8 => {
            flate2::read::ZlibDecoder::new(body).read_to_string(&mut text).unwrap()
        }
        plain => {
            text = String::from_utf8(plain.to_vec()).unwrap();
            text.len()
        }
    };
    text
}
