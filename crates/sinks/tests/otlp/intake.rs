//! Promise: events of Elastic APM arrive in a request for each signal; what is no event is counted.

use crate::bodies::encoded;
use crate::peer::{Peer, Reply};
use crate::rig::{BOTH, PART, Rig, SECOND, settings, settings_for};
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_load::Behaviour;
use tidegate_load::elastic_apm::AGENTS;
use tidegate_load::otlp::OtlpSink;
use tidegate_sinks::{OtlpSettings, Transport};

#[tokio::test]
async fn events_arrive_as_what_they_are() {
    for transport in BOTH {
        let mut rig = Rig::new(PART);
        let peer = OtlpSink::start(Behaviour::Healthy, true).unwrap();
        let mut events = 0;
        for agent in AGENTS {
            let body = agent.busy.as_bytes();
            let items = agent.busy.lines().count() as u64 - 1;
            events += items;
            // One that was counted, and is not there.
            rig.append(Signal::Traces, Protocol::Intake, Encoding::Identity, body, body.len(), items + 1)
                .await;
            // OTLP between them goes its own way.
            rig.put(Signal::Traces, Encoding::Identity, 5).await;
        }
        let max_request_bytes = 16 << 10;
        rig.drain(OtlpSettings { max_request_bytes, ..settings_for(peer.address(), transport) }).await;
        let page = rig.page();
        assert_eq!((page.delivered, page.dropped), (events + 20, vec![(Dropped::Untranslatable, 4)]));
        let arrived = peer.report();
        // A metricset becomes several points.
        assert_eq!(arrived.malformed, 0);
        assert!(arrived.unnumbered >= events, "{} of {events}", arrived.unnumbered);
    }
}

/// Every choice of signals that a sink may take.
fn choices() -> impl Iterator<Item = Vec<Signal>> {
    let all = [Signal::Traces, Signal::Metrics, Signal::Logs];
    (1..8).map(move |choice| {
        all.into_iter()
            .enumerate()
            .filter(|(at, _)| choice & (1 << at) != 0)
            .map(|(_, signal)| signal)
            .collect()
    })
}

/// How many events of a signal an agent's body has.
fn events_of(signal: Signal, body: &str) -> u64 {
    let kinds: &[&str] = match signal {
        Signal::Traces => &["transaction", "span"],
        Signal::Metrics => &["metricset"],
        _ => &["error", "log"],
    };
    let is_of = |line: &&str| kinds.iter().any(|kind| line.starts_with(&format!("{{\"{kind}\":")));
    body.lines().filter(is_of).count() as u64
}

/// Of a body of several signals a sink gets the events of those that it takes, in pieces and when they are sent twice;
/// the others pass it by. Of a body of one signal it gets all or nothing.
#[tokio::test]
async fn a_sink_gets_of_a_body_the_signals_that_it_takes() {
    for transport in BOTH {
        for choice in choices() {
            let mut rig = Rig::new(PART);
            rig.signals = choice.iter().copied().collect();
            let peer = Peer::new();
            let later = match transport {
                Transport::Http | Transport::Json(_) | Transport::SplunkHec | Transport::Loki => {
                    Reply::Http(503, vec![], vec![])
                }
                Transport::Grpc => Reply::Grpc(14, "later", None),
            };
            peer.script([Reply::Ok(Vec::new()), later]);
            let (mut taken, mut passed) = ([0; 3], 0);
            for agent in AGENTS {
                let raw = agent.busy.as_bytes();
                let items = agent.busy.lines().count() as u64 - 1;
                for encoding in [Encoding::Identity, Encoding::Gzip] {
                    let body = encoded(encoding, raw);
                    rig.append(Signal::Events, Protocol::Intake, encoding, &body, raw.len(), items).await;
                }
                for (at, signal) in [Signal::Traces, Signal::Metrics, Signal::Logs].into_iter().enumerate() {
                    let events = 2 * events_of(signal, agent.busy);
                    if choice.contains(&signal) { taken[at] += events } else { passed += events }
                }
                let raw = agent.idle.as_bytes();
                let items = agent.idle.lines().count() as u64 - 1;
                let whole = Signal::Metrics;
                rig.append(whole, Protocol::Intake, Encoding::Identity, raw, raw.len(), items).await;
                if choice.contains(&whole) { taken[1] += items } else { passed += items }
            }
            rig.drain(OtlpSettings { max_request_bytes: 16 << 10, ..settings(&peer, transport) }).await;
            let page = rig.page();
            assert_eq!(
                (page.delivered, page.passed, page.dropped),
                (taken.iter().sum(), passed, vec![]),
                "{choice:?}"
            );
            let arrived = |signal: Signal| -> u64 {
                let arrived = peer.arrived();
                let requests = arrived.iter().filter(|request| request.taken && request.signal == signal);
                requests.map(|request| request.numbers.len() as u64).sum()
            };
            assert_eq!((arrived(Signal::Traces), arrived(Signal::Logs)), (taken[0], taken[2]), "{choice:?}");
            // A metricset becomes several.
            assert!(arrived(Signal::Metrics) >= taken[1], "{choice:?}");
            assert_eq!(arrived(Signal::Metrics) > 0, taken[1] > 0, "{choice:?}");
        }
    }
}

/// A stop in the middle of a body of several signals: afterwards the books are exact, too.
#[tokio::test]
async fn skipped_items_survive_a_restart() {
    let mut rig = Rig::new(PART);
    rig.signals = [Signal::Traces].into_iter().collect();
    let peer = Peer::new();
    peer.script([Reply::Ok(Vec::new()), Reply::Stall]);
    let body = AGENTS[0].busy;
    let items = body.lines().count() as u64 - 1;
    for _ in 0..2 {
        rig.append(Signal::Events, Protocol::Intake, Encoding::Identity, body.as_bytes(), body.len(), items)
            .await;
    }
    let small = OtlpSettings { max_request_bytes: 8 << 10, ..settings(&peer, Transport::Http) };
    let (sink, stopper) = rig.sink(small.clone());
    let script = async {
        peer.stalled(1).await;
        stopper.stop();
    };
    tokio::time::timeout(60 * SECOND, async { tokio::join!(sink.run(), script) }).await.unwrap();
    assert_eq!((rig.page().queued, rig.page().passed), (2 * items, 0));
    let rig = rig.restarted();
    rig.drain(small).await;
    let spans = 2 * events_of(Signal::Traces, body);
    assert_eq!((rig.page().delivered, rig.page().passed), (spans, 2 * items - spans));
}
