//! The exporter for Elasticsearch.

use super::{destination, missing_endpoint, request_bytes};
use crate::import::document::{Map, Yaml};
use crate::import::group::{FileReader, Group};
use crate::import::otelcol::client::set_duration;
use crate::import::otelcol::{Collector, settings};
use crate::import::sinks::{Destination, SIGNALS, signal_name};
use crate::model::Signal;
use crate::values::Bytes;
use crate::yaml::Entry;

impl Collector<'_> {
    /// One destination, or one for each index.
    pub(super) fn elasticsearch(
        &mut self,
        entry: &Entry,
        reader: &mut FileReader<'_, '_>,
    ) -> Vec<Destination> {
        let Some(mut group) = settings(entry, "exporters", reader) else { return Vec::new() };
        let mut map = Map::default();
        let mut endpoints: Vec<String> = Vec::new();
        for key in ["endpoints", "endpoint"] {
            endpoints.extend(group.texts(key, reader).into_iter().map(|text| text.value));
        }
        if let Some(cloud) = group.text("cloudid", reader) {
            let message = "write the URL of the deployment: a cloud ID was not decoded";
            reader.note(&cloud.at, &group.path_of("cloudid"), message);
            endpoints.push("${ELASTICSEARCH_URL}".to_owned());
        }
        if endpoints.is_empty() {
            missing_endpoint(entry, reader);
        }
        map.set("endpoints", Yaml::Flow(endpoints.clone()));
        for key in ["api_key", "user", "password"] {
            map.set_some(key, group.text(key, reader).map(|text| text.value));
        }
        mapping(&mut group, &mut map, reader);
        if let Some(text) = group.text("compression", reader) {
            map.set("compression", if text.value == "none" { "none" } else { "gzip" });
        }
        let mut client = self.client(&mut group, reader);
        if let Some((user, password)) = client.user.take() {
            map.set("user", user);
            map.set("password", password);
        }
        let has_credentials = map.get("api_key").is_some() || map.get("password").is_some();
        client.allow_cleartext(endpoints.iter().map(String::as_str), has_credentials);
        client.match_tls(endpoints.iter().map(String::as_str), &group, reader);
        map.append(&client.settings);
        flushing(&mut group, &mut map, reader);
        let indexes = indexes(&mut group, reader);
        group.lacks(LACKING, reader);
        group.finish(reader);
        let mut destinations: Vec<Destination> = Vec::new();
        for signal in SIGNALS {
            let index = indexes.iter().find(|(of, _)| *of == signal).map(|(_, index)| index.as_str());
            let mut settings = map.clone();
            settings.set_some("index", index);
            match destinations.iter_mut().find(|destination| destination.settings == settings) {
                Some(destination) => destination.signals.push(signal),
                None => {
                    let signals = vec![signal];
                    destinations.push(Destination { signals, ..destination("elasticsearch", settings) });
                }
            }
        }
        destinations
    }
}

const LACKING: &[(&str, &str)] = &[
    (
        "pipeline",
        "left out: documents are sent without an ingest pipeline; set `index.default_pipeline` in the index",
    ),
    ("logs_dynamic_pipeline", "left out: documents are sent without an ingest pipeline"),
    ("logs_dynamic_index", "not needed: data streams are named by the attributes `data_stream.*`"),
    ("metrics_dynamic_index", "not needed: data streams are named by the attributes `data_stream.*`"),
    ("traces_dynamic_index", "not needed: data streams are named by the attributes `data_stream.*`"),
    ("logs_dynamic_id", "left out: documents get an `_id` from their position in the journal (`ids`)"),
    ("traces_dynamic_id", "left out: documents get an `_id` from their position in the journal (`ids`)"),
    ("logstash_format", "left out: write the date into `index`, for example `logs-{yyyy.MM.dd}`"),
    ("discover", "left out: only the configured nodes are used"),
    ("telemetry", "not needed: dead letters keep the reason of every refused document"),
    ("suppress_conflict_errors", "not needed: a conflict of an `_id` is a document that is there already"),
    ("include_source_on_error", "left out: the cluster's answer is not chosen"),
    ("metadata_keys", "left out: requests are not divided by clients' metadata"),
    ("log_request_body", "left out: bodies are not logged; `tidegate tap` shows items"),
    ("log_response_body", "left out: bodies are not logged; `tidegate tap` shows items"),
    ("log_failed_docs_input", "not needed: `tidegate journal dead-letters` shows refused documents"),
    (
        "log_failed_docs_input_rate_limit",
        "not needed: `tidegate journal dead-letters` shows refused documents",
    ),
];

fn mapping(group: &mut Group<'_>, map: &mut Map, reader: &mut FileReader<'_, '_>) {
    let Some(mut mapping) = group.group("mapping", reader) else { return };
    if let Some(mode) = mapping.text("mode", reader) {
        match mode.value.as_str() {
            // The default of both.
            "otel" => {}
            "ecs" => map.set("mapping", "ecs"),
            _ => {
                let message = "tidegate writes the modes `otel` and `ecs`: `otel` was chosen";
                reader.note(&mode.at, &mapping.path_of("mode"), message);
            }
        }
    }
    mapping.lacks(&[("allowed_modes", "not needed: the mode is the same for all documents")], reader);
    mapping.finish(reader);
}

/// When requests are sent, how many, and how failed ones are repeated.
fn flushing(group: &mut Group<'_>, map: &mut Map, reader: &mut FileReader<'_, '_>) {
    if let Some(workers) = group.number("num_workers", reader).filter(|workers| *workers > 0) {
        map.set("max_in_flight", workers.clamp(1, 64).to_string());
    }
    if let Some(mut flush) = group.group("flush", reader) {
        if let Some(bytes) = flush.number("bytes", reader) {
            map.set("max_request_bytes", request_bytes(bytes, Bytes::mib(100)));
        }
        if let Some(interval) = flush.text("interval", reader) {
            set_duration(map, "linger", &interval, &flush.path_of("interval"), reader);
        }
        flush.finish(reader);
    }
    let Some(mut retry) = group.group("retry", reader) else { return };
    for (theirs, ours) in [("initial_interval", "min"), ("max_interval", "max")] {
        if let Some(text) = retry.text(theirs, reader) {
            set_duration(map.group("backoff"), ours, &text, &retry.path_of(theirs), reader);
        }
    }
    let forever = "not needed: a document is retried until it is stored or refused for good";
    retry.lacks(
        &[
            ("enabled", forever),
            ("max_retries", forever),
            ("max_requests", forever),
            ("retry_on_status", "not needed: 429 and 5xx are retried"),
        ],
        reader,
    );
    retry.finish(reader);
}

/// The indexes of the signals that have one.
fn indexes(group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Vec<(Signal, String)> {
    let mut indexes = Vec::new();
    for signal in SIGNALS {
        let key = format!("{}_index", signal_name(signal));
        if let Some(index) = group.text(&key, reader).filter(|index| !index.value.is_empty()) {
            indexes.push((signal, index.value));
        }
    }
    indexes
}
