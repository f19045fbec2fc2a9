//! Any bytes on a connection of HTTP/2, in whatever pieces they arrive, come to an end; the books balance afterwards, and no
//! memory stays charged.
#![no_main]
#![allow(dead_code, reason = "tests use the rest of the rig")]

#[path = "../../crates/sources/tests/otlp/rig.rs"]
mod rig;

use libfuzzer_sys::fuzz_target;
use rig::Rig;
use std::cell::RefCell;
use std::time::{Duration, Instant};
use tidegate_journal::{Event, Follower};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::{Builder, Runtime};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// A request whose connection ended while the journal wrote it is booked when the journal has it.
const PATIENCE: Duration = Duration::from_secs(5);

struct Server {
    runtime: Runtime,
    rig: Rig,
    sink: Follower,
}

thread_local! {
    static SERVER: RefCell<Option<Server>> = const { RefCell::new(None) };
}

fn server() -> Server {
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let rig = Rig::new();
    let sink = rig.follow();
    Server { runtime, rig, sink }
}

/// Sends the preface and `bytes` in pieces, and reads until the server closes.
async fn send(address: std::net::SocketAddr, bytes: &[u8], piece_len: usize) {
    let mut client = TcpStream::connect(address).await.expect("a connection");
    client.set_nodelay(true).expect("a setting");
    let _sent = client.write_all(PREFACE).await;
    for piece in bytes.chunks(piece_len) {
        // The server may have ended the connection.
        if client.write_all(piece).await.is_err() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let _ended = client.shutdown().await;
    let mut answer = [0; 4096];
    while client.read(&mut answer).await.is_ok_and(|read| read > 0) {}
}

fuzz_target!(|input: &[u8]| {
    // The first byte says how large the pieces are.
    let Some((size, bytes)) = input.split_first() else { return };
    SERVER.with_borrow_mut(|known| {
        let Server { runtime, rig, sink } = known.get_or_insert_with(server);
        let piece_len = usize::from(*size).max(1) * 8;
        runtime.block_on(rig.serve(async |address| send(address, bytes, piece_len).await));
        let begun = Instant::now();
        while !rig.is_settled() && begun.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
        let _books = rig.books();
        // So that the journal never fills up.
        while let Ok(Some(event)) = sink.next_blocking(Duration::ZERO) {
            if let Event::Record(record) = event {
                sink.commit(record.sequence);
            }
        }
    });
});
