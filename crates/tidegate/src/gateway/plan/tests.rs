//! Promise: what the configuration allows is in the plan.

use super::*;

/// A sink's part of a mixed record is bounded like a whole record; a sink that accepts none of it sets no bound.
#[test]
fn mixed_records_are_bounded_by_every_accepting_sink() {
    use tidegate_journal::{Protocol, Signal};
    let planned = |signals: &str| {
        let text = format!(
            "sinks: {{a: {{type: elasticsearch, endpoints: [\"http://h:1\"], signals: [{signals}]}}}}\n"
        );
        of(&tidegate_config::parse("test", &text, &|_| None).unwrap()).deliverable
    };
    for signals in ["logs", "traces", "metrics", "logs, metrics"] {
        assert!(planned(signals).size_limit(Protocol::Intake, Signal::Events).factor > 0, "{signals}");
    }
    assert_eq!(planned("logs").size_limit(Protocol::Intake, Signal::Traces).factor, 0);
    assert_eq!(planned("logs").size_limit(Protocol::Bulk, Signal::Events).factor, 0);
}

/// Every endpoint of a sink has connections, and roots that TLS trusts, of its own.
#[test]
fn every_endpoint_is_in_the_plan() {
    const ROOTS: u64 = 2 << 20;
    let planned = |kind: &str, more: &str, endpoints: &[&str]| {
        let text = format!("sinks: {{a: {{type: {kind}, endpoints: {endpoints:?}{more}}}}}\n");
        let config = tidegate_config::parse("test", &text, &|_| None).unwrap();
        let sink = kinds::of(&config.sinks[&"a".parse().unwrap()]);
        (sink.files(), sink.declared().iter().map(|line| line.count * line.each).sum::<u64>())
    };
    for (kind, more, in_flight) in [
        ("otlp", ", protocol: http, max_in_flight: 5", 5),
        ("otlp", ", protocol: grpc, max_in_flight: 5", 1),
        ("elasticsearch", ", max_in_flight: 5", 5),
        ("prometheus_remote_write", ", lanes: 5", 5),
        ("prometheus_remote_write", ", max_in_flight: 5", 5),
    ] {
        let (one_files, one) = planned(kind, more, &["https://a/w"]);
        let (three_files, three) = planned(kind, more, &["https://a/w", "https://b/w", "http://c/w"]);
        assert!(one_files >= 2 * in_flight, "{kind}{more}: {one_files}");
        assert!(three_files >= one_files + 4 * in_flight, "{kind}{more}: {one_files}, {three_files}");
        assert!(three >= one + ROOTS, "{kind}{more}: {one}, {three}");
        let (_, plain) = planned(kind, more, &["http://a/w", "http://b/w", "http://c/w"]);
        assert!(three >= plain + 2 * ROOTS, "{kind}{more}: {plain}, {three}");
    }
}

/// The largest body of a source is one that fits in a window, whichever source it is.
#[test]
fn the_largest_body_of_every_source_is_in_the_plan() {
    // Sources that run by themselves make batches of one size.
    let of_clients = sources::KINDS.iter().filter(|kind| kind.runs.is_none()).map(|kind| kind.name);
    for source in of_clients {
        let text = format!("memory: 16GiB\nsources: {{{source}: {{max_body: 1GiB}}}}\n");
        let planned = of(&tidegate_config::parse("test", &text, &|_| None).unwrap());
        let setting = format!("sources.{source}.max_body");
        let announced =
            planned.announced.iter().find(|announced| announced.source.max_body_setting == setting);
        let announced = announced.unwrap_or_else(|| panic!("{source} is not in the plan"));
        assert_eq!(announced.max_body(), 1 << 30, "{source}");
        assert!(planned.window > 1 << 30, "{source}: {}", planned.window);
    }
}
