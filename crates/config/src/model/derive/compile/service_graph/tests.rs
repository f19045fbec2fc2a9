//! Promise: the settings are those of the Collector's connector, and so are their defaults.

use tidegate_derived_metrics::{Group, InstrumentKind};
use tidegate_pipeline::{AttributeSource, KeyAttribute, KeyAttributes};

use crate::{Signal, Sink, parse};

/// The group of a service graph with these settings, and the attributes that it needs of spans.
fn derived(graph: &str) -> (Group, Vec<KeyAttribute>) {
    let text = format!("sinks: {{ graph: {{ type: derive, service_graph: {graph} }} }}");
    let config = parse("test.yaml", &text, &|_| None).unwrap_or_else(|errors| panic!("{errors}"));
    let sink: &Sink = config.sinks.values().next().unwrap();
    assert_eq!(sink.signals(), [Signal::Traces]);
    let mut derivation = sink.derive().unwrap().derivation().unwrap();
    let (group, measure) = (derivation.table.measures.remove(0), derivation.measures.remove(0));
    assert_eq!(measure.resource, KeyAttributes::Listed(Vec::new()));
    let KeyAttributes::Listed(listed) = measure.attributes else { panic!("they are listed") };
    (group, listed)
}

fn names(listed: &[KeyAttribute]) -> Vec<&str> {
    listed.iter().map(|it| it.key.as_str()).collect()
}

#[test]
fn has_the_defaults_of_the_connector() {
    let (group, listed) = derived("{}");
    let pairs = group.pairs.unwrap();
    assert_eq!((pairs.ttl_ms, pairs.max_items, pairs.dimensions, pairs.peers), (2_000, 1_000, 0, 3));
    assert_eq!(group.attributes.unwrap(), ["client", "server", "connection_type", "failed"]);
    let metrics = group.instruments.iter().map(|it| (it.name.as_str(), it.unit.as_str()));
    assert_eq!(
        metrics.collect::<Vec<_>>(),
        [
            ("traces_service_graph_request_total", ""),
            ("traces_service_graph_request_failed_total", ""),
            ("traces_service_graph_request_server", "s"),
            ("traces_service_graph_request_client", "s"),
        ]
    );
    let InstrumentKind::Histogram { bounds } = &group.instruments[2].kind else { panic!("fixed bounds") };
    let seconds =
        [0.002, 0.004, 0.006, 0.008, 0.01, 0.05, 0.1, 0.2, 0.4, 0.8, 1.0, 1.4, 2.0, 5.0, 10.0, 15.0];
    assert_eq!(bounds[..], seconds);
    assert_eq!(names(&listed), ["service.name", "peer.service", "db.name", "db.system", "db.name"]);
    assert_eq!(listed.iter().map(|it| it.is_optional).collect::<Vec<_>>(), [false, true, true, true, true]);
    let from: Vec<_> = listed.iter().map(|it| it.from).collect();
    use AttributeSource::{Item, Resource, ResourceOrItem};
    assert_eq!(from, [Resource, Item, Item, Item, ResourceOrItem]);
}

#[test]
fn has_what_is_written() {
    let (group, listed) = derived(
        "{ exponential_histogram_max_size: 20, dimensions: [zone, n], store: { ttl: 5s, max_items: 7 }, \
         virtual_node_peer_attributes: [], virtual_node_extra_label: true, database_name_attributes: [d, e] }",
    );
    let pairs = group.pairs.unwrap();
    assert_eq!((pairs.ttl_ms, pairs.max_items, pairs.dimensions, pairs.peers), (5_000, 7, 2, 0));
    assert!(pairs.has_virtual_node_label);
    let names_of_series = group.attributes.unwrap();
    assert_eq!(names_of_series[4..], ["client_zone", "client_n", "server_zone", "server_n", "virtual_node"]);
    assert_eq!(group.instruments[3].kind, InstrumentKind::ExponentialHistogram { max_size: 20 });
    assert_eq!(names(&listed), ["service.name", "zone", "n", "d", "e"]);
    let (group, _) = derived("{ latency_histogram_buckets: [10ms, 100ms] }");
    assert_eq!(group.instruments[2].kind, InstrumentKind::Histogram { bounds: vec![0.01, 0.1] });
}
