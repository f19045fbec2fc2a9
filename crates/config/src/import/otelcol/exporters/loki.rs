//! The exporter for Loki, which the Collector had until 0.131.

use super::{destination, missing_endpoint};
use crate::import::document::{Map, Yaml};
use crate::import::group::FileReader;
use crate::import::otelcol::{Collector, settings};
use crate::import::sinks::Destination;
use crate::model::Signal;
use crate::yaml::Entry;

impl Collector<'_> {
    pub(super) fn loki(&mut self, entry: &Entry, reader: &mut FileReader<'_, '_>) -> Option<Destination> {
        let mut group = settings(entry, "exporters", reader)?;
        let mut map = Map::default();
        let mut url = String::new();
        match group.text("endpoint", reader) {
            Some(endpoint) => {
                let trimmed = endpoint.value.trim_end_matches('/');
                trimmed.strip_suffix("/loki/api/v1/push").unwrap_or(trimmed).clone_into(&mut url);
                map.set("endpoints", Yaml::Flow(vec![url.clone()]));
            }
            None => missing_endpoint(entry, reader),
        }
        if let Some(mut labels) = group.group("default_labels_enabled", reader) {
            labels.take_all();
            let message = "left out: `labels` of the sink names the attributes that become labels";
            reader.note(&labels.at, &labels.path, message);
        }
        let mut client = self.client(&mut group, reader);
        client.allow_cleartext([url.as_str()], client.user.is_some());
        client.match_tls([url.as_str()], &group, reader);
        self.user_header(&mut client, entry, reader);
        map.append(&client.settings);
        group.finish(reader);
        let signals = vec![Signal::Logs];
        Some(Destination { signals, has_signals: false, ..destination("loki", map) })
    }
}
