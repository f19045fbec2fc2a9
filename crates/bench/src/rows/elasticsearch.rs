//! Elasticsearch: bytes of documents for a second of a core, taken as `_bulk` and sent on as `_bulk`.

use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row, median};
use crate::subject::{Folder, Subject};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

pub(super) const ROW: Row = Row {
    name: "elasticsearch",
    what: "MB of logs of 1 KiB for a second of a core, taken as `_bulk`, kept with fsync, sent on as `_bulk`",
    measure,
};

const ROUNDS: u32 = 5;
const CONNECTIONS: usize = 8;
const DOCUMENTS: usize = 1000;
/// How many requests of each connection the first, short run has.
const PROBE: usize = 20;
/// The longest head that is read.
const HEAD: usize = 8 << 10;
const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n{\"errors\":false}";

fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    let receiver = receive()?;
    let sink = |rest: &str| {
        format!("sinks: {{ out: {{ type: elasticsearch, endpoints: [\"http://{receiver}\"], {rest} }} }}")
    };
    Ok(vec![
        cost(
            bench,
            "MB of 1 KiB logs per core-second, passed through uncompressed",
            300.0,
            &sink("compression: none, ids: false"),
        )?,
        cost(
            bench,
            "MB of 1 KiB logs per core-second, with ids, uncompressed",
            250.0,
            &sink("compression: none"),
        )?,
    ])
}

fn cost(bench: &Bench, what: &str, bar: f64, sinks: &str) -> Result<Figure, Failure> {
    let folder = Folder::new(bench)?;
    let subject = Subject::start(&folder, &format!("memory: 128MiB\n{sinks}"))?;
    let request = request();
    let probe = Instant::now();
    let bytes = send(&subject, &request, PROBE)?;
    subject.wait_until_settled()?;
    let rate = (PROBE as f64) / probe.elapsed().as_secs_f64().max(1e-3);
    let requests = ((rate * (bench.seconds / ROUNDS).as_secs_f64()) as usize).max(PROBE);
    let per_request = bytes / (PROBE * CONNECTIONS);

    let (mut costs, mut users, mut rates) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (before, begun) = (subject.used()?, Instant::now());
        let bytes = send(&subject, &request, requests)?;
        // The cost of an accepted request includes sending it on.
        subject.wait_until_settled()?;
        let used = subject.used()?.since(before);
        let megabytes = bytes as f64 / 1e6;
        costs.push(megabytes / used.total().as_secs_f64());
        users.push(used.user.as_secs_f64() / megabytes * 1e3);
        rates.push(megabytes / begun.elapsed().as_secs_f64());
    }
    let details = vec![
        ("bytes a document as sent", per_request as f64 / DOCUMENTS as f64),
        ("user ms a MB", median(users)),
        ("MB a second", median(rates)),
    ];
    let what = what.to_owned();
    Ok(Figure { name: ROW.name, what, bar: Bar::AtLeast(bar), measured: median(costs), details })
}

/// A request with documents as a shipper of logs writes them.
fn request() -> Vec<u8> {
    let mut body = String::new();
    for number in 0..DOCUMENTS {
        let message =
            format!("GET /api/v1/orders/{number} HTTP/1.1 \\\"Mozilla/5.0 (X11; Linux x86_64)\\\" ")
                .repeat(11);
        body.push_str("{\"create\":{\"_index\":\"logs-nginx.access-default\"}}\n");
        body.push_str(&format!(
            "{{\"@timestamp\":\"2026-01-01T00:00:{:02}.{:03}Z\",\"log\":{{\"level\":\"info\",\"offset\":{number}}},\
             \"host\":{{\"name\":\"web-{}\",\"ip\":[\"10.0.0.{}\"]}},\"http\":{{\"response\":{{\"status_code\":200,\
             \"body\":{{\"bytes\":{number}}}}}}},\"service\":{{\"name\":\"nginx\"}},\"message\":\"{message}\"}}\n",
            number % 60,
            number % 1000,
            number % 7,
            number % 200,
        ));
    }
    let head = format!(
        "POST /elasticsearch/_bulk?filter_path=errors,items.*.error HTTP/1.1\r\nHost: bench\r\n\
         Content-Type: application/x-ndjson\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body.into_bytes()].concat()
}

/// Sends so many requests over each connection; every one must be accepted. How many bytes that were.
fn send(subject: &Subject, request: &[u8], requests: usize) -> Result<usize, Failure> {
    let address = subject.address();
    std::thread::scope(|scope| {
        let senders: Vec<_> =
            (0..CONNECTIONS).map(|_| scope.spawn(move || send_over(address, request, requests))).collect();
        let mut bytes = 0;
        for sender in senders {
            bytes += sender.join().map_err(|_| Failure::from("a sender failed"))??;
        }
        Ok(bytes)
    })
}

fn send_over(address: SocketAddr, request: &[u8], requests: usize) -> Result<usize, Failure> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut answer = Vec::new();
    for _ in 0..requests {
        stream.write_all(request)?;
        let (head, length) = head(&mut stream, &mut answer)?.ok_or("the connection was closed")?;
        let end = head + length;
        fill(&mut stream, &mut answer, end)?;
        let text = String::from_utf8_lossy(answer.get(..end).unwrap_or_default()).into_owned();
        if !text.starts_with("HTTP/1.1 200") || !text.contains("\"errors\":false") {
            return Err(Failure(format!("the gateway did not accept every request: {text}")));
        }
        answer.drain(..end);
    }
    Ok(requests * request.len())
}

/// A node that takes everything and looks at nothing.
fn receive() -> io::Result<SocketAddr> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                // It ends with its client.
                let _ended = take(stream);
            });
        }
    });
    Ok(address)
}

fn take(mut stream: TcpStream) -> io::Result<()> {
    let (mut buffer, mut scratch) = (Vec::new(), vec![0; 256 << 10]);
    while let Some((head, length)) = head(&mut stream, &mut buffer)? {
        let mut missing = (head + length).saturating_sub(buffer.len());
        buffer.drain(..(head + length).min(buffer.len()));
        while missing > 0 {
            let most = missing.min(scratch.len());
            let read = stream.read(scratch.get_mut(..most).unwrap_or_default())?;
            if read == 0 {
                return Ok(());
            }
            missing -= read;
        }
        stream.write_all(ANSWER)?;
    }
    Ok(())
}

/// How long the head at the start of `buffer` is, read on as far as it has to be, and how long what follows it is.
fn head(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> io::Result<Option<(usize, usize)>> {
    loop {
        if let Some(at) = buffer.windows(4).take(HEAD).position(|bytes| bytes == b"\r\n\r\n") {
            let text = String::from_utf8_lossy(buffer.get(..at).unwrap_or_default()).to_ascii_lowercase();
            let length =
                text.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
            return Ok(Some((at + 4, length.unwrap_or(0))));
        }
        let before = buffer.len();
        fill(stream, buffer, before + 1)?;
        if buffer.len() == before {
            return Ok(None);
        }
    }
}

/// Reads until `buffer` has so many bytes, or nothing more comes.
fn fill(stream: &mut TcpStream, buffer: &mut Vec<u8>, bytes: usize) -> io::Result<()> {
    let mut scratch = [0; 16 << 10];
    while buffer.len() < bytes {
        let read = stream.read(&mut scratch)?;
        if read == 0 {
            break;
        }
        buffer.extend_from_slice(scratch.get(..read).unwrap_or_default());
    }
    Ok(())
}
