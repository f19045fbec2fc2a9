//! Sinks.

mod client;
mod elasticsearch;
mod http;
mod logs;
mod metrics;

use super::Vector;
use super::components::Component;
use super::graph::{Group as WayGroup, flows_into};
use super::vocabulary::Vocabulary;
use super::vrl;
use crate::import::document::Map;
use crate::import::group::{FileReader, Group, Text};
use crate::import::sinks::{Destination, SIGNALS};
use crate::import::steps::{Step, StepKind};
use crate::model::Signal;

/// The changes that a sink makes to events before it sends them.
#[derive(Default)]
pub(super) struct Tail {
    /// Fields that are not sent.
    except: Vec<String>,
    /// The only fields that are sent.
    only: Vec<String>,
    /// Labels, each with its value.
    labels: Vec<(String, Text)>,
}

/// A sink as it is read.
pub(super) struct ReadSink {
    destination: Destination,
    tail: Tail,
}

impl Vector<'_> {
    /// Converts a sink that these ways lead to.
    pub(super) fn sink(
        &mut self,
        index: usize,
        groups: Vec<WayGroup>,
        live: &[(usize, Signal)],
        reader: &mut FileReader<'_, '_>,
    ) {
        let Some(mut group) = self.all.get_mut(index).and_then(|component| component.group.take()) else {
            return;
        };
        let Some(component) = self.all.get(index) else { return };
        if groups.is_empty() {
            group.take_all();
            return component.note("left out: none of its inputs has a counterpart that feeds it", reader);
        }
        let Some(read) = read(component, &mut group, reader) else {
            group.take_all();
            return;
        };
        group.finish(reader);
        let ReadSink { mut destination, tail } = read;
        if !groups.iter().any(|group| flows_into(&destination, group)) {
            return component.note("left out: nothing of what it takes comes to it", reader);
        }
        let mut labels: Vec<String> = Vec::new();
        let mut flows = Vec::new();
        for mut ways in groups.into_iter().filter(|group| flows_into(&destination, group)) {
            if ways.signal == Signal::Logs {
                let mut each: Vec<Vec<Step>> = Vec::new();
                for vocabulary in &ways.vocabularies {
                    each.push(tail.steps(component, vocabulary, &mut labels, reader));
                }
                let is_same = |one: &[Step], other: &[Step]| {
                    one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.equals(other))
                };
                let first = each.first().cloned().unwrap_or_default();
                if each.iter().any(|other| !is_same(&first, other)) {
                    let message = "its sources have different fields: `labels` and `encoding` were converted for those of the first";
                    component.note(message, reader);
                }
                ways.steps.extend(first);
            }
            flows.push(self.flow(&ways, live, reader, index));
        }
        if !tail.labels.is_empty() {
            destination.settings.set("labels", crate::import::document::Yaml::Flow(labels));
        }
        self.output.add(component.name, &destination, flows);
    }
}

fn read(
    component: &Component<'_>,
    group: &mut Group<'_>,
    reader: &mut FileReader<'_, '_>,
) -> Option<ReadSink> {
    match component.kind.as_str() {
        "loki" => logs::loki(component, group, reader),
        "splunk_hec" | "splunk_hec_logs" => logs::splunk(component, group, reader),
        "elasticsearch" => elasticsearch::elasticsearch(component, group, reader),
        "http" => http::http(component, group, reader),
        "opentelemetry" => http::opentelemetry(component, group, reader),
        "prometheus_remote_write" => metrics::remote_write(component, group, reader),
        "blackhole" => {
            group.take_all();
            Some(sink("blackhole", Map::default(), SIGNALS.to_vec(), true))
        }
        "console" => {
            group.take_all();
            let message =
                "a sink that discards everything; `tidegate tap` shows what passes a source or a sink";
            component.note(message, reader);
            Some(sink("blackhole", Map::default(), SIGNALS.to_vec(), true))
        }
        "file" | "aws_s3" | "gcp_cloud_storage" | "azure_blob" => {
            let message = "a sink of type `lake` stores it in files of its own format, in the folder `data`, for seven days by default \
                           (`retention`); a bucket needs a program that copies them";
            component.note(message, reader);
            let (tail, _) = Tail::read(group, reader);
            group.take_all();
            Some(ReadSink { tail, ..sink("lake", Map::default(), SIGNALS.to_vec(), true) })
        }
        kind => {
            component.note(format!("left out: {}", reason(kind)), reader);
            None
        }
    }
}

/// Why a type of sink has no counterpart.
fn reason(kind: &str) -> &'static str {
    match kind {
        "vector" => {
            "tidegate does not speak the protocol between Vectors; a Vector's source `opentelemetry` takes what a sink `otlp` sends"
        }
        "prometheus_exporter" => {
            "tidegate cannot be scraped for the metrics that it receives; use `prometheus_remote_write`, which Prometheus accepts"
        }
        "kafka"
        | "amqp"
        | "nats"
        | "pulsar"
        | "redis"
        | "mqtt"
        | "gcp_pubsub"
        | "aws_sqs"
        | "aws_sns"
        | "aws_kinesis_streams"
        | "aws_kinesis_firehose"
        | "azure_event_hubs" => "tidegate does not write to queues",
        "clickhouse" => {
            "a sink `http` with `format: ndjson` can insert into ClickHouse (`FORMAT JSONEachRow`)"
        }
        "socket" | "papertrail" | "statsd" | "websocket" | "websocket_server" => {
            "tidegate does not send over plain sockets"
        }
        _ => "tidegate has no sink for it; many vendors accept OTLP",
    }
}

pub(super) fn sink(kind: &'static str, settings: Map, signals: Vec<Signal>, has_signals: bool) -> ReadSink {
    ReadSink { destination: Destination { kind, settings, signals, has_signals }, tail: Tail::default() }
}

/// An error about a setting that a sink needs.
pub(super) fn missing(component: &Component<'_>, setting: &str, reader: &mut FileReader<'_, '_>) {
    let message = format!("`{}` has no `{setting}`", component.path());
    reader.error(&component.entry.key_at, message, format!("add `{setting}`"));
}

impl Tail {
    /// Reads `encoding`.
    pub(super) fn read(group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> (Tail, Option<Text>) {
        let mut tail = Tail::default();
        let Some(entry) = group.take("encoding") else { return (tail, None) };
        let path = group.path_of("encoding");
        if let crate::yaml::Value::Scalar(_) = entry.node.value {
            return (tail, reader.text(&entry.node, &path));
        }
        let Some(mut encoding) = reader.group(&entry.node, &path) else { return (tail, None) };
        let codec = encoding.text("codec", reader);
        let values = |texts: Vec<Text>| texts.into_iter().map(|text| text.value).collect();
        tail.except = values(encoding.texts("except_fields", reader));
        tail.only = values(encoding.texts("only_fields", reader));
        encoding.lacks(
            &[
                ("timestamp_format", "left out: times have the format of the sink"),
                ("json", "left out: JSON is on one line"),
                ("metric_tag_values", "left out: a label has one value"),
                ("csv", "left out: records are sent in the sink's format"),
                ("avro", "left out: records are sent in the sink's format"),
                ("protobuf", "left out: records are sent in the sink's format"),
            ],
            reader,
        );
        encoding.finish(reader);
        (tail, codec)
    }

    /// The steps for records with these fields; adds the attributes that are labels.
    fn steps(
        &self,
        component: &Component<'_>,
        vocabulary: &Vocabulary,
        labels: &mut Vec<String>,
        reader: &mut FileReader<'_, '_>,
    ) -> Vec<Step> {
        let mut statements: Vec<String> = Vec::new();
        for (name, value) in &self.labels {
            match logs::label(name, value, vocabulary) {
                Ok((attribute, statement)) => {
                    statements.extend(statement);
                    if !labels.contains(&attribute) {
                        labels.push(attribute);
                    }
                }
                Err(reason) => {
                    reader.note(&value.at, &format!("{}.labels.{name}", component.path()), reason);
                }
            }
        }
        for field in &self.except {
            let program = match vrl::field(field) {
                Some(_) => format!("del({}{field})", if field.starts_with('.') { "" } else { "." }),
                None => continue,
            };
            let parsed = vrl::parse(&program);
            let translated = vrl::translate(&program, &parsed, vocabulary);
            for (_, message) in translated.notes {
                component.note(message, reader);
            }
            statements.extend(translated.lines.into_iter().map(|line| line.text));
        }
        statements.extend(self.kept(component, vocabulary, reader));
        let keeps_message =
            self.only.iter().any(|field| matches!(field.trim_start_matches('.'), "message" | ""));
        if !self.only.is_empty() && !keeps_message {
            statements.push("set(log.body, nil)".to_owned());
        }
        if statements.is_empty() {
            return Vec::new();
        }
        vec![Step::new(component.name, StepKind::Edit(statements))]
    }

    /// The statement that leaves some fields.
    fn kept(
        &self,
        component: &Component<'_>,
        vocabulary: &Vocabulary,
        reader: &mut FileReader<'_, '_>,
    ) -> Option<String> {
        if self.only.is_empty() {
            return None;
        }
        let mut keys = Vec::new();
        for field in &self.only {
            let place = vrl::field(field).and_then(|path| vocabulary.place(&path).ok());
            if let Some((parent, vrl::Segment::Field(key))) = place.and_then(|place| place.parent)
                && parent == "log.attributes"
            {
                keys.push(crate::import::ottl::literal(&key));
            }
        }
        let message = "`only_fields` became `keep_keys` of the record's attributes: its time and the attributes of its resource stay, and its body where `message` is one of them";
        component.note(message, reader);
        Some(format!("keep_keys(log.attributes, [{}])", keys.join(", ")))
    }
}
