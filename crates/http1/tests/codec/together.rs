//! Requests that are sent without waiting for answers: these come in order, and those of refused ones together.

use crate::pipe::{Client, pipe};
use crate::record::{Record, peer, server, statuses};
use std::sync::Arc;
use std::time::Duration;
use tidegate_http1::{ConnectionEnd, Server, Settings};

const REFUSED: &[u8] = b"POST /refuse HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
const ADMITTED: &[u8] = b"POST /text HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\nabc";
const BROKEN: &[u8] = b"POST /text HTTP/1.1\r\nHost: h\r\nContent-Length: 1, 2\r\n\r\n";

/// Sends `bytes` in pieces of `size`, with a client that takes nothing for the first second.
fn exchange(bytes: &[u8], size: usize, stalled: bool) -> (Arc<Server<Record>>, Client, ConnectionEnd) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    let server = server(Settings::default());
    let (client, pipe) = pipe();
    bytes.chunks(size).for_each(|piece| client.send(piece));
    client.close();
    let ended = runtime.unwrap().block_on(async {
        if stalled {
            client.take_at_most(7);
        }
        let taking = async {
            // The clock stands still: this passes when the server waits.
            tokio::time::sleep(Duration::from_secs(1)).await;
            client.take_at_most(usize::MAX);
        };
        tokio::join!(server.serve(pipe, peer()), taking).0
    });
    let held: u64 = server.arena().usage().shares.iter().map(|share| share.used).sum();
    assert_eq!(held, 0, "a connection that has ended holds no memory");
    (server, client, ended)
}

/// A client that sends many requests at once is refused with one write, and with a few where they are very many.
#[test]
fn refusals_leave_together() {
    let (server, client, ended) = exchange(&REFUSED.repeat(8), usize::MAX, false);
    assert_eq!(statuses(&client.answers()), [401; 8]);
    assert_eq!((client.writes(), ended), (1, ConnectionEnd::ByClient));
    assert!(server.service().seen.lock().unwrap().is_empty());
    let (_, client, _) = exchange(&REFUSED.repeat(100), usize::MAX, false);
    assert_eq!(statuses(&client.answers()), [401; 100]);
    assert!((2..20).contains(&client.writes()), "{} writes", client.writes());
}

/// Whatever comes between them, in whatever pieces it comes, and however slowly the answers are taken: they come in
/// order, and each request has one.
#[test]
fn answers_come_in_order() {
    let bytes = [REFUSED, REFUSED, ADMITTED, ADMITTED, REFUSED, ADMITTED, REFUSED, REFUSED, BROKEN].concat();
    let expected = [401, 401, 200, 200, 401, 200, 401, 401, 400];
    for size in [1, 7, 50, 69, 70, 71, 140, 200, usize::MAX] {
        for stalled in [false, true] {
            let (server, client, ended) = exchange(&bytes, size, stalled);
            assert_eq!(statuses(&client.answers()), expected, "pieces of {size}, stalled: {stalled}");
            assert_eq!(ended, ConnectionEnd::Refused);
            assert_eq!(server.service().seen.lock().unwrap().len(), 3);
        }
    }
}
