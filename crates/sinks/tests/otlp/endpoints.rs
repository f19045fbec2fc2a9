//! Promise: endpoints take turns, one that is gone costs the others nothing, and a slow one gets less.

use crate::peer::{Peer, Reply};
use crate::rig::{BOTH, PART, Rig, SECOND, settings};
use std::time::Duration;
use tidegate_journal::{Encoding, Signal};
use tidegate_sinks::{OtlpSettings, Transport};
use tokio::net::TcpSocket;

/// An address at which nobody listens, and whose port stays taken for as long as this lives, so that nobody else does.
fn nowhere() -> (TcpSocket, hyper::Uri) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap()).parse().unwrap();
    (socket, url)
}

async fn fill(rig: &mut Rig, records: usize) {
    for _ in 0..records {
        rig.put_padded(Signal::Traces, Encoding::Identity, 10, 4000).await;
    }
}

/// One record in each request.
fn small(settings: OtlpSettings) -> OtlpSettings {
    OtlpSettings { max_request_bytes: 40 << 10, ..settings }
}

#[tokio::test]
async fn endpoints_take_turns() {
    for transport in BOTH {
        let mut rig = Rig::new(PART);
        let (one, other) = (Peer::new(), Peer::new());
        fill(&mut rig, 40).await;
        let settings = small(settings(&one, transport));
        rig.drain(OtlpSettings { endpoints: vec![one.url(), other.url()], ..settings }).await;
        rig.assert_exact(&[&one, &other]);
        // Which of them is the faster one, and by how much, depends on everything else that this machine does.
        assert!(!one.arrived().is_empty() && !other.arrived().is_empty());
    }
}

/// Requests to a dead endpoint go to another at once, although the dead one has a long backoff.
#[tokio::test]
async fn a_dead_endpoint_costs_the_others_nothing() {
    for transport in BOTH {
        let mut rig = Rig::new(PART);
        let peer = Peer::new();
        fill(&mut rig, 40).await;
        let settings = small(settings(&peer, transport));
        let ((_one, one), (_other, other)) = (nowhere(), nowhere());
        let endpoints = vec![one, peer.url(), other];
        let begun = std::time::Instant::now();
        rig.drain(OtlpSettings { endpoints, backoff: (50 * SECOND, 50 * SECOND), ..settings }).await;
        assert!(begun.elapsed() < 40 * SECOND);
        rig.assert_exact(&[&peer]);
        // Those that were sent before it was known.
        assert!(rig.health.activity().failures <= 4, "{:?}", rig.health.activity());
    }
}

/// While all are gone, one request at a time looks whether one is back.
#[tokio::test]
async fn one_request_probes_a_failed_endpoint() {
    for transport in BOTH {
        let mut rig = Rig::new(PART);
        let (socket, url) = nowhere();
        fill(&mut rig, 10).await;
        let (sink, stopper) = {
            let gone = Peer::new();
            let settings = small(settings(&gone, transport));
            rig.sink(OtlpSettings { endpoints: vec![url], ..settings })
        };
        let script = async {
            while rig.health.activity().failures < 5 {
                tokio::task::yield_now().await;
            }
            let trouble = rig.health.trouble();
            assert!(trouble.retry_at.is_some() || rig.health.activity().in_flight <= 1);
            let peer = Peer::on(socket.listen(64).unwrap().into_std().unwrap());
            peer.requests(10).await;
            while rig.page().queued > 0 {
                tokio::task::yield_now().await;
            }
            stopper.stop();
            peer
        };
        let ((), peer) = tokio::join!(sink.run(), script);
        rig.assert_exact(&[&peer]);
        assert_eq!(rig.health.trouble().retry_at, None);
    }
}

/// An endpoint that answers more slowly than it did gets fewer requests at a time.
#[tokio::test]
async fn a_slow_endpoint_gets_fewer_requests_at_a_time() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    fill(&mut rig, 60).await;
    let settings = small(settings(&peer, Transport::Grpc));
    let (sink, stopper) = rig.sink(settings);
    let script = async {
        peer.requests(60).await;
        peer.always(Reply::Slow(Duration::from_millis(60)));
        fill(&mut rig, 12).await;
        peer.requests(72).await;
        // With four in flight, the sink needed these to learn it.
        peer.always(Reply::Stall);
        fill(&mut rig, 4).await;
        peer.stalled(1).await;
        let stalled = rig.health.activity().in_flight;
        assert!(stalled <= 2, "{stalled} at a time");
        peer.always(Reply::Ok(Vec::new()));
        peer.release();
        peer.requests(76).await;
        stopper.stop();
    };
    tokio::join!(sink.run(), script);
}
