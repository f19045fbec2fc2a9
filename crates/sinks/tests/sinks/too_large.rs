//! Promise: a request that the peer finds too large is cut until it is taken, and what cannot be cut is lost alone.

use crate::rig::{NAME, Rig};
use crate::written_headers::{Came, StreamOf};
use std::sync::{Arc, Mutex};
use tidegate_journal::dead_letters::read;
use tidegate_ledger::Dropped;
use tidegate_load::remote_write::{self as load, Version};
use tidegate_sinks::{Prefer, RemoteWriteSettings};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// The most bytes of a request, before compression, that the peer takes.
const MOST: usize = 100 << 10;

/// A peer that answers 413 to longer requests, and says how many there were.
async fn peer(listener: TcpListener, came: Came, refused: Arc<Mutex<u64>>) {
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let (came, refused) = (Arc::clone(&came), Arc::clone(&refused));
        connections.spawn(async move { while answer(&stream, &came, &refused).await.is_some() {} });
    }
}

async fn answer(mut stream: &TcpStream, came: &Came, refused: &Mutex<u64>) -> Option<()> {
    let mut stream = StreamOf(&mut stream);
    let (version, body) = stream.request().await?;
    let Ok(totals) = load::decode(version, &body, MOST, &mut |_| {}) else {
        *refused.lock().unwrap() += 1;
        return stream.write(b"HTTP/1.1 413 Payload Too Large\r\nContent-Length: 0\r\n\r\n").await;
    };
    came.lock().unwrap().push((version, totals));
    let written = format!(
        "HTTP/1.1 204 No Content\r\nX-Prometheus-Remote-Write-Samples-Written: {}\r\n\
         X-Prometheus-Remote-Write-Histograms-Written: {}\r\n\
         X-Prometheus-Remote-Write-Exemplars-Written: {}\r\n\r\n",
        totals.samples, totals.histograms, totals.exemplars
    );
    stream.write(written.as_bytes()).await
}

/// Has all of `rig` sent; what came, and how many requests were refused.
async fn sent(rig: &Rig, prefer: Prefer, lanes: usize) -> (u64, u64) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
    let settings = RemoteWriteSettings { prefer, lanes, ..crate::written_headers::settings(url) };
    let (came, refused) = (Came::default(), Arc::new(Mutex::new(0)));
    let mut peers = JoinSet::new();
    peers.spawn(peer(listener, Arc::clone(&came), Arc::clone(&refused)));
    rig.drain(settings).await;
    peers.abort_all();
    let items = came.lock().unwrap().iter().map(|(_, totals)| totals.samples + totals.histograms).sum();
    let refused = *refused.lock().unwrap();
    (items, refused)
}

#[tokio::test]
async fn a_request_is_cut_until_the_peer_takes_it() {
    for (version, prefer) in [
        (Version::V1, Prefer::V1),
        (Version::V2, Prefer::V2),
        (Version::V1, Prefer::V2),
        (Version::V2, Prefer::V1),
    ] {
        // Within the sink's part, and beyond it.
        for part in [8 << 20, 512 << 10] {
            let mut rig = Rig::new(1000, part);
            for _ in 0..4 {
                rig.put(version, 0..1000, 3).await;
            }
            rig.put(version, 0..1, 5_000).await;
            let (items, refused) = sent(&rig, prefer, 1).await;
            assert_eq!(rig.dropped(), [], "{version:?} as {prefer:?}");
            assert_eq!(items, rig.acked.samples(), "{version:?} as {prefer:?}: nothing is sent twice");
            // Pieces of what is beyond the part may be short enough as they are.
            let least = u64::from(part > 1 << 20);
            assert!((least..40).contains(&refused), "{version:?} as {prefer:?}: {refused} were refused");
        }
    }
}

/// With lanes, too, where what another lane has taken may be sent again.
#[tokio::test]
async fn with_lanes_all_arrives() {
    for version in [Version::V1, Version::V2] {
        let mut rig = Rig::new(1000, 8 << 20);
        for _ in 0..4 {
            rig.put(version, 0..1000, 3).await;
        }
        let (items, _) = sent(&rig, Prefer::AsReceived, 3).await;
        assert_eq!(rig.dropped(), []);
        assert!(items >= rig.acked.samples());
    }
}

/// A sample with labels that are too long for the peer is the only one that is lost.
#[tokio::test]
async fn what_cannot_be_cut_is_lost_alone() {
    let mut rig = Rig::new(10, 8 << 20);
    let (raw, mut body) = (crate::written_headers::one_sample(&"x".repeat(2 * MOST)), Vec::new());
    load::compress(&raw, &mut body);
    rig.put(Version::V1, 0..10, 1).await;
    rig.append(Version::V1, &body, raw.len(), 1).await;
    rig.put(Version::V1, 0..10, 1).await;
    let (items, _) = sent(&rig, Prefer::AsReceived, 1).await;
    assert_eq!(items, 20);
    assert_eq!(rig.dropped(), [(Dropped::Rejected, 1)]);
    let mut letters = read(&rig.letters_dir(), false).unwrap();
    let letter = letters.next().unwrap();
    assert_eq!((letter.sink.as_str(), letter.meta.items), (NAME, 1));
    assert!(letter.reason.starts_with("413"), "{}", letter.reason);
}
