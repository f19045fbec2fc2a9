//! Promise: a peer that answers before it has read a request does not keep the sink's memory, and costs no record.

use crate::rig::{Rig, SECOND, settings};
use std::time::Duration;
use tidegate_journal::{Encoding, Signal};
use tidegate_sinks::{OtlpSettings, Transport};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;

/// Takes every request as soon as it has read its head, and reads nothing more.
async fn hasty(listener: TcpListener) {
    let mut connections = JoinSet::new();
    loop {
        let (mut stream, _) = listener.accept().await.unwrap();
        connections.spawn(async move {
            let mut head = Vec::new();
            while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                if !matches!(stream.read_buf(&mut head).await, Ok(1..)) {
                    return;
                }
            }
            // The client may have closed it meanwhile.
            drop(stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await);
            std::future::pending::<()>().await;
            drop(stream);
        });
    }
}

#[tokio::test]
async fn an_unread_request_returns_its_memory() {
    for padding in [20_000, 200_000] {
        let mut rig = Rig::new(512 << 10);
        let socket = TcpSocket::new_v4().unwrap();
        // So that most of a request stays with the client.
        socket.set_recv_buffer_size(4096).unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(8).unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        for _ in 0..6 {
            rig.put_padded(Signal::Traces, Encoding::Identity, 10, padding).await;
        }
        let peer = crate::peer::Peer::new();
        let settings = settings(&peer, Transport::Http);
        let timeout = Duration::from_millis(200);
        let settings = OtlpSettings { endpoints: vec![url], timeout, max_request_bytes: 8 << 20, ..settings };
        tokio::select! {
            () = hasty(listener) => {}
            drained = tokio::time::timeout(60 * SECOND, rig.drain(settings)) => drained.unwrap(),
        }
        assert_eq!((rig.page().delivered, rig.dropped()), (60, vec![]), "{padding}");
    }
}
