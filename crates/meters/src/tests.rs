use std::sync::Barrier;
use std::thread;

use proptest::prelude::*;

use crate::{Buckets, Histogram, Kind, MAX_LABEL_BYTES, Name, OTHER, Registry, Value};

fn text(registry: &Registry) -> String {
    let mut text = String::new();
    registry.encode(&mut text).unwrap();
    text
}

/// The bucket that the definition gives: the first whose bound is not below the value.
fn defined(bounds: &[u64], value: u64) -> usize {
    bounds.iter().position(|bound| *bound >= value).unwrap_or(bounds.len())
}

fn bucket_of(histogram: &Histogram) -> usize {
    histogram.summary().buckets.iter().position(|(_, count)| *count == 1).unwrap()
}

/// Values near powers of two and near small multiples of them, where an index is most easily wrong.
fn values() -> impl Strategy<Value = u64> {
    let near = (0u32..64, 0u64..16, -2i64..=2).prop_map(|(log2, eighths, off)| {
        let base = 1u64 << log2;
        base.saturating_add(base / 8 * eighths).saturating_add_signed(off)
    });
    prop_oneof![near, any::<u64>(), 0u64..100]
}

proptest! {
    /// A value lands in the first bucket whose bound is not below it, computed or listed.
    #[test]
    fn buckets_agree_with_their_bounds(value in values(), first in 0u32..40, octaves in 1u32..24, split in 0u32..4) {
        let computed = Buckets::log_linear(1 << first, 1u64 << (first + octaves), 1 << split);
        let listed = Buckets::listed(computed.bounds());
        let expected = defined(computed.bounds(), value);
        prop_assert!(computed.bounds().is_sorted_by(|a, b| a < b));
        for buckets in [computed, listed] {
            let histogram = Histogram::new(buckets, 0);
            histogram.observe(value);
            prop_assert_eq!(bucket_of(&histogram), expected);
            prop_assert_eq!(histogram.summary().sum, value);
        }
    }
}

/// No observation is lost, whether threads have a stripe of their own or share one.
#[test]
fn histogram_loses_nothing_between_threads() {
    let histogram = Histogram::new(Buckets::counts(), 2);
    thread::scope(|threads| {
        for _ in 0..6 {
            threads.spawn(|| (0..10_000u64).for_each(|n| histogram.observe(n % 7)));
        }
    });
    let summary = histogram.summary();
    assert_eq!(summary.count(), 60_000);
    assert_eq!(summary.sum, 6 * (0..10_000u64).map(|n| n % 7).sum::<u64>());
}

/// A quantile is the bound of the bucket that holds it.
#[test]
fn quantiles_are_bucket_bounds() {
    let histogram = Histogram::new(Buckets::listed(&[10, 20, 30]), 1);
    assert_eq!(histogram.summary().quantile(0.5), None);
    for value in [5, 15, 15, 99] {
        histogram.observe(value);
    }
    let summary = histogram.summary();
    assert_eq!(summary.quantile(0.0), Some(10));
    assert_eq!(summary.quantile(0.5), Some(20));
    assert_eq!(summary.quantile(1.0), Some(30));
}

/// Label values beyond the bound are counted under `other`, nothing grows, and the overflow is counted.
#[test]
fn families_are_bounded() {
    let registry = Registry::new(1);
    let family = registry.counters(Name::plain("requests", "Requests"), ["tenant"], 2);
    let size = registry.size_bytes();
    for tenant in 0..1_000 {
        family.series([&format!("tenant-{tenant}")]).increment();
    }
    family.series(["tenant-1"]).add(9);
    let text = text(&registry);
    assert!(text.contains("tidegate_requests_total{tenant=\"tenant-0\"} 1\n"), "{text}");
    assert!(text.contains("tidegate_requests_total{tenant=\"tenant-1\"} 10\n"), "{text}");
    assert!(text.contains("tidegate_requests_total{tenant=\"other\"} 998\n"), "{text}");
    assert!(text.contains("tidegate_meter_series_overflowed_total{meter=\"requests\"} 998\n"), "{text}");
    assert_eq!(text.matches("tidegate_requests_total").count(), 3);
    assert_eq!(family.overflowed(), 998);
    assert_eq!(registry.size_bytes(), size);
}

/// Threads that ask for the same new label values get the same meter.
#[test]
fn a_series_is_made_once() {
    // Threads meet where it matters once in a few rounds.
    for _ in 0..500 {
        let registry = Registry::new(1);
        let family = registry.counters(Name::plain("races", "Races"), ["n"], 16);
        let start = Barrier::new(4);
        thread::scope(|threads| {
            for _ in 0..4 {
                threads.spawn(|| {
                    start.wait();
                    (0..16).for_each(|n| family.series([&n.to_string()]).increment());
                });
            }
        });
        let mut series = 0;
        registry.read(|reading| {
            if reading.name == "tidegate_races_total" {
                series += 1;
                assert_eq!(reading.value, Value::Counter(4), "{:?}", reading.values);
            }
        });
        assert_eq!(series, 16);
    }
}

/// A label value is cut between characters, and cannot break out of its quotes.
#[test]
fn label_values_are_cut_and_escaped() {
    let registry = Registry::new(1);
    let family = registry.gauges(Name::plain("odd", "Odd"), ["label"], 4);
    family.series(["a\"\n\\b"]).set(-1);
    family.series([&format!("x{}", "é".repeat(100))]).set(2);
    let text = text(&registry);
    assert!(text.contains("tidegate_odd{label=\"a\\\"\\n\\\\b\"} -1\n"), "{text}");
    let cut = format!("x{}", "é".repeat((MAX_LABEL_BYTES - 1) / 2));
    assert!(text.contains(&format!("tidegate_odd{{label=\"{cut}\"}} 2\n")), "{text}");
}

/// The text is what Prometheus expects: names with unit and suffix, seconds, cumulative buckets, an end.
#[test]
fn text_follows_the_conventions() {
    let registry = Registry::new(1);
    registry.counter(Name::plain("requests", "Requests received")).add(3);
    registry.gauge(Name::bytes("memory", "Memory in use")).set(42);
    let sync =
        registry.histogram(Name::seconds("sync", "Time to sync"), Buckets::listed(&[1_000_000, 250_000_000]));
    sync.observe(1_000_000);
    sync.observe(300_000_000);
    registry.computed(Name::plain("share", "Shares"), Kind::Gauge, ["share"], 1, |emit| {
        emit(["ingest"], Value::Gauge(7));
        emit(["more than announced"], Value::Gauge(8));
    });
    let expected = "\
# HELP tidegate_meter_series_overflowed How often a family was full and label values were counted under `other`.
# TYPE tidegate_meter_series_overflowed counter
# HELP tidegate_requests Requests received.
# TYPE tidegate_requests counter
tidegate_requests_total 3
# HELP tidegate_memory_bytes Memory in use.
# TYPE tidegate_memory_bytes gauge
# UNIT tidegate_memory_bytes bytes
tidegate_memory_bytes 42
# HELP tidegate_sync_seconds Time to sync.
# TYPE tidegate_sync_seconds histogram
# UNIT tidegate_sync_seconds seconds
tidegate_sync_seconds_sum 0.301
tidegate_sync_seconds_count 2
tidegate_sync_seconds_bucket{le=\"0.001\"} 1
tidegate_sync_seconds_bucket{le=\"0.25\"} 1
tidegate_sync_seconds_bucket{le=\"+Inf\"} 2
# HELP tidegate_share Shares.
# TYPE tidegate_share gauge
tidegate_share{share=\"ingest\"} 7
# EOF
";
    assert_eq!(text(&registry), expected);
}

/// Pages can read what the text shows: name, labels and value.
#[test]
fn readings_carry_name_labels_and_value() {
    let registry = Registry::new(1);
    let family = registry.counters(Name::bytes("read", "Read"), ["source", "signal"], 1);
    family.series(["a", "b"]).add(5);
    family.series(["c", "d"]).add(6);
    let mut seen = Vec::new();
    registry.read(|r| seen.push(format!("{} {:?} {:?} {:?}", r.name, r.labels, r.values, r.value)));
    let labels = "[\"source\", \"signal\"]";
    let rows = [
        "tidegate_meter_series_overflowed_total [\"meter\"] [\"read\"] Counter(1)".to_owned(),
        format!("tidegate_read_bytes_total {labels} [\"a\", \"b\"] Counter(5)"),
        format!("tidegate_read_bytes_total {labels} [\"{OTHER}\", \"{OTHER}\"] Counter(6)"),
    ];
    assert_eq!(seen, rows);
    assert_eq!(registry.max_series(), 256 + 2);
}

/// Two meters of one name would be an invalid exposition, so the program does not start.
#[test]
#[should_panic(expected = "published twice")]
fn a_name_is_published_once() {
    let registry = Registry::new(1);
    registry.counter(Name::plain("requests", "Requests"));
    registry.gauge(Name::plain("requests", "Requests"));
}
