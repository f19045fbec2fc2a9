//! A destination for all sinks: takes everything, and answers as each protocol has it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;
use tidegate_load::{Check, ThanosIngestors};

/// The longest body that is read.
const LONGEST: usize = 256 << 20;

/// A receiver on loopback, which serves until the test's end.
pub(crate) struct Receiver {
    address: SocketAddr,
    unreadable: Arc<AtomicU64>,
    ingestors: ThanosIngestors,
}

impl Receiver {
    pub(crate) fn start() -> Receiver {
        Receiver::at((Ipv4Addr::LOCALHOST, 0).into())
    }

    /// One that listens here.
    pub(crate) fn at(address: SocketAddr) -> Receiver {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let unreadable = Arc::new(AtomicU64::new(0));
        let shared = Arc::clone(&unreadable);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let unreadable = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &unreadable));
            }
        });
        let ingestors = ThanosIngestors::start(3, Check::Nothing).unwrap();
        Receiver { address, unreadable, ingestors }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where the members of a hashring are.
    pub(crate) fn ingestors(&self) -> Vec<String> {
        self.ingestors.addresses()
    }

    /// Requests that were none.
    pub(crate) fn unreadable(&self) -> u64 {
        self.unreadable.load(Relaxed)
    }
}

/// Serves a connection until its end.
fn serve(stream: TcpStream, unreadable: &AtomicU64) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
        let mut length = None;
        loop {
            line.clear();
            if reader.read_line(&mut line).ok()? <= 2 {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse::<usize>().ok();
            }
        }
        let body = match length {
            Some(length) if length <= LONGEST => {
                let read = std::io::copy(&mut reader.by_ref().take(length as u64), &mut std::io::sink());
                read.is_ok_and(|read| read == length as u64)
            }
            Some(_) => false,
            None => target == "/",
        };
        if !body {
            unreadable.fetch_add(1, Relaxed);
            return None;
        }
        let (status, content) = match target.split('?').next().unwrap_or_default() {
            "/api/v1/write" => ("204 No Content", ""),
            path if path.ends_with("/_bulk") => ("200 OK", r#"{"took":1,"errors":false,"items":[]}"#),
            "/" => ("200 OK", r#"{"version":{"number":"8.19.0"}}"#),
            _ => ("200 OK", ""),
        };
        let kind = if content.is_empty() { "application/x-protobuf" } else { "application/json" };
        let length = content.len();
        let head = if status.starts_with("204") {
            format!("HTTP/1.1 {status}\r\n\r\n")
        } else {
            format!(
                "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nX-Elastic-Product: Elasticsearch\r\n\
                 Content-Length: {length}\r\n\r\n"
            )
        };
        writer.write_all(format!("{head}{content}").as_bytes()).ok()?;
    }
}
