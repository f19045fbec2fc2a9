//! Promise: of a body of Elastic APM with events of several signals, a sink gets those that it takes, and the books say
//! what became of each.

use crate::node::{Answer, Node};
use crate::rig::{PART, Rig, SECOND, gzipped, settings};
use crate::unavailable::{meta, until};
use std::collections::BTreeMap;
use tidegate_journal::{Encoding, Meta, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_load::elastic_apm::AGENTS;

const ALL: [Signal; 3] = [Signal::Traces, Signal::Metrics, Signal::Logs];

/// Every choice of signals that a sink may take.
fn choices() -> impl Iterator<Item = Vec<Signal>> {
    (1..8).map(|choice| {
        ALL.into_iter()
            .enumerate()
            .filter(|(at, _)| choice & (1 << at) != 0)
            .map(|(_, signal)| signal)
            .collect()
    })
}

/// How many events of a signal a body has.
fn events_of(signal: Signal, body: &str) -> u64 {
    let kinds: &[&str] = match signal {
        Signal::Traces => &["transaction", "span"],
        Signal::Metrics => &["metricset"],
        _ => &["error", "log"],
    };
    let is_of = |line: &&str| kinds.iter().any(|kind| line.starts_with(&format!("{{\"{kind}\":")));
    body.lines().filter(is_of).count() as u64
}

/// How many documents of each kind of data stream a node has.
fn kept(node: &Node) -> BTreeMap<String, u64> {
    let mut kept = BTreeMap::new();
    for (index, _) in &node.seen().kept {
        *kept.entry(index.split('-').next().unwrap().to_owned()).or_default() += 1;
    }
    kept
}

#[tokio::test]
async fn a_sink_gets_of_a_body_the_signals_that_it_takes() {
    for choice in choices() {
        let mut rig = Rig::new(PART);
        rig.signals = choice.iter().copied().collect();
        let node = Node::new([Answer::Every(3, 429), Answer::Status(503, "busy")]);
        node.seen().keeps = true;
        let (mut expected, mut passed) = (BTreeMap::new(), 0);
        for agent in AGENTS {
            let raw = agent.busy.as_bytes();
            let items = agent.busy.lines().count() as u32 - 1;
            let plain = meta(Signal::Events, Protocol::Intake, items, raw.len());
            rig.append(plain, raw).await;
            rig.append(Meta { encoding: Encoding::Gzip, ..plain }, &gzipped(raw)).await;
            for signal in ALL {
                let events = 2 * events_of(signal, agent.busy);
                match choice.contains(&signal) && events > 0 {
                    true => *expected.entry(signal.name().to_owned()).or_default() += events,
                    false => passed += events,
                }
            }
        }
        rig.drain(settings(&node)).await;
        let (page, delivered) = (rig.page(), expected.values().sum());
        assert_eq!((page.delivered, page.passed, page.dropped), (delivered, passed, vec![]), "{choice:?}");
        assert_eq!(kept(&node), expected, "{choice:?}");
    }
}

/// Events in turn of each signal, and among the first an error that fits nowhere.
fn large() -> String {
    let mut body =
        r#"{"metadata":{"service":{"name":"shop","agent":{"name":"python","version":"1"}}}}"#.to_owned();
    let pad = "x".repeat(600);
    for n in 0..3000 {
        body.push('\n');
        body += &match n % 3 {
            0 => format!(
                r#"{{"span":{{"id":"{n:016x}","trace_id":"{n:032x}","parent_id":"{n:016x}","name":"{pad}","type":"db","start":1,"duration":1}}}}"#
            ),
            1 if n == 4 => {
                format!(r#"{{"error":{{"id":"{n:032x}","log":{{"message":"{}"}}}}}}"#, "y".repeat(3 << 20))
            }
            1 => format!(r#"{{"error":{{"id":"{n:032x}","log":{{"message":"{pad}"}}}}}}"#),
            _ => format!(r#"{{"metricset":{{"timestamp":{n},"samples":{{"m{n}":{{"value":1}}}}}}}}"#),
        };
    }
    body
}

/// A body that is sent piece by piece, by a node in trouble: what is too large is lost alone, by a sink that takes it.
#[tokio::test]
async fn large_bodies_are_parted_too() {
    let body = large();
    for choice in choices() {
        let mut rig = Rig::tight(body.len() as u64 + (3 << 19));
        rig.signals = choice.iter().copied().collect();
        let node = Node::new([Answer::Ok, Answer::Every(3, 429), Answer::Lost, Answer::Status(503, "busy")]);
        node.seen().keeps = true;
        rig.append(meta(Signal::Events, Protocol::Intake, 3000, body.len()), body.as_bytes()).await;
        rig.drain(settings(&node)).await;
        let lost = u64::from(choice.contains(&Signal::Logs));
        let taken = 1000 * choice.len() as u64;
        let dropped = (lost > 0).then_some((Dropped::TooLarge, 1)).into_iter().collect::<Vec<_>>();
        let page = rig.page();
        assert_eq!(
            (page.delivered, page.passed, page.dropped),
            (taken - lost, 3000 - taken, dropped),
            "{choice:?}"
        );
        assert_eq!(node.seen().documents.len() as u64, taken - lost, "{choice:?}");
        assert!(choice.iter().all(|signal| kept(&node).contains_key(signal.name())), "{choice:?}");
        assert_eq!(kept(&node).len(), choice.len(), "{choice:?}");
    }
}

/// Events that wait for their index are booked once, as are those that pass the sink by.
#[tokio::test]
async fn events_that_wait_for_an_index_are_booked_once() {
    let mut rig = Rig::new(PART);
    rig.signals = [Signal::Traces, Signal::Logs].into_iter().collect();
    let node = Node::new([]);
    node.seen().red.insert("logs-apm.error-default".to_owned());
    let body = AGENTS[3].busy;
    let items = body.lines().count() as u32 - 1;
    rig.append(meta(Signal::Events, Protocol::Intake, items, body.len()), body.as_bytes()).await;
    let passed = 3;
    let (sink, _stopper) = rig.sink(settings(&node));
    let healing = async {
        until(|| rig.health.waiting().iter().map(|held| held.items).sum::<u64>() > 0).await;
        assert_eq!(rig.page().queued, u64::from(items));
        node.seen().red.clear();
        until(|| rig.page().queued == 0).await;
        assert!(rig.journal.close(60 * SECOND));
    };
    let (ended, ()) = tokio::join!(tokio::time::timeout(120 * SECOND, sink.run()), healing);
    ended.unwrap();
    let page = rig.page();
    assert_eq!((page.delivered, page.passed, page.dropped), (u64::from(items) - passed, passed, vec![]));
}
