//! Heap allocations of a request, from the socket to the journal: none over HTTP/1.1, and over gRPC the codec's for a
//! stream.

use crate::body::{gzip, traces, zstd};
use crate::client::{JSON, PROTOBUF, TRACES, post};
use crate::rig::Rig;
use crate::wire;
use std::net::SocketAddr;
use tidegate_arena::heap::{CountingAllocator, allocations_of_this_thread};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

#[global_allocator]
static HEAP: CountingAllocator<std::alloc::System> = CountingAllocator::new(std::alloc::System);

/// Requests before and while they are counted.
const WARM: u32 = 50;
const COUNTED: u32 = 200;

async fn connected(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    stream
}

/// Allocations of this thread, client and server, for each request on one connection.
fn per_request(request: &[u8]) -> u64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let rig = Rig::new();
    let allocations = runtime.block_on(rig.serve(async |address| {
        let (mut stream, mut answer, mut before) = (connected(address).await, [0; 1024], 0);
        for round in 0..WARM + COUNTED {
            if round == WARM {
                before = allocations_of_this_thread();
            }
            stream.write_all(request).await.unwrap();
            let read = stream.read(&mut answer).await.unwrap();
            assert!(answer[..read].starts_with(b"HTTP/1.1 200 "), "{}", String::from_utf8_lossy(&answer));
        }
        allocations_of_this_thread() - before
    }));
    assert_eq!(rig.books().accepted, u64::from(WARM + COUNTED));
    allocations
}

/// In every encoding.
#[test]
fn a_request_over_http1_allocates_nothing() {
    let raw = traces(50, 300);
    let json = br#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"07070707070707070707070707070707",
        "spanId":"0909090909090909","name":"ahov"}]}]}]}"#;
    let requests = [
        ("as it is", post("/v1/traces", &[PROTOBUF], &raw)),
        ("gzip", post("/v1/traces", &[PROTOBUF, ("content-encoding", "gzip")], &gzip(&raw))),
        ("zstd", post("/v1/traces", &[PROTOBUF, ("content-encoding", "zstd")], &zstd(&raw))),
        ("JSON", post("/v1/traces", &[JSON], json)),
    ];
    for (what, request) in requests {
        assert_eq!(per_request(&request), 0, "{what}");
    }
}

/// Allocations of this thread, client and server, for each request on one connection of HTTP/2.
fn per_stream(rig: &Rig, frames: &[u8]) -> f64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (mut frames, mut stream_id) = (frames.to_vec(), 1);
    let allocations = runtime.block_on(rig.serve(async |address| {
        let (mut stream, mut answers) = (connected(address).await, [0; 4096]);
        stream.write_all(&[wire::PREFACE, &wire::SETTINGS].concat()).await.unwrap();
        let mut before = 0;
        for round in 0..WARM + COUNTED {
            if round == WARM {
                before = allocations_of_this_thread();
            }
            wire::renumber(&mut frames, stream_id);
            stream_id += 2;
            stream.write_all(&frames).await.unwrap();
            let mut read = 0;
            while !wire::ended(&answers[..read]).unwrap() {
                read += stream.read(&mut answers[read..]).await.unwrap();
            }
        }
        allocations_of_this_thread() - before
    }));
    allocations as f64 / f64::from(COUNTED)
}

/// A refusal's allocations are the codec's: its stream, and two for its header table. Ours is made at startup.
#[test]
fn a_refused_call_allocates_no_more_than_its_stream_needs() {
    let rig = Rig::new();
    rig.gate.stop();
    let each = per_stream(&rig, &wire::call(TRACES, &traces(1, 300)));
    println!("a refused call: {each:.2} allocations");
    assert_eq!(rig.books().refused, [(tidegate_ledger::Refusal::Shutdown, u64::from(WARM + COUNTED))]);
    assert!(each <= 8.0, "{each}");
}

/// The figure is the codec's; it is asserted so that it is noticed when it changes.
#[test]
fn a_call_allocates_what_its_stream_needs() {
    for (spans, most) in [(1, 12), (50, 16)] {
        let rig = Rig::new();
        let frames = wire::call(TRACES, &traces(spans, 300));
        let each = per_stream(&rig, &frames);
        assert_eq!(rig.books().accepted, u64::from(WARM + COUNTED));
        println!("a call of {} bytes: {each:.1} allocations", frames.len());
        assert!(each <= f64::from(most), "{each}");
    }
}
