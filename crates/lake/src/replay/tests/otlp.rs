//! OTLP requests come out as they came in.

use super::generators::any_request;
use super::normal::otlp_items;
use super::*;
use crate::tests::traces::push_otlp;
use proptest::prelude::*;

/// Pushes requests, replays the tables, and compares the items.
fn assert_round_trip(signal: Signal, requests: &[(Vec<u8>, bool)], most: usize) -> Result<(), TestCaseError> {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let mut expected = Vec::new();
    for (sequence, (raw, close)) in requests.iter().enumerate() {
        prop_assert_eq!(push_otlp(&mut writer, sequence as u64, signal, raw).dropped.items(), 0);
        expected.extend(otlp_items(signal, raw, NOW_NS));
        if *close {
            writer.close_files().unwrap();
        }
    }
    writer.close_files().unwrap();
    let tables: &[Table] = match signal {
        Signal::Logs => &[Table::Logs],
        Signal::Traces => &[Table::Spans],
        _ => &[Table::MetricPoints, Table::MetricHistograms],
    };
    let mut found = Vec::new();
    for &table in tables {
        for request in replayed(dir.path(), table, most) {
            prop_assert_eq!((request.protocol, request.signal), (ReplayProtocol::Otlp, signal));
            prop_assert!(request.body.len() <= most || request.items == 1);
            let items = otlp_items(signal, &request.body, 0);
            prop_assert_eq!(items.len(), request.items as usize);
            found.extend(items);
        }
    }
    expected.sort();
    found.sort();
    prop_assert_eq!(found, expected);
    Ok(())
}

fn any_requests(signal: Signal) -> impl Strategy<Value = (Vec<(Vec<u8>, bool)>, usize)> {
    let most = prop_oneof![Just(0_usize), 1..3000_usize, Just(1 << 20)];
    (proptest::collection::vec((any_request(signal), any::<bool>()), 1..4), most)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn log_records_come_out_as_they_came_in((requests, most) in any_requests(Signal::Logs)) {
        assert_round_trip(Signal::Logs, &requests, most)?;
    }

    #[test]
    fn spans_come_out_as_they_came_in((requests, most) in any_requests(Signal::Traces)) {
        assert_round_trip(Signal::Traces, &requests, most)?;
    }

    #[test]
    fn metrics_come_out_as_they_came_in((requests, most) in any_requests(Signal::Metrics)) {
        assert_round_trip(Signal::Metrics, &requests, most)?;
    }
}

/// A resource, scope or metric of several items is in a request once, also where rows of several senders take turns.
#[test]
fn items_of_one_sender_share_what_encloses_them() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let (long, other) = ("x".repeat(1000), "y".repeat(1000));
    for sequence in 0..100 {
        let about = if sequence % 2 == 0 { &long } else { &other };
        let raw = logs(&[("about", Attr::Text(about))], &[log_record(sequence, Attr::Text("hello"), &[])]);
        push_otlp(&mut writer, sequence, Signal::Logs, &raw);
    }
    writer.close_files().unwrap();
    let requests = replayed(dir.path(), Table::Logs, 1 << 20);
    assert_eq!(requests.len(), 1);
    assert_eq!(requests[0].items, 100);
    assert!(requests[0].body.len() < 12_000, "{}", requests[0].body.len());
}

/// Summaries that a row group's end tore apart are whole again, and so are those that were sent twice.
#[test]
fn summaries_are_joined_across_row_groups() {
    let dir = tempfile::tempdir().unwrap();
    let mut writer = writer(dir.path());
    let mut expected = Vec::new();
    for sequence in 0..40_u64 {
        let mut data = Vec::new();
        for serial in 0..200 {
            let serial = sequence * 200 + serial;
            let mut point = Vec::new();
            fixed64(&mut point, 3, START_NS);
            fixed64(&mut point, 4, serial);
            fixed64(&mut point, 5, (serial as f64).to_bits());
            for quantile in 0..1 + serial % 6 {
                let mut of = Vec::new();
                fixed64(&mut of, 1, (quantile as f64 / 10.0).to_bits());
                fixed64(&mut of, 2, serial + quantile);
                bytes(&mut point, 6, &of);
            }
            attributes(&mut point, 7, &[("serial", Attr::Int(serial.cast_signed()))]);
            bytes(&mut data, 1, &point);
            if serial % 100 == 0 {
                bytes(&mut data, 1, &point);
            }
        }
        let mut metric = Vec::new();
        bytes(&mut metric, 1, b"summary");
        bytes(&mut metric, 11, &data);
        let raw = metrics(&[], &[metric]);
        expected.extend(otlp_items(Signal::Metrics, &raw, 0));
        push_otlp(&mut writer, sequence, Signal::Metrics, &raw);
    }
    writer.close_files().unwrap();
    let mut found = Vec::new();
    let requests = replayed(dir.path(), Table::MetricPoints, 100_000);
    for request in &requests {
        found.extend(otlp_items(Signal::Metrics, &request.body, 0));
    }
    expected.sort();
    found.sort();
    assert_eq!(found.len(), expected.len());
    assert!(found == expected);
    assert_resumes_everywhere(dir.path(), Table::MetricPoints, 100_000, &requests);
}
