//! Promise: a look shows the items of records, whichever protocol and coding they came in, and those only that it
//! is for.

use super::{arena, lines, meta, open, request};
use crate::{LONGEST_BODY, Tap, TapPoint};
use serde_json::{Value, json};
use tidegate_journal::{Encoding, Meta, Protocol, Signal, Tenant};
use tidegate_load::remote_write::{SampleBatch, Version, compress};
use tidegate_load::{SeriesModel, Timeline, otlp};

/// The lines of a tap with `query` for these records at a source.
fn shown(query: &str, records: &[(Meta, Vec<u8>)]) -> Vec<Value> {
    let tap = Tap::new(arena());
    let reading = open(&tap, query).unwrap();
    records
        .iter()
        .for_each(|(meta, body)| tap.offer(TapPoint::Source(source_of(meta.protocol)), meta, Some(body)));
    lines(&reading)
}

/// The source that records of a protocol usually come from.
fn source_of(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::RemoteWrite1 | Protocol::RemoteWrite2 => "prometheus_remote_write",
        Protocol::Intake => "elastic_apm",
        Protocol::Bulk => "elasticsearch",
        _ => "otlp",
    }
}

fn otlp(signal: otlp::Signal, items: u64) -> (Meta, Vec<u8>) {
    let body = request(signal, items);
    let signal = match signal {
        otlp::Signal::Traces => Signal::Traces,
        otlp::Signal::Metrics => Signal::Metrics,
        otlp::Signal::Logs => Signal::Logs,
    };
    (meta(signal, u32::try_from(items).unwrap(), &body), body)
}

#[test]
fn spans_log_records_and_points_are_shown() {
    let spans = shown("", &[otlp(otlp::Signal::Traces, 20)]);
    assert_eq!(spans.len(), 20);
    let span = &spans[1];
    assert_eq!(span["at"], "source:otlp");
    assert_eq!(span["signal"], "traces");
    assert_eq!(span["received"], "2023-11-14T22:13:20Z");
    assert_eq!(span["trace_id"].as_str().unwrap().len(), 32);
    assert_eq!((&span["parent_span_id"], &span["trace_id"]), (&spans[0]["span_id"], &spans[0]["trace_id"]));
    assert!(span["service"].as_str().unwrap().starts_with("service-"), "{span}");
    assert!(span["duration_ms"].as_f64().unwrap() >= 0.1, "{span}");
    assert_eq!(span["kind"], "server");
    assert_eq!(span["attributes"][otlp::NUMBER], 1_001);
    assert_eq!(span["resource"]["telemetry.sdk.name"], "opentelemetry");

    let records = shown("", &[otlp(otlp::Signal::Logs, 20)]);
    assert_eq!((records.len(), &records[3]["attributes"][otlp::NUMBER]), (20, &json!(1_003)));
    assert!(records.iter().all(|it| it["body"].is_string() && it["severity"].is_string()), "{}", records[0]);

    let points = shown("", &[otlp(otlp::Signal::Metrics, 20)]);
    assert_eq!((points.len(), &points[19]["attributes"][otlp::NUMBER]), (20, &json!(1_019)));
    assert!(points.iter().all(|it| it["name"].is_string() && it["value"].is_number()), "{}", points[0]);
}

#[test]
fn samples_and_histograms_of_both_versions_are_shown() {
    let timeline = Timeline { base_ms: 1_700_000_000_000, interval_ms: 1_000 };
    let model = SeriesModel::with_histograms(7, 30, timeline, 10);
    for (version, protocol) in [(Version::V1, Protocol::RemoteWrite1), (Version::V2, Protocol::RemoteWrite2)]
    {
        let (mut raw, mut body) = (Vec::new(), Vec::new());
        SampleBatch::of(&model, model.series(), 5, 2).encode(version, &mut raw);
        compress(&raw, &mut body);
        let encoding = Encoding::Snappy;
        let meta = Meta { protocol, encoding, ..meta(Signal::Metrics, 60, &raw) };
        let items = shown("source=prometheus_remote_write", &[(meta, body.clone())]);
        let items: Vec<_> = items.iter().filter(|item| item.get("family").is_none()).collect();
        assert_eq!(items.len(), 60, "{version:?}");
        assert_eq!(items[0]["at"], "source:prometheus_remote_write");
        let (histograms, samples): (Vec<&Value>, _) =
            items.into_iter().partition(|it| it["type"] == "histogram");
        assert!(!histograms.is_empty() && histograms.iter().all(|it| it["count"].is_number()), "{version:?}");
        assert!(samples.iter().all(|it| it["value"].is_number() && it["labels"].is_object()));
        assert_eq!(
            (&samples[0]["value"], &samples[0]["time"]),
            (&json!(5.0), &json!("2023-11-14T22:13:25Z"))
        );
        // Filters know the protocol's own words for a name and a service.
        let name = samples[0]["name"].as_str().unwrap();
        let named = shown(&format!("name={name}"), &[(meta, body.clone())]);
        assert!(named.iter().all(|it| it["name"] == name || it["family"] == name) && !named.is_empty());
        assert!(shown("source=otlp", &[(meta, body.clone())]).is_empty());
        assert_eq!(
            shown(&format!("source={}", protocol.name()), &[(meta, body)]).len(),
            60 + usize::from(false)
        );
    }
}

#[test]
fn compressed_bodies_are_shown_as_they_were() {
    let (plain, raw) = otlp(otlp::Signal::Logs, 50);
    let whole = shown("", &[(plain, raw.clone())]);
    for (coding, encoding) in
        [(otlp::ContentCoding::Gzip, Encoding::Gzip), (otlp::ContentCoding::Zstd, Encoding::Zstd)]
    {
        let body = coding.encode(&raw).unwrap();
        assert_eq!(shown("", &[(Meta { encoding, ..plain }, body)]), whole, "{encoding:?}");
    }
    // A body that cannot be decompressed is reported.
    let damaged = shown("", &[(Meta { encoding: Encoding::Gzip, ..plain }, raw)]);
    assert_eq!(damaged.len(), 1);
    assert_eq!(
        (&damaged[0]["items"], &damaged[0]["why"]),
        (&json!(50), &json!("the body cannot be decompressed"))
    );
}

#[test]
fn items_are_chosen_by_service_name_and_text() {
    let records: Vec<_> = [otlp::Signal::Traces, otlp::Signal::Logs].map(|signal| otlp(signal, 100)).into();
    let all = shown("", &records);
    assert_eq!(all.len(), 200);
    let service = all[0]["service"].as_str().unwrap();
    assert_eq!(shown(&format!("service={service}"), &records).len(), 200);
    assert!(shown("service=service", &records).is_empty(), "whole names are compared");
    let name = all[0]["name"].as_str().unwrap();
    let query = format!("name={}", name.replace(' ', "+").replace('{', "%7B").replace('}', "%7d"));
    let named = shown(&query, &records);
    assert_eq!(named.len(), all.iter().filter(|it| it["name"] == name).count());
    let found = shown("contains=%22load.number%22:1042", &records);
    assert!(found.iter().all(|it| it["attributes"][otlp::NUMBER] == 1_042) && found.len() == 2, "{found:?}");
    assert_eq!(shown("signal=logs", &records).len(), 100);
    assert_eq!(shown("every=2", &records).len(), 100, "of two records the first");
}

/// Events of Elastic APM are shown as their agents wrote them, whichever coding they came in.
#[test]
fn intake_events_are_shown() {
    let agent = tidegate_load::elastic_apm::AGENTS[0];
    let raw = agent.busy.as_bytes();
    let events = agent.busy.lines().count() as u32 - 1;
    let plain = Meta { protocol: Protocol::Intake, ..meta(Signal::Traces, events, raw) };
    let all = shown("", &[(plain, raw.to_vec())]);
    assert_eq!(all.len(), events as usize);
    let span = &all[0];
    assert_eq!((&span["at"], &span["event"]), (&json!("source:elastic_apm"), &json!("span")));
    assert_eq!((&span["service"], &span["name"]), (&json!("shop-go"), &json!("SELECT t6")));
    assert_eq!(span["fields"]["context"]["db"]["instance"], "shop");
    assert_eq!(shown("service=shop-go&name=SELECT+t6", &[(plain, raw.to_vec())]).len(), 5);
}

/// Of a record of several signals each event says its own, and those are shown that are wanted.
#[test]
fn events_of_a_mixed_record_say_their_signal() {
    let agent = tidegate_load::elastic_apm::AGENTS[0];
    let raw = agent.busy.as_bytes();
    let events = agent.busy.lines().count() as u32 - 1;
    let mixed = Meta { protocol: Protocol::Intake, ..meta(Signal::Events, events, raw) };
    let mut all = 0;
    for (signal, kinds) in
        [("traces", &["span", "transaction"][..]), ("metrics", &["metricset"]), ("logs", &["error"])]
    {
        let shown = shown(&format!("signal={signal}"), &[(mixed, raw.to_vec())]);
        assert!(!shown.is_empty(), "{signal}");
        for line in &shown {
            assert_eq!(line["signal"], signal, "{line}");
            assert!(kinds.contains(&line["event"].as_str().unwrap()), "{line}");
        }
        all += shown.len();
    }
    assert_eq!((all, shown("", &[(mixed, raw.to_vec())]).len()), (events as usize, events as usize));
    assert!(shown("signal=profiles", &[(mixed, raw.to_vec())]).is_empty());
}

/// Documents are shown as they were sent, and so is what is none.
#[test]
fn documents_are_shown() {
    let raw = concat!(
        r#"{"create":{"_index":"logs-a","_id":7}}"#,
        "\n",
        r#"{"message":"first","service":{"name":"shop"}}"#,
        "\n",
        r#"{"delete":{"_index":"logs-b","_id":"x"}}"#,
        "\n",
        r#"{"index":{}}"#,
        "\n",
        "{no",
        "\n",
    );
    let plain = Meta { protocol: Protocol::Bulk, ..meta(Signal::Logs, 3, raw.as_bytes()) };
    let all = shown("", &[(plain, raw.as_bytes().to_vec())]);
    assert_eq!(all.len(), 3);
    assert_eq!(
        (&all[0]["action"], &all[0]["index"], &all[0]["id"]),
        (&json!("create"), &json!("logs-a"), &json!("7"))
    );
    assert_eq!(all[0]["document"]["message"], "first");
    assert_eq!((&all[1]["action"], &all[1]["id"]), (&json!("delete"), &json!("x")));
    assert_eq!(all[2]["document"], "{no");
    assert_eq!(shown("service=shop", &[(plain, raw.as_bytes().to_vec())]).len(), 1);
}

/// A record that is too long to be shown is reported with its metadata.
#[test]
fn records_too_long_to_show_are_reported_with_their_metadata() {
    let many = shown("", &[otlp(otlp::Signal::Logs, 500)]);
    assert_eq!(many.len(), 201);
    assert_eq!((&many[200]["items"], &many[200]["not_shown"]), (&json!(500), &json!(300)));
    let (whole, body) = otlp(otlp::Signal::Traces, 1_000);
    assert!(body.len() > LONGEST_BODY);
    let long = shown("", &[(whole, body.clone())]);
    assert_eq!(
        (long.len(), &long[0]["bytes"], &long[0]["not_shown"]),
        (1, &json!(body.len()), &json!(1_000))
    );
    let (large, raw) = otlp(otlp::Signal::Traces, 4_000);
    let body = otlp::ContentCoding::Zstd.encode(&raw).unwrap();
    let bomb = (Meta { encoding: Encoding::Zstd, ..large }, vec![0; body.len().min(LONGEST_BODY)]);
    assert_eq!(shown("", &[bomb])[0]["why"], "the body is longer than 1 MiB once decompressed");

    let tap = Tap::new(arena());
    let reading = open(&tap, "sink=*").unwrap();
    let tenant = Tenant::new("team \"a\"").unwrap();
    tap.offer(TapPoint::Source("otlp"), &whole, None);
    tap.offer(TapPoint::Sink("out"), &Meta { tenant, ..whole }, None);
    let unread = lines(&reading);
    assert_eq!(unread.len(), 1);
    assert_eq!((&unread[0]["at"], &unread[0]["tenant"]), (&json!("sink:out"), &json!("team \"a\"")));
    assert_eq!(unread[0]["why"], "the sink does not read bodies");
}

/// Lines for which there is no room are counted, and the others are whole.
#[test]
fn lines_that_do_not_fit_are_counted() {
    let tap = Tap::new(arena());
    let reading = open(&tap, "").unwrap();
    let (meta, body) = otlp(otlp::Signal::Logs, 100);
    tap.offer(TapPoint::Source("otlp"), &meta, Some(&body));
    let mut room = 30;
    let mut out = |_: &str| {
        room -= 1;
        room >= 0
    };
    let written = reading.write_next(&mut out).unwrap();
    assert_eq!((written.lines, written.no_room, written.bytes), (30, 70, body.len()));
}
