//! Batches of events, sent as fast as they are taken.

use super::AGENTS;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The sent items, all of them accepted.
#[derive(Debug, Clone, Copy, Default)]
pub struct SentItems {
    /// Requests.
    pub requests: u64,
    /// Events.
    pub events: u64,
    /// Bytes of bodies.
    pub bytes: u64,
    /// How long it took.
    pub elapsed: Duration,
}

/// A gzip body of `events` events for each agent, made of what it sent, over and over.
///
/// # Errors
/// When compressing fails, which it does not.
pub fn batches(events: usize) -> io::Result<Vec<Vec<u8>>> {
    AGENTS
        .iter()
        .map(|agent| {
            let mut lines = agent.busy.lines().filter(|line| !line.is_empty());
            let metadata = lines.next().unwrap_or_default();
            let events: Vec<&str> = lines.cycle().take(events).collect();
            let mut coder = GzEncoder::new(Vec::new(), Compression::new(6));
            for line in [metadata].into_iter().chain(events) {
                coder.write_all(line.as_bytes())?;
                coder.write_all(b"\n")?;
            }
            coder.finish()
        })
        .collect()
}

/// Sends `requests` requests over each of so many connections, each with the next of `bodies`, which have `events` events
/// each; every one must be taken.
///
/// # Errors
/// When one is not, or a connection fails.
pub fn drive_blocking(
    address: SocketAddr,
    bodies: &[Vec<u8>],
    events: u64,
    connections: usize,
    requests: u64,
) -> io::Result<SentItems> {
    let messages: Vec<Vec<u8>> = bodies.iter().map(|body| message(body)).collect();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        let messages = &messages;
        let senders: Vec<_> = (0..connections)
            .map(|number| scope.spawn(move || send(address, messages, number, requests)))
            .collect();
        senders
            .into_iter()
            .try_for_each(|sender| sender.join().map_err(|_| io::Error::other("a sender failed"))?)
    })?;
    let all = requests * connections as u64;
    let bytes = bodies.iter().map(|body| body.len() as u64).sum::<u64>() / (bodies.len() as u64).max(1) * all;
    Ok(SentItems { requests: all, events: all * events, bytes, elapsed: begun.elapsed() })
}

fn message(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /intake/v2/events HTTP/1.1\r\nHost: bench\r\nUser-Agent: apm-agent-bench/1\r\n\
         Content-Type: application/x-ndjson\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn send(address: SocketAddr, messages: &[Vec<u8>], number: usize, requests: u64) -> io::Result<()> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let mut answer = [0; 1024];
    for (_, message) in (0..requests).zip(messages.iter().cycle().skip(number)) {
        stream.write_all(message)?;
        let mut len = 0;
        // An answer without a body ends with its head.
        while !answer.get(..len).is_some_and(|answer| answer.ends_with(b"\r\n\r\n")) {
            match stream.read(answer.get_mut(len..).unwrap_or_default())? {
                0 => return Err(ErrorKind::UnexpectedEof.into()),
                read => len += read,
            }
        }
        if !answer.starts_with(b"HTTP/1.1 202") {
            let said = String::from_utf8_lossy(answer.get(..len).unwrap_or_default()).into_owned();
            return Err(io::Error::other(format!("a batch was not taken: {said}")));
        }
    }
    Ok(())
}
