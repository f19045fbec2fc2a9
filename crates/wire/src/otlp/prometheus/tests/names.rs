//! Names, by example: as Prometheus makes them.

use super::super::name::{self, Kind};
use super::super::text::Text;
use crate::otlp::prometheus::Naming;

fn metric(naming: Naming, name: &str, unit: &str, kind: Kind) -> String {
    let mut out = Text::new(1000);
    name::metric(&mut out, naming, name.as_bytes(), unit.as_bytes(), kind).unwrap();
    String::from_utf8(out.all().to_vec()).unwrap()
}

fn label(naming: Naming, key: &str) -> String {
    let mut out = Text::new(1000);
    name::label(&mut out, naming, b"", key.as_bytes()).unwrap();
    let made = String::from_utf8(out.all().to_vec()).unwrap();
    assert_eq!(name::is_plain_label(naming, key.as_bytes()), made == key, "{key}");
    made
}

#[test]
fn metrics_are_named_with_unit_and_type() {
    use Kind::{Counter, Gauge, Other};
    for (name, unit, kind, expected) in [
        ("http.server.request.duration", "s", Other, "http_server_request_duration_seconds"),
        ("requests", "", Counter, "requests_total"),
        ("requests_total", "", Counter, "requests_total"),
        ("requests.total.count", "", Counter, "requests_count_total"),
        ("cpu_usage", "1", Gauge, "cpu_usage_ratio"),
        ("cpu_usage_ratio", "1", Gauge, "cpu_usage_ratio"),
        ("items", "1", Counter, "items_total"),
        ("requests", "1/s", Gauge, "requests_per_second"),
        ("throughput", "By/s", Gauge, "throughput_bytes_per_second"),
        ("custom", "{request}", Gauge, "custom"),
        ("custom", "By/{request}", Gauge, "custom_bytes"),
        ("response_time_seconds", "s", Gauge, "response_time_seconds"),
        ("2xx", "", Counter, "_2xx_total"),
        ("metric__a", "unit__b", Gauge, "metric_a_unit_b"),
        ("custom", "unit@with#special/chars", Gauge, "custom_unit_with_special_per_chars"),
        ("temperature", "Cel", Gauge, "temperature_celsius"),
        ("job:rate", "%", Gauge, "job:rate_percent"),
        ("größe", "m/min", Gauge, "gr_e_meters_per_min"),
        ("@#$%", "", Gauge, ""),
    ] {
        assert_eq!(
            metric(Naming::UnderscoreEscapingWithSuffixes, name, unit, kind),
            expected,
            "{name} {unit}"
        );
    }
    for (name, unit, kind, expected) in [
        ("requêsts", "", Counter, "requêsts_total"),
        ("cpu_seconds_total", "s", Counter, "cpu_seconds_total"),
        ("http.requests", "1/s", Counter, "http.requests_per_second_total"),
        ("http.requests.per_second", "1/s", Gauge, "http.requests_per_second"),
        ("cpu.ratio", "1", Gauge, "cpu_ratio"),
        ("http.duration", "ms", Other, "http.duration_milliseconds"),
    ] {
        assert_eq!(metric(Naming::NoUTF8EscapingWithSuffixes, name, unit, kind), expected, "{name} {unit}");
    }
    assert_eq!(metric(Naming::NoTranslation, "http.duration", "ms", Other), "http.duration");
    assert_eq!(
        metric(Naming::UnderscoreEscapingWithoutSuffixes, "2http.@dur__x", "ms", Other),
        "_2http_dur__x"
    );
}

#[test]
fn labels_are_escaped() {
    for (key, expected) in [
        ("http.method", "http_method"),
        ("plain_one", "plain_one"),
        ("a..b__c", "a_b_c"),
        ("1st", "key_1st"),
        ("_x", "key_x"),
        ("__reserved__", "key_reserved_"),
        (".a", "key_a"),
        ("größe", "gr_e"),
        ("ends.", "ends_"),
        ("@@", "key_"),
        ("都市", "key_"),
        ("_", "key_"),
        ("都市1", "key_1"),
    ] {
        assert_eq!(label(Naming::UnderscoreEscapingWithSuffixes, key), expected, "{key}");
    }
    assert_eq!(label(Naming::NoUTF8EscapingWithSuffixes, "http.méthod"), "http.méthod");
}
