//! P1, P3: agents that keep uploads open while things happen cost what they have sent and are in nobody's way; bodies
//! that become seven hundred times as long are each answered within the budget.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::json;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_tests::http::{self, Client};
use tidegate_tests::{Gateway, SOON, until};

const MIB: u64 = 1 << 20;
const METADATA: &str =
    "{\"metadata\":{\"service\":{\"name\":\"shop\",\"agent\":{\"name\":\"go\",\"version\":\"2.0\"}}}}\n";
const LOG: &str = "{\"log\":{\"message\":\"hello\"}}\n";
const HEAD: [&str; 2] = ["POST /intake/v2/events?verbose HTTP/1.1", "Content-Type: application/x-ndjson"];

/// Held by each test of a file, since storms would starve each other.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Two thousand uploads, each of which has sent a part: at most 8 KiB each, and a normal request does not notice.
#[test]
fn half_sent_uploads_delay_no_other_request() {
    const UPLOADS: usize = 2000;
    const REQUESTS: usize = 2000;
    let _alone = alone();
    let mut gateway = Gateway::started(json!({
        "memory": "128MiB",
        "limits": {"connections": 4000},
        // The disk is not asked here.
        "journal": {"durability": "page_cache"},
        "sinks": {"out": {"type": "blackhole"}},
    }));
    let body = [METADATA, LOG].concat();
    let address = gateway.http();
    // On a connection that is kept, so that the gateway's part is most of what a request costs.
    let mut agent = Client::connect(address).unwrap();
    let head = format!("{}\r\n{}\r\nHost: a\r\nContent-Length: {}\r\n\r\n", HEAD[0], HEAD[1], body.len());
    let mut normal = |gateway: &mut Gateway| {
        let before = gateway.process().cpu();
        for _ in 0..REQUESTS {
            agent.send(format!("{head}{body}").as_bytes()).unwrap();
            assert_eq!(agent.answer().unwrap().status, 202);
        }
        gateway.process().cpu() - before
    };
    let usual = normal(&mut gateway);
    let before = gateway.process().private();
    let uploads: Vec<TcpStream> = (0..UPLOADS).map(|_| half_sent(address)).collect();
    until(SOON, "all of them to be open", || {
        gateway.status()["memory"]["connections_open"].as_u64().unwrap_or(0) >= UPLOADS as u64
    });
    let beside = normal(&mut gateway);
    let each = gateway.process().private().saturating_sub(before) / UPLOADS as u64;
    eprintln!(
        "{each} bytes for each of {UPLOADS} uploads; {REQUESTS} normal requests cost {beside:?}, {usual:?} before"
    );
    assert!(each <= 8 << 10, "{each} bytes each");
    // Processor time, which is the same however many others want the machine; how long a request takes is for
    // `tidegate-bench apm-uploads` to say.
    assert!(beside <= 3 * usual + Duration::from_millis(100), "{beside:?}, {usual:?} before");
    for mut upload in uploads {
        end(&mut upload);
        assert_taken(&mut upload);
    }
    gateway.at_rest(SOON);
    gateway.books_close();
    assert!(gateway.hwm() <= 128 * MIB);
    assert_eq!(gateway.term(), 0);
}

/// Uploads that end in one instant, more of them than can wait for the disk at a time, are all taken.
#[test]
fn uploads_that_end_at_once_are_all_accepted() {
    const UPLOADS: usize = 2500;
    let _alone = alone();
    let mut gateway = Gateway::started(json!({
        "memory": "128MiB",
        // A wait for the disk ends when one for memory would; however slow the disk is, it does not end here.
        "limits": {"connections": 4000, "memory_wait": "5m"},
        "sinks": {"out": {"type": "blackhole"}},
    }));
    let mut uploads: Vec<TcpStream> = (0..UPLOADS).map(|_| half_sent(gateway.http())).collect();
    until(SOON, "all of them to be open", || {
        gateway.status()["memory"]["connections_open"].as_u64().unwrap_or(0) >= UPLOADS as u64
    });
    uploads.iter_mut().for_each(end);
    uploads.iter_mut().for_each(assert_taken);
    let status = gateway.at_rest(SOON);
    let source =
        status["books"]["sources"].as_array().unwrap().iter().find(|one| one["name"] == "elastic_apm");
    assert_eq!(source.unwrap()["refused"], json!({}), "{status}");
    gateway.books_close();
    assert!(gateway.hwm() <= 128 * MIB);
    assert_eq!(gateway.term(), 0);
}

/// An upload of which the metadata and half of a chunk are sent.
fn half_sent(address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let head = format!("{}\r\n{}\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", HEAD[0], HEAD[1]);
    let part = format!("{:x}\r\n{METADATA}\r\n{:x}\r\n{LOG}", METADATA.len(), 2 * LOG.len());
    stream.write_all(format!("{head}{part}").as_bytes()).unwrap();
    stream
}

/// Sends the rest of it.
fn end(upload: &mut TcpStream) {
    upload.write_all(format!("{LOG}\r\n0\r\n\r\n").as_bytes()).unwrap();
}

fn assert_taken(upload: &mut TcpStream) {
    let mut answer = [0; 12];
    upload.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"HTTP/1.1 202");
}

/// Sixty-four bodies of 58 MB in 79 KB each: every one is answered, with memory for none of them.
#[test]
fn long_bodies_are_answered_within_the_budget() {
    let _alone = alone();
    let memory = 64 * MIB;
    let mut gateway = Gateway::new(json!({"memory": "64MiB", "sinks": {"out": {"type": "blackhole"}}}));
    gateway.limit_memory(memory + 24 * MIB);
    gateway.start();
    let line = format!("{{\"log\":{{\"message\":\"{}\"}}}}\n", "x".repeat(290_000));
    let mut body = Vec::new();
    let mut coder = flate2::write::GzEncoder::new(&mut body, flate2::Compression::new(9));
    coder.write_all(METADATA.as_bytes()).unwrap();
    (0..200).for_each(|_| coder.write_all(line.as_bytes()).unwrap());
    coder.finish().unwrap();
    let small = [METADATA, LOG].concat();
    let answers: Vec<u16> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..64)
            .map(|_| {
                scope.spawn(|| {
                    let head = [HEAD[0], HEAD[1], "Content-Encoding: gzip"];
                    let answer = http::request(gateway.http(), &head, &body).unwrap();
                    let _json = answer.json();
                    answer.status
                })
            })
            .collect();
        // Others are served meanwhile.
        let answer = http::request(gateway.http(), &HEAD, small.as_bytes()).unwrap();
        assert_eq!(answer.status, 202);
        senders.into_iter().map(|sender| sender.join().unwrap()).collect()
    });
    let count = |status: u16| answers.iter().filter(|answer| **answer == status).count();
    eprintln!(
        "{} bytes each: {} taken, {} too large, {} later",
        body.len(),
        count(202),
        count(413),
        count(503)
    );
    assert_eq!(count(202) + count(413) + count(503), 64, "{answers:?}");
    gateway.at_rest(SOON);
    gateway.books_close();
    assert!(gateway.hwm() <= memory, "{} of {memory}", gateway.hwm());
    assert_eq!(gateway.term(), 0);
}
