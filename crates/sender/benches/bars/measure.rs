//! A peer in a process of its own, the CPU time of this one, and the span that is sent.

use super::sink::Sink;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use tidegate_sender::{Span, SpanContext, SpanKind, Value};

const PEER: &str = "TIDEGATE_BENCH_PEER";

pub(crate) struct Peer {
    pub(crate) url: String,
    process: Child,
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts this program again, as a peer.
pub(crate) fn peer_in_a_process() -> Peer {
    let mut process = Command::new(std::env::current_exe().unwrap())
        .env(PEER, "1")
        .stdout(Stdio::piped())
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut url = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut url).unwrap();
    Peer { url: url.trim().to_owned(), process }
}

/// True after it has been the peer, until its parent ended.
pub(crate) fn is_peer() -> bool {
    if std::env::var_os(PEER).is_none() {
        return false;
    }
    println!("{}", Sink::new().url());
    let mut line = String::new();
    let _ = std::io::stdin().read_line(&mut line);
    true
}

/// CPU time of this process, all threads.
pub(crate) fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// A span with 8 attributes, as a database client makes them.
pub(crate) fn span(number: u64) -> Span<'static> {
    Span {
        context: SpanContext { trace_id: [7; 16], span_id: (number + 1).to_be_bytes(), flags: 1 },
        parent: Some([9; 8]),
        name: "SELECT things",
        kind: SpanKind::Client,
        start: 1_700_000_000_000_000_000 + number * 1_000,
        end: 1_700_000_000_001_000_000 + number * 1_000,
        attributes: &[
            ("db.system.name", Value::Str("postgresql")),
            ("db.query.text", Value::Str("SELECT * FROM things WHERE id = $1")),
            ("db.namespace", Value::Str("shop")),
            ("server.address", Value::Str("db-1.internal")),
            ("server.port", Value::Int(5432)),
            ("db.response.returned_rows", Value::Int(17)),
            ("cached", Value::Bool(false)),
            ("ratio", Value::Double(0.75)),
        ],
        ..Span::default()
    }
}
