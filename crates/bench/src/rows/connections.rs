//! Resident memory of connections that have nothing to say.

use super::traffic::Traffic;
use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row};
use crate::subject::{Folder, Subject};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use tidegate_load::RunLimit;

pub(super) const ROW: Row = Row {
    name: "connections",
    what: "resident memory per idle keep-alive connection, of 10,000 that have made a request each",
    measure,
};

const CONNECTIONS: usize = 10_000;
/// Each client's request: refused, and the connection stays open.
pub(super) const REQUEST: &[u8] = b"GET /nothing HTTP/1.1\r\nHost: gateway\r\n\r\n";

fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    allow_files(CONNECTIONS as u64 + 256)?;
    let folder = Folder::new(bench)?;
    let settings = format!(
        "memory: 128MiB\nlimits: {{ connections: {} }}\nsinks: {{ out: {{ type: blackhole }} }}",
        CONNECTIONS + 100
    );
    let subject = Subject::start(&folder, &settings)?;
    // Memory that a process keeps after work is not caused by the connections.
    Traffic::brief().send(&subject.target(), RunLimit::Requests(1_000))?;
    let before = settled(&subject)?;
    let mut open = Vec::with_capacity(CONNECTIONS);
    for _ in 0..CONNECTIONS {
        open.push(
            used_once(subject.address()).map_err(|error| {
                format!("opening connection {} of {CONNECTIONS}: {error}", open.len() + 1)
            })?,
        );
    }
    let after = settled(&subject)?;
    Ok(vec![Figure {
        name: ROW.name,
        what: "resident memory per idle connection, KiB".to_owned(),
        bar: Bar::AtMost(2.0),
        measured: (after - before) / open.len() as f64 / 1024.0,
        details: vec![
            ("connections", open.len() as f64),
            ("MiB before", before / f64::from(1 << 20)),
            ("MiB with all", after / f64::from(1 << 20)),
        ],
    }])
}

/// Resident memory once it has not moved for a second.
pub(super) fn settled(subject: &Subject) -> Result<f64, Failure> {
    let begun = Instant::now();
    let mut last = subject.memory("VmRSS")?;
    let mut same = 0;
    while same < 10 && begun.elapsed() < Duration::from_secs(15) {
        std::thread::sleep(Duration::from_millis(100));
        let now = subject.memory("VmRSS")?;
        same = if now == last { same + 1 } else { 0 };
        last = now;
    }
    Ok(last)
}

fn used_once(address: SocketAddr) -> std::io::Result<TcpStream> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(REQUEST)?;
    let mut answer = [0; 1024];
    match stream.read(&mut answer)? {
        0 => Err(std::io::ErrorKind::UnexpectedEof.into()),
        _ => Ok(stream),
    }
}

pub(super) fn allow_files(needed: u64) -> Result<(), Failure> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: limit.maximum });
    raised.map_err(|error| {
        format!("raising the limit on open files to {needed}: {error}; see `ulimit -Hn`").into()
    })
}
