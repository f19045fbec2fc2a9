//! The exporter for Splunk's HTTP Event Collector.

use super::{destination, missing_endpoint, request_bytes};
use crate::import::document::{Map, Yaml};
use crate::import::group::{FileReader, Group, Lacking};
use crate::import::otelcol::{Collector, settings};
use crate::import::sinks::Destination;
use crate::model::Signal;
use crate::values::Bytes;
use crate::yaml::Entry;

const LACKING: &Lacking = &[
    ("max_content_length_metrics", "not needed: the sink sends logs"),
    ("max_content_length_traces", "not needed: the sink sends logs"),
    ("use_multi_metric_format", "not needed: the sink sends logs"),
    ("max_event_size", "left out: an event of any size is sent, alone if it is large"),
    ("splunk_app_name", "left out: set `headers.__splunk_app_name`"),
    ("splunk_app_version", "left out: set `headers.__splunk_app_version`"),
    ("log_data_enabled", "left out: the sink sends log records"),
    ("profiling_data_enabled", "left out: the sink sends log records"),
    ("health_path", "not needed: a failing endpoint is left out until it answers again"),
    ("health_check_enabled", "not needed: a failing endpoint is left out until it answers again"),
    ("export_raw", "left out: events are sent with their metadata"),
    ("heartbeat", "left out: no events are sent but those that were received"),
    ("telemetry", "not needed: `/metrics` has counters for each sink"),
    ("batcher", "not needed: each sink makes its own batches"),
    ("otel_to_hec_fields", "left out: see docs/splunk-hec.md for the names of fields"),
];

impl Collector<'_> {
    pub(super) fn splunk_hec(
        &mut self,
        entry: &Entry,
        reader: &mut FileReader<'_, '_>,
    ) -> Option<Destination> {
        let mut group = settings(entry, "exporters", reader)?;
        let mut map = Map::default();
        let mut url = String::new();
        match group.text("endpoint", reader) {
            Some(endpoint) => {
                let trimmed = endpoint.value.trim_end_matches('/');
                let trimmed = trimmed.strip_suffix("/event").unwrap_or(trimmed);
                trimmed.strip_suffix("/services/collector").unwrap_or(trimmed).clone_into(&mut url);
                map.set("endpoints", Yaml::Flow(vec![url.clone()]));
            }
            None => missing_endpoint(entry, reader),
        }
        for key in ["token", "source", "sourcetype", "index"] {
            map.set_some(key, group.text(key, reader).map(|text| text.value));
        }
        metadata(&mut group, &mut map, reader);
        if group.flag("disable_compression", reader) == Some(true) {
            map.set("compression", "none");
        }
        if let Some(bytes) = group.number("max_content_length_logs", reader).filter(|bytes| *bytes > 0) {
            map.set("max_request_bytes", request_bytes(bytes, Bytes::mib(512)));
        }
        let mut client = self.client(&mut group, reader);
        client.allow_cleartext([url.as_str()], true);
        client.match_tls([url.as_str()], &group, reader);
        self.user_header(&mut client, entry, reader);
        map.append(&client.settings);
        group.lacks(LACKING, reader);
        group.finish(reader);
        let signals = vec![Signal::Logs];
        Some(Destination { signals, has_signals: false, ..destination("splunk_hec", map) })
    }
}

/// The attributes that become an event's metadata.
fn metadata(group: &mut Group<'_>, map: &mut Map, reader: &mut FileReader<'_, '_>) {
    // The second is the name before 0.113.
    for key in ["otel_attrs_to_hec_metadata", "hec_metadata_to_otel_attrs"] {
        let Some(mut names) = group.group(key, reader) else { continue };
        for (theirs, ours) in [
            ("source", "source_attribute"),
            ("sourcetype", "sourcetype_attribute"),
            ("index", "index_attribute"),
            ("host", "host_attribute"),
        ] {
            map.set_some(ours, names.text(theirs, reader).map(|text| text.value));
        }
        names.finish(reader);
    }
}
