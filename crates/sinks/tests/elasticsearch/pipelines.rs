//! Promise: what a sink sends is what its pipeline lets through, whichever way a record takes, and none of it is lost.

use crate::node::Node;
use crate::rig::{NAME, PART, Rig, SECOND, gzipped, settings};
use crate::unavailable::{meta, until};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use tidegate_journal::{Encoding, Meta, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_pipeline::{Definition, ErrorMode, Pipeline, StepDefinition, StepKind};
use tidegate_sinks::{Health, PipelineMeters, Signals, SinkPipeline, StepMeters};

const SECRET: &str = "hunter2";

fn pipeline(steps: impl IntoIterator<Item = StepKind>) -> SinkPipeline {
    let steps: Vec<StepDefinition> = steps
        .into_iter()
        .map(|kind| StepDefinition { when: None, on_error: ErrorMode::Ignore, kind })
        .collect();
    let meters = steps.iter().map(|_| StepMeters::new(String::new(), String::new(), vec![])).collect();
    let (pipeline, _) = Pipeline::compile(&Definition { steps }).unwrap();
    let meters = PipelineMeters::new(meters);
    SinkPipeline {
        pipeline: Arc::new(pipeline),
        routing: 0,
        silent: vec![],
        meters,
        capacities: vec![],
        earlier: vec![],
        sampling: None,
    }
}

/// Drops the items named "noise", and masks the secret.
fn cleaning() -> SinkPipeline {
    let redact = format!("replace_pattern(log.body, \"{SECRET}\", \"***\")");
    pipeline([
        StepKind::Drop(vec![r#"IsMatch(log.body, "^noise")"#.to_owned()]),
        StepKind::Edit(vec![redact]),
    ])
}

fn field(number: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![number << 3 | 2];
    let mut len = content.len();
    while len > 127 {
        out.push(len as u8 | 128);
        len >>= 7;
    }
    out.push(len as u8);
    out.extend_from_slice(content);
    out
}

/// Log records of OTLP with these bodies, for this data stream.
fn logs(dataset: &str, bodies: impl IntoIterator<Item = String>) -> Vec<u8> {
    let records = bodies.into_iter().map(|body| field(2, &field(5, &field(1, body.as_bytes()))));
    let attribute = [field(1, b"data_stream.dataset"), field(2, &field(1, dataset.as_bytes()))].concat();
    let resource = field(1, &field(1, &attribute));
    field(1, &[resource, field(2, &records.flatten().collect::<Vec<_>>())].concat())
}

async fn append(rig: &Rig, items: u32, raw: &[u8]) {
    rig.append(meta(Signal::Logs, Protocol::Otlp, items, raw.len()), raw).await;
}

fn waiting(rig: &Rig) -> u64 {
    rig.health.waiting().iter().map(|held| held.items).sum()
}

fn bodies(node: &Node) -> Vec<String> {
    let text = |document: &Value| document["body"]["text"].as_str().unwrap().to_owned();
    let mut all: Vec<String> = node.seen().kept.iter().map(|(_, document)| text(document)).collect();
    all.sort();
    all
}

/// Documents that wait for an index are those that the pipeline let through, as it left them.
#[tokio::test]
async fn documents_that_waited_for_an_index_have_passed_the_pipeline() {
    let (mut rig, node) = (Rig::new(PART), Node::new([]));
    rig.pipeline = Some(cleaning());
    node.seen().keeps = true;
    node.seen().red.insert("logs-red.otel-default".to_owned());
    let mut expected = Vec::new();
    for round in 0..20 {
        let (mut raw, mut items) = (Vec::new(), 0);
        for dataset in ["green", "red"] {
            raw.extend(logs(
                dataset,
                [
                    format!("noise {round}"),
                    format!("{dataset} {round} {SECRET}"),
                    format!("noise again {round}"),
                ],
            ));
            items += 3;
            expected.push(format!("{dataset} {round} ***"));
        }
        append(&rig, items, &raw).await;
    }
    expected.sort();
    let (sink, _stopper) = rig.sink(settings(&node));
    let feeding = async {
        until(|| node.seen().documents.len() == 20 && waiting(&rig) == 20).await;
        node.seen().red.clear();
        until(|| rig.page().queued == 0).await;
        assert!(rig.journal.close(60 * SECOND));
    };
    let (ended, ()) = tokio::join!(tokio::time::timeout(120 * SECOND, sink.run()), feeding);
    ended.unwrap();
    assert_eq!(bodies(&node), expected);
    assert_eq!((rig.page().delivered, rig.dropped()), (40, vec![(Dropped::Filtered, 80)]));
    assert_eq!(node.seen().repeated, 0, "nothing is sent twice that was taken");
}

/// Records that the pipeline needs borrowed memory for wait for their index as others do, also where there are no others.
#[tokio::test]
async fn large_records_behind_a_pipeline_wait_for_their_index() {
    let (mut rig, node) = (Rig::new(512 << 10), Node::new([]));
    rig.pipeline = Some(cleaning());
    node.seen().keeps = true;
    node.seen().red.insert("logs-red.otel-default".to_owned());
    for _ in 0..2 {
        let padding = "x".repeat(2000);
        let raw = logs(
            "red",
            (0..500).map(|n| format!("{} {n} {padding}", if n % 2 == 0 { "noise" } else { "item" })),
        );
        let meta = Meta { encoding: Encoding::Gzip, ..meta(Signal::Logs, Protocol::Otlp, 500, raw.len()) };
        rig.append(meta, &gzipped(&raw)).await;
    }
    let (sink, _stopper) = rig.sink(settings(&node));
    let feeding = async {
        until(|| waiting(&rig) == 500).await;
        assert_eq!(node.seen().documents.len(), 0);
        node.seen().red.clear();
        until(|| rig.page().queued == 0).await;
        assert!(rig.journal.close(60 * SECOND));
    };
    let (ended, ()) = tokio::join!(tokio::time::timeout(120 * SECOND, sink.run()), feeding);
    ended.unwrap();
    assert!(bodies(&node).iter().all(|body| body.starts_with("item")));
    assert_eq!(node.seen().documents.len(), 500);
    assert_eq!((rig.page().delivered, rig.dropped()), (500, vec![(Dropped::Filtered, 500)]));
    assert_eq!(node.seen().repeated, 0);
}

/// Two sinks that share the items between them send to one data stream: no item takes the place of another.
#[tokio::test]
async fn sinks_with_different_pipelines_make_different_ids() {
    let (mut rig, node) = (Rig::new(PART), Node::new([]));
    node.seen().keeps = true;
    let is_error = || vec![r#"IsMatch(log.body, "^error")"#.to_owned()];
    append(
        &rig,
        20,
        &logs("app", (0..20).map(|n| format!("{} {n}", if n % 2 == 0 { "error" } else { "info" }))),
    )
    .await;
    rig.pipeline = Some(pipeline([StepKind::Keep(is_error())]));
    let (errors, _stop_errors) = rig.sink(settings(&node));
    rig.pipeline = Some(pipeline([StepKind::Drop(is_error())]));
    let health = Health::default();
    let (others, _stop_others) = rig.sink_of("others", Signals::ALL, &health, settings(&node));
    assert!(rig.journal.close(60 * SECOND));
    let both = async { tokio::join!(errors.run(), others.run()) };
    tokio::time::timeout(60 * SECOND, both).await.unwrap();
    assert_eq!(node.seen().documents.len(), 20);
    assert_eq!(node.seen().repeated, 0);
    assert_eq!(bodies(&node).into_iter().collect::<BTreeSet<_>>().len(), 20);
}

/// A record of which a part was delivered is read again behind a changed pipeline: an item may arrive twice, and none is lost.
#[tokio::test]
async fn a_changed_pipeline_loses_nothing_of_a_record_that_was_sent_in_part() {
    let (mut rig, node) = (Rig::new(PART), Node::new([]));
    node.seen().keeps = true;
    node.seen().red.insert("logs-red.otel-default".to_owned());
    let raw = [
        logs("app", ["noise", "first", "second"].map(str::to_owned)),
        logs("red", ["third"].map(str::to_owned)),
    ]
    .concat();
    append(&rig, 4, &raw).await;
    rig.pipeline = Some(cleaning());
    let (sink, stopper) = rig.sink(settings(&node));
    let stopping = async {
        until(|| node.seen().documents.len() == 2 && waiting(&rig) == 1).await;
        stopper.stop();
    };
    let (ended, ()) = tokio::join!(tokio::time::timeout(60 * SECOND, sink.run()), stopping);
    ended.unwrap();
    let mut rig = rig.restarted();
    node.seen().red.clear();
    // Every position in the record is that of the item before it now.
    rig.pipeline = Some(pipeline([StepKind::Drop(vec![r#"log.body == "first""#.to_owned()])]));
    rig.drain(settings(&node)).await;
    let ids: Vec<String> = node.seen().documents.keys().cloned().collect();
    assert_eq!(ids.len(), 5, "{ids:?}");
    let all: BTreeSet<String> = bodies(&node).into_iter().collect();
    assert!(["first", "noise", "second", "third"].iter().all(|body| all.contains(*body)), "{all:?}");
    assert!(rig.page().name == NAME);
}

/// Without a pipeline an `_id` is that of the journal's record, as it always was.
#[tokio::test]
async fn ids_without_a_pipeline_begin_with_the_journal() {
    let (rig, node) = (Rig::new(PART), Node::new([]));
    append(&rig, 2, &logs("app", ["a", "b"].map(str::to_owned))).await;
    let journal = format!("{:016x}-0-", rig.journal.id());
    rig.drain(settings(&node)).await;
    let seen = node.seen();
    assert_eq!(seen.documents.keys().cloned().collect::<Vec<_>>(), [0, 1].map(|n| format!("{journal}{n}")));
}
