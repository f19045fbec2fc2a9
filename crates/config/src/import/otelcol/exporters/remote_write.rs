//! The exporter for Prometheus remote write.

use super::{destination, missing_endpoint, request_bytes};
use crate::import::document::Map;
use crate::import::group::{FileReader, Group};
use crate::import::otelcol::{Collector, settings};
use crate::import::relabel;
use crate::import::sinks::Destination;
use crate::model::Signal;
use crate::values::Bytes;
use crate::yaml::Entry;

impl Collector<'_> {
    pub(super) fn remote_write(
        &mut self,
        entry: &Entry,
        reader: &mut FileReader<'_, '_>,
    ) -> Option<Destination> {
        let mut group = settings(entry, "exporters", reader)?;
        let mut map = Map::default();
        let endpoint = group.text("endpoint", reader);
        match &endpoint {
            Some(endpoint) => map.set("url", endpoint.value.as_str()),
            None => missing_endpoint(entry, reader),
        }
        if group.text("protobuf_message", reader).is_some_and(|text| text.value.contains("v2")) {
            map.set("protocol", "2.0");
        }
        let url = endpoint.map_or_else(String::new, |endpoint| endpoint.value);
        let mut client = self.client(&mut group, reader);
        client.allow_cleartext([url.as_str()], client.user.is_some());
        client.match_tls([url.as_str()], &group, reader);
        self.user_header(&mut client, entry, reader);
        map.append(&client.settings);
        if let Some(bytes) = group.number("max_batch_size_bytes", reader).filter(|bytes| *bytes > 0) {
            map.set("max_request_bytes", request_bytes(bytes, Bytes::gib(1)));
        }
        queue(&mut group, &mut map, reader);
        translation(&mut group, &mut map, reader);
        relabel::set_rules(&mut map, rules(&mut group, entry, reader));
        group.lacks(
            &[
                ("wal", "not needed: the journal is on disk, in the folder `data`"),
                ("send_metadata", "not needed: metadata is sent with remote write 2.0, and as received"),
                ("export_created_metric", "left out: no `_created` series are made"),
                ("compression", "not needed: remote write is always compressed with snappy"),
            ],
            reader,
        );
        group.finish(reader);
        let signals = vec![Signal::Metrics];
        Some(Destination { signals, has_signals: false, ..destination("prometheus_remote_write", map) })
    }
}

fn queue(group: &mut Group<'_>, map: &mut Map, reader: &mut FileReader<'_, '_>) {
    let parallel = group.number("max_batch_request_parallelism", reader);
    let mut consumers = None;
    if let Some(mut queue) = group.group("remote_write_queue", reader) {
        consumers = queue.number("num_consumers", reader);
        queue.lacks(
            &[
                ("enabled", "not needed: the journal is the queue, and always on"),
                ("queue_size", "not needed: the journal is the queue; `journal.quota` bounds it in bytes"),
            ],
            reader,
        );
        queue.finish(reader);
    }
    if let Some(requests) = parallel.or(consumers) {
        map.set("max_in_flight", requests.clamp(1, 64).to_string());
    }
}

/// How names are translated.
fn translation(group: &mut Group<'_>, map: &mut Map, reader: &mut FileReader<'_, '_>) {
    let mut otlp = Map::default();
    let suffixes = group.flag("add_metric_suffixes", reader);
    match group.text("translation_strategy", reader) {
        Some(strategy) => otlp.set("naming", strategy.value),
        None if suffixes == Some(false) => otlp.set("naming", "UnderscoreEscapingWithoutSuffixes"),
        None => {}
    }
    if let Some(mut conversion) = group.group("resource_to_telemetry_conversion", reader) {
        let (path, at) = (conversion.path.clone(), conversion.at.clone());
        if conversion.flag("enabled", reader) == Some(true) {
            let message = "tidegate adds the resource attributes that are listed in `otlp.promote`, not all: write \
                           those that you need there";
            reader.note(&at, &path, message);
        }
        conversion.lacks(
            &[("exclude_service_attributes", "not needed: only listed attributes become labels")],
            reader,
        );
        conversion.finish(reader);
    }
    if group.flag("disable_scope_info", reader) == Some(true) {
        otlp.set("scope_labels", "false");
    }
    if let Some(mut target) = group.group("target_info", reader) {
        if target.flag("enabled", reader) == Some(false) {
            otlp.set("target_info", "false");
        }
        target.finish(reader);
    }
    map.set_group("otlp", otlp);
}

/// Rules for the prefix of names, and for labels that every series gets.
fn rules(group: &mut Group<'_>, entry: &Entry, reader: &mut FileReader<'_, '_>) -> Vec<Map> {
    let mut rules = Vec::new();
    if let Some(namespace) = group.text("namespace", reader) {
        let mut rule = Map::default();
        rule.set("source_labels", crate::import::document::Yaml::Flow(vec!["__name__".to_owned()]));
        rule.set("target_label", "__name__");
        rule.set("replacement", format!("{}_$1", namespace.value));
        rules.push(rule);
    }
    let path = format!("exporters.{}.external_labels", entry.key);
    if let Some(mut labels) = group.group("external_labels", reader) {
        for label in labels.take_all() {
            if let Some(value) = reader.text(&label.node, &path) {
                rules.push(relabel::label_if_absent(&label.key, &value.value));
            }
        }
    }
    rules
}
