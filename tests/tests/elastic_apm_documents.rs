//! Real agents of Elastic APM, through tidegate, into an OpenSearch: each event that an agent sent, as a pass-through
//! kept it, is one document in the data stream that APM Server would name, with the fields that it would write; though
//! the node is killed meanwhile, and the gateway too.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test, which says what it saw"
)]

// The documents equal those of APM Server's own code for the same events.
#[path = "support/agents.rs"]
mod agents;
#[path = "support/between.rs"]
mod between;
#[path = "../../crates/elastic/tests/support/oracle.rs"]
mod oracle;

use between::{Between, Event, events};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;
use tidegate_load::elastic_apm::AGENTS;
use tidegate_tests::{Gateway, OpenSearch, finish, http, skip, tidegate, until};

/// How long everything may take to arrive, on a busy machine.
const DRAINED: Duration = Duration::from_secs(240);

#[test]
fn events_of_agents_are_in_their_data_streams_once() {
    let Some(mut node) = OpenSearch::started(&[]) else { return };
    let mut gateway = Gateway::started(json!({
        "memory": "128MiB",
        "sources": {"elastic_apm": {"agents": {"all": {"settings": {"transaction_max_spans": "400"}}}}},
        "sinks": {"out": {
            "type": "elasticsearch", "product": "opensearch", "endpoints": [node.url()],
            "backoff": {"min": "20ms", "max": "500ms"}, "linger": "20ms",
        }},
    }));
    let setup = tidegate(&["elasticsearch", "setup", "--config", &gateway.config().display().to_string()]);
    assert_eq!(setup.code, Some(0), "{}", setup.stderr);
    // Bodies of a busy service, with causes, frames and every context, before and after.
    let mut sent: Vec<Event> = AGENTS.iter().flat_map(|agent| upload(&gateway, agent.busy)).collect();
    until(DRAINED, "the first documents to arrive", || gateway.sink("out")["requests"] != 0);

    let between = Between::start(gateway.http());
    let all = agents::all(&between.url());
    if all.is_empty() {
        skip("agents", "there is no agent; `make test` sets them up");
    }
    let names: Vec<_> = all.iter().map(|(name, _)| *name).collect();
    std::thread::scope(|scope| {
        let running: Vec<_> = all
            .into_iter()
            .map(|(_, mut command)| scope.spawn(move || finish(&mut command).succeeded()))
            .collect();
        node.kill9();
        sent.extend(AGENTS.iter().flat_map(|agent| upload(&gateway, agent.idle)));
        until(DRAINED, "the sink to notice", || gateway.sink("out")["failures"] != 0);
        running.into_iter().for_each(|agent| drop(agent.join().unwrap()));
    });
    let mut recorded = between.events();
    for name in &names {
        let service = format!("shop-{name}");
        let of_it = recorded.iter().filter(|event| event.metadata["service"]["name"] == service.as_str());
        let kinds: Vec<_> = of_it.map(|event| event.kind.as_str()).collect();
        let count = |kind| kinds.iter().filter(|one| **one == kind).count();
        assert_eq!((count("transaction"), count("span"), count("error")), (1, 3, 1), "{name}: {kinds:?}");
        assert!(count("metricset") > 0, "{name}: {kinds:?}");
    }
    // Nothing of it is anywhere but in the journal now.
    gateway.kill9();
    node.start();
    gateway.start();
    gateway.at_rest(DRAINED);
    sent.append(&mut recorded);
    are_there(&node, &sent);
    let sink = gateway.sink("out");
    let dropped = sink["dropped"].as_object().into_iter().flatten();
    assert_eq!(dropped.filter_map(|(_, items)| items.as_u64()).sum::<u64>(), 0, "{sink}");
    gateway.books_close();
    println!("{} events of {names:?} and of captured bodies", sent.len());
    assert_eq!(gateway.term(), 0);
}

/// Sends a body; its events.
fn upload(gateway: &Gateway, body: &str) -> Vec<Event> {
    let head = ["POST /intake/v2/events HTTP/1.1", "Content-Type: application/x-ndjson"];
    let answer = http::request(gateway.http(), &head, body.as_bytes()).unwrap();
    assert_eq!((answer.status, answer.text().as_str()), (202, ""));
    events(body)
}

/// Each event is one document in its data stream, and no other is in any.
fn are_there(node: &OpenSearch, sent: &[Event]) {
    let body = |event: &Event| {
        let event_line = json!({ event.kind.as_str(): event.fields });
        format!("{}\n{event_line}\n", json!({ "metadata": event.metadata }))
    };
    // All of these say when they were.
    let requests: Vec<_> = sent
        .iter()
        .map(|event| oracle::Request { body: body(event), ..oracle::Request::default() })
        .collect();
    let Some(answers) = oracle::ask(&requests) else { return };
    let mut expected: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for answer in answers {
        assert_eq!((answer.status, answer.documents.len()), (202, 1), "{:?}", answer.messages);
        for document in answer.documents {
            let part = |name: &str| document["data_stream"][name].as_str().unwrap().to_owned();
            let stream = format!("{}-{}-{}", part("type"), part("dataset"), part("namespace"));
            expected.entry(stream).or_default().push(document);
        }
    }
    let known = node.ask("GET", "/_data_stream", "").json();
    let mut known: Vec<_> = known["data_streams"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stream| stream["name"].as_str().unwrap())
        .collect();
    known.sort_unstable();
    assert_eq!(known, expected.keys().collect::<Vec<_>>());
    for (stream, mut wanted) in expected {
        let mut found: Vec<Value> =
            node.documents(&stream).into_iter().map(|(_, document)| document).collect();
        found.retain(|document| {
            let same = wanted.iter().position(|one| oracle::difference(document, one).is_none());
            same.map(|at| wanted.swap_remove(at)).is_none()
        });
        assert!(
            found.is_empty() && wanted.is_empty(),
            "{stream}: unexpected {found:#?}, missing {wanted:#?}"
        );
    }
}
