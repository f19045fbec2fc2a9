//! Doors for the fuzz targets, which are another crate: encoders and the reader of answers, alone.

use crate::encode::{intake, otlp};
use crate::http::{Connection, Deadline, Response, read_response};
use crate::record::{Log, Span};
use crate::ring::Payload;
use crate::sender::Growing;
use std::io::Write;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

/// A span as it stands in `ScopeSpans`.
#[must_use]
pub fn otlp_span(span: &Span<'_>) -> Vec<u8> {
    bytes(&otlp::EndedSpan::new(span))
}

/// A log record as it stands in `ScopeLogs`.
#[must_use]
pub fn otlp_log(log: &Log<'_>) -> Vec<u8> {
    bytes(&otlp::LogRecord::new(log))
}

/// A span, a log record and an error as lines of intake v2.
#[must_use]
pub fn intake_lines(span: &Span<'_>, log: &Log<'_>) -> [Vec<u8>; 3] {
    [
        bytes(&intake::SpanLine::new(span)),
        bytes(&intake::LogLine::new(log)),
        bytes(&intake::ErrorLine::new(log, [1; 16])),
    ]
}

/// Reads `raw` as an answer over a socket. The status and what was kept of the body, if it is one.
#[cfg(unix)]
#[must_use]
pub fn answer(raw: &[u8]) -> Option<(u16, Vec<u8>)> {
    let (mut peer, own) = std::os::unix::net::UnixStream::pair().ok()?;
    peer.write_all(raw).ok()?;
    drop(peer);
    let mut connection = Connection::over(own);
    let mut response = Response::new();
    let called_off = AtomicBool::new(false);
    let deadline = Deadline { until: Instant::now() + Duration::from_secs(5), called_off: &called_off };
    read_response(&mut connection, &mut response, deadline).ok()?;
    Some((response.status, response.body().to_vec()))
}

fn bytes<P: Payload>(event: &P) -> Vec<u8> {
    let mut out = Growing(Vec::new());
    event.write(&mut out);
    assert_eq!(out.0.len(), event.len(), "an event has the length it says");
    out.0
}
