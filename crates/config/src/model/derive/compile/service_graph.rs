//! The service graph: one measure of spans, whose pairs are counted.

#[cfg(test)]
mod tests;

use tidegate_derived_metrics::{Group, InstrumentKind, PairSettings};
use tidegate_pipeline::{
    AttributeSource, KeyAttribute, KeyAttributes, Measure, MeasureCount, MeasureValue, Measured,
};

use super::{Compiler, DEFAULT_BOUNDS, SERVICE_NAME, attribute, instrument};
use crate::model::derive::ServiceGraph;

const PEER_ATTRIBUTES: [&str; 3] = ["peer.service", "db.name", "db.system"];
const DATABASE_ATTRIBUTES: [&str; 1] = ["db.name"];
/// The times of spans are nanoseconds, and are given out in seconds.
const DIVISOR: f64 = 1e9;
const AT: &str = "service_graph";

impl Compiler {
    pub(super) fn service_graph(&mut self, settings: &ServiceGraph) {
        let latencies = self.latencies(settings);
        self.distinct_dimensions(&settings.dimensions);
        let peers = match &settings.virtual_node_peer_attributes {
            None => PEER_ATTRIBUTES.map(str::to_owned).to_vec(),
            Some(peers) => peers.to_vec(),
        };
        let databases = match settings.database_name_attributes.is_empty() {
            true => DATABASE_ATTRIBUTES.map(str::to_owned).to_vec(),
            false => settings.database_name_attributes.to_vec(),
        };
        let service =
            KeyAttribute { is_optional: false, ..attribute(SERVICE_NAME, AttributeSource::Resource) };
        let of = |names: &[String], from| names.iter().map(|name| attribute(name, from)).collect::<Vec<_>>();
        let listed = [
            vec![service],
            of(&settings.dimensions, AttributeSource::ResourceOrItem),
            of(&peers, AttributeSource::Item),
            of(&databases, AttributeSource::ResourceOrItem),
        ];
        let measure = Measure {
            of: Measured::Spans,
            conditions: Vec::new(),
            resource: KeyAttributes::Listed(Vec::new()),
            attributes: KeyAttributes::Listed(listed.concat()),
            value: MeasureValue::Duration,
            count: MeasureCount::One,
            // Pairs are found by it.
            tells_span: true,
        };
        let metric = |name: &str, unit, kind| {
            instrument(format!("traces_service_graph_request_{name}"), "", unit, kind)
        };
        let group = Group {
            attributes: Some(attributes_of_edges(settings)),
            divisor: DIVISOR,
            instruments: vec![
                metric("total", "", InstrumentKind::Count),
                metric("failed_total", "", InstrumentKind::Count),
                metric("server", "s", latencies.clone()),
                metric("client", "s", latencies),
            ],
            pairs: Some(PairSettings {
                dimensions: settings.dimensions.len(),
                peers: peers.len(),
                has_virtual_node_label: settings.virtual_node_extra_label,
                ttl_ms: u64::try_from(settings.store.ttl.get().as_millis()).unwrap_or(u64::MAX),
                max_items: settings.store.max_items,
            }),
        };
        self.add(measure, group, []);
    }

    fn latencies(&mut self, settings: &ServiceGraph) -> InstrumentKind {
        const BUCKETS: &str = "latency_histogram_buckets";
        const MAX_SIZE: &str = "exponential_histogram_max_size";
        let buckets = &settings.latency_histogram_buckets;
        let max_size = settings.exponential_histogram_max_size;
        if max_size == 1 {
            self.problem(
                &[AT, MAX_SIZE],
                "an exponential histogram has at least two buckets".to_owned(),
                "write a number from 2 to 1024, or 0 for buckets with fixed bounds",
            );
        }
        if max_size > 0 && !buckets.is_empty() {
            let message = format!("these histograms have `{BUCKETS}` and `{MAX_SIZE}`");
            self.problem(&[AT], message, "remove one of the two");
        }
        let in_seconds = |nanoseconds: f64| nanoseconds / DIVISOR;
        let bounds: Vec<f64> = match buckets.is_empty() {
            true => DEFAULT_BOUNDS.iter().map(|bound| in_seconds(bound * 1e6)).collect(),
            false => buckets.iter().map(|bound| in_seconds(bound.get().as_nanos() as f64)).collect(),
        };
        self.ascending(&bounds, &[AT, BUCKETS]);
        match max_size {
            0 => InstrumentKind::Histogram { bounds },
            max_size => InstrumentKind::ExponentialHistogram { max_size },
        }
    }

    fn distinct_dimensions(&mut self, dimensions: &[String]) {
        for (number, name) in dimensions.iter().enumerate() {
            if dimensions.iter().take(number).any(|known| known == name) {
                self.problem(
                    &[AT, "dimensions", &number.to_string()],
                    format!("there are two dimensions `{name}`"),
                    "remove one of them",
                );
            }
        }
    }
}

/// The attributes of series, in the order of [`PairSettings`].
fn attributes_of_edges(settings: &ServiceGraph) -> Vec<String> {
    let fixed = ["client", "server", "connection_type", "failed"].map(str::to_owned);
    let sides = ["client", "server"].into_iter();
    let dimensions =
        sides.flat_map(|side| settings.dimensions.iter().map(move |name| format!("{side}_{name}")));
    let label = settings.virtual_node_extra_label.then(|| "virtual_node".to_owned());
    fixed.into_iter().chain(dimensions).chain(label).collect()
}
