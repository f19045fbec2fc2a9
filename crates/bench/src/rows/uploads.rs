//! Elastic APM's agents keep uploads open: what such an upload takes, and whether others notice.

use super::connections::{allow_files, settled};
use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row, median};
use crate::subject::{Folder, Subject};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

pub(super) const ROW: Row = Row {
    name: "apm-uploads",
    what: "resident memory per half-sent upload of Elastic APM, of 2,000, and the time of a whole one meanwhile",
    measure,
};

const UPLOADS: usize = 2000;
/// Whole requests, each of which waits for the disk.
const REQUESTS: usize = 400;
const PATIENCE: Duration = Duration::from_secs(30);
const METADATA: &str =
    "{\"metadata\":{\"service\":{\"name\":\"shop\",\"agent\":{\"name\":\"go\",\"version\":\"2.0\"}}}}\n";
const LOG: &str = "{\"log\":{\"message\":\"hello\"}}\n";

fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    allow_files(UPLOADS as u64 + 256)?;
    let folder = Folder::new(bench)?;
    let settings = "memory: 128MiB\nlimits: { connections: 4000 }\nsinks: { out: { type: blackhole } }";
    let subject = Subject::start(&folder, settings)?;
    let usual = whole(subject.address())?;
    let before = settled(&subject)?;
    let open: io::Result<Vec<TcpStream>> = (0..UPLOADS).map(|_| half(subject.address())).collect();
    let open = open.map_err(|error| format!("opening {UPLOADS} uploads: {error}"))?;
    let each = (settled(&subject)? - before) / open.len() as f64 / 1024.0;
    let beside = whole(subject.address())?;
    drop(open);
    let time = Figure {
        name: ROW.name,
        what: "a whole request beside 2,000 half-sent uploads, kept with fsync, ms".to_owned(),
        bar: Bar::AtMost(5.0),
        measured: beside.median,
        details: vec![
            ("99 % within", beside.slow),
            ("without the uploads", usual.median),
            ("99 % of these within", usual.slow),
        ],
    };
    let memory = Figure {
        name: ROW.name,
        what: "resident memory per half-sent upload, KiB".to_owned(),
        bar: Bar::AtMost(8.0),
        measured: each,
        details: vec![("uploads", UPLOADS as f64)],
    };
    Ok(vec![time, memory])
}

/// How long requests took, in milliseconds.
struct Times {
    median: f64,
    slow: f64,
}

/// Sends whole requests one after the other.
fn whole(address: SocketAddr) -> Result<Times, Failure> {
    let body = [METADATA, LOG].concat();
    let request = format!(
        "POST /intake/v2/events HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/x-ndjson\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let timed = || -> io::Result<Vec<f64>> {
        let mut stream = connected(address)?;
        (0..REQUESTS)
            .map(|_| {
                let begun = Instant::now();
                stream.write_all(request.as_bytes())?;
                let mut answer = [0; 1024];
                let read = stream.read(&mut answer)?;
                match answer.get(..read) {
                    Some(answer) if answer.starts_with(b"HTTP/1.1 202") => {
                        Ok(begun.elapsed().as_secs_f64() * 1e3)
                    }
                    _ => Err(ErrorKind::InvalidData.into()),
                }
            })
            .collect()
    };
    let mut times = timed().map_err(|error| format!("sending a whole request: {error}"))?;
    times.sort_by(f64::total_cmp);
    let slow = times.get(times.len() * 99 / 100).copied().unwrap_or(f64::NAN);
    Ok(Times { median: median(times), slow })
}

/// Begins an upload: its metadata, and half of a chunk.
fn half(address: SocketAddr) -> io::Result<TcpStream> {
    let mut stream = connected(address)?;
    let begun = format!(
        "POST /intake/v2/events HTTP/1.1\r\nHost: gateway\r\nContent-Type: application/x-ndjson\r\n\
         Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{METADATA}\r\n{:x}\r\n{LOG}",
        METADATA.len(),
        2 * LOG.len()
    );
    stream.write_all(begun.as_bytes())?;
    Ok(stream)
}

fn connected(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
