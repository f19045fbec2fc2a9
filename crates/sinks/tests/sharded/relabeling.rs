//! Promise: series that OTLP becomes are relabeled before they are spread, as those of remote write are.

use crate::messages::RequestV1;
use crate::receiver::{Receiver, Reply};
use crate::rig::{PART, Rig, settings};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::{
    Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, number_data_point,
};
use prost::Message;
use tidegate_journal::Protocol;
use tidegate_ledger::Dropped;
use tidegate_pipeline::{Definition, ErrorMode, Pipeline, RuleDefinition, StepDefinition, StepKind};
use tidegate_sinks::SinkPipeline;
use tidegate_stage::PipelineMeters;

/// A label that no receiver may see.
const SECRET: &str = "secret";

/// Points of a gauge, each with a number and a secret.
fn points(count: u64) -> Vec<u8> {
    let attribute = |key: &str, value: String| {
        let value = Some(AnyValue { value: Some(Value::StringValue(value)) });
        KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
    };
    let point = |number: u64| NumberDataPoint {
        attributes: vec![attribute("number", number.to_string()), attribute(SECRET, "hunter2".to_owned())],
        time_unix_nano: 1_790_000_000_000_000_000,
        value: Some(number_data_point::Value::AsInt(1)),
        ..NumberDataPoint::default()
    };
    let data = Some(Data::Gauge(Gauge { data_points: (0..count).map(point).collect() }));
    let metric = Metric { name: "requests".to_owned(), data, ..Metric::default() };
    let scope = ScopeMetrics { metrics: vec![metric], ..ScopeMetrics::default() };
    let resource = ResourceMetrics { scope_metrics: vec![scope], ..ResourceMetrics::default() };
    ExportMetricsServiceRequest { resource_metrics: vec![resource] }.encode_to_vec()
}

/// Drops series with a number of one digit, and takes the secret out of the others.
fn pipeline() -> SinkPipeline {
    let one = RuleDefinition {
        source_labels: vec!["number".to_owned()],
        regex: vec!["[0-9]".to_owned()],
        action: Some("drop".to_owned()),
        ..RuleDefinition::default()
    };
    let other = RuleDefinition {
        regex: vec![SECRET.to_owned()],
        action: Some("labeldrop".to_owned()),
        ..RuleDefinition::default()
    };
    let kind = StepKind::Relabel(vec![one, other]);
    let steps = vec![StepDefinition { when: None, on_error: ErrorMode::Ignore, kind }];
    let (pipeline, _) = Pipeline::compile(&Definition { steps }).unwrap();
    SinkPipeline {
        pipeline: pipeline.into(),
        routing: 0,
        silent: vec![],
        meters: PipelineMeters::new(vec![]),
        capacities: vec![],
        earlier: vec![],
        sampling: None,
    }
}

#[tokio::test]
async fn series_made_of_otlp_are_relabeled() {
    let has_secret = |request: &RequestV1| request.series.iter().any(|series| series.label(SECRET).is_some());
    let receivers = Receiver::some(3);
    receivers.iter().for_each(|receiver| receiver.always(Reply::Refuse(has_secret, 400, "a secret")));
    let mut rig = Rig::new(PART);
    rig.pipeline = Some(pipeline());
    let settings = settings(&rig, &receivers, 2);
    rig.run(&settings, async |rig| {
        // More than a piece, and fewer.
        for count in [5000, 30] {
            rig.append(None, Protocol::Otlp, &points(count), count).await;
        }
        rig.settled().await;
    })
    .await;
    let page = rig.page();
    assert_eq!((page.delivered, page.dropped), (5010, vec![(Dropped::Filtered, 20)]));
    let mut copies = 0;
    for receiver in &receivers {
        let samples = receiver.samples();
        assert!(samples.keys().all(|(_, number)| *number >= 10));
        copies += samples.values().map(Vec::len).sum::<usize>();
    }
    assert_eq!(copies, 2 * 5010);
}
