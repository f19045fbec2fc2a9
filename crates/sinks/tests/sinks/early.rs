//! Promise: what a connection still holds of an earlier request never makes a record too large.

use crate::rig::{Rig, SECOND};
use std::time::Duration;
use tidegate_load::remote_write::{Version, compress};
use tidegate_sinks::{Prefer, RemoteWriteSettings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;

/// More than the buffers of two sockets take in, so that the rest stays with the client.
const BODY: usize = 6 << 20;

/// Answers when it has seen the head of a request, and reads no further.
async fn answer_early(mut stream: TcpStream) -> TcpStream {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        assert!(stream.read_buf(&mut head).await.unwrap() > 0);
    }
    stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await.unwrap();
    stream
}

fn listener() -> TcpListener {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    socket.listen(8).unwrap()
}

/// Bytes in which Snappy finds nothing.
fn noise(seed: u64) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..BODY).map(|_| next()).collect()
}

#[tokio::test]
async fn a_peer_that_answers_before_it_has_read_costs_no_record() {
    const RECORDS: u64 = 3;
    // Room for one body, not for two.
    let rig = Rig::new(1, BODY + (1 << 20));
    for record in 0..RECORDS {
        let (raw, mut body) = (noise(record), Vec::new());
        compress(&raw, &mut body);
        rig.append(Version::V1, &body, raw.len(), 1).await;
    }
    let listener = listener();
    let settings = RemoteWriteSettings {
        endpoints: vec![format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap()],
        tls: Default::default(),
        headers: Default::default(),
        tenant_header: None,
        prefer: Prefer::AsReceived,
        lanes: 1,
        max_bytes: 8 << 20,
        max_items: 20_000,
        linger: Duration::from_millis(1),
        // Also how long the peer may take to read what it has answered.
        timeout: Duration::from_millis(500),
        backoff: (Duration::from_millis(1), Duration::from_millis(20)),
        otlp: Default::default(),
    };
    assert!(rig.journal.close(60 * SECOND));
    let (sink, _stopper) = rig.sink(settings);
    let drained = async {
        tokio::time::timeout(60 * SECOND, sink.run()).await.expect("everything is sent");
        // The last connection is closed with the sink.
        while rig.held() > 0 {
            tokio::task::yield_now().await;
        }
    };
    let peer = async {
        let mut connections = JoinSet::new();
        let mut open = Vec::new();
        loop {
            tokio::select! {
                accepted = listener.accept() => drop(connections.spawn(answer_early(accepted.unwrap().0))),
                Some(answered) = connections.join_next() => open.push(answered.unwrap()),
            }
        }
    };
    tokio::select! {
        () = peer => {}
        () = drained => {}
    }
    let page = rig.assert_closed(0);
    assert_eq!((page.delivered, page.dropped), (RECORDS, vec![]));
    assert!(rig.health.activity().requests >= RECORDS);
}
