use super::*;

/// Items come back as they were, with the zero members left out.
#[test]
fn items_are_what_they_were() {
    let resource = json!({"attributes": {"service.name": "shop", "n": 1}, "schema_url": "u"});
    let scope = json!({"name": "lib", "version": "1", "attributes": {"s": true}});
    for (signal, item) in [
        (
            Signal::Logs,
            json!({
                "time": "2026-11-21T07:00:00.000000001Z", "observed_time": "2026-11-21T07:00:01Z",
                "severity_number": 9, "severity_text": "INFO", "body": {"a": [1, "b", 2.5, null], "c": {"d": false}},
                "attributes": {"http.status": 200, "empty": null, "list": [], "big": i64::MIN},
                "trace_id": "5b8efff798038103d269b633813fc60c", "span_id": "eee19b7ec3c1b174", "flags": 1,
                "event_name": "e", "resource": resource, "scope": scope,
            }),
        ),
        (
            Signal::Traces,
            json!({
                "trace_id": "5b8efff798038103d269b633813fc60c", "span_id": "eee19b7ec3c1b174",
                "parent_span_id": "eee19b7ec3c1b175", "trace_state": "a=b", "name": "GET /", "kind": "server",
                "start_time": "2026-11-21T07:00:00Z", "end_time": "2026-11-21T07:00:01Z",
                "events": [{"time": "2026-11-21T07:00:00.5Z", "name": "retry", "attributes": {"n": 2}}],
                "links": [{"trace_id": "5b8efff798038103d269b633813fc60d", "span_id": "eee19b7ec3c1b176", "attributes": {"l": 1}}],
                "status": {"message": "timed out", "code": "error"}, "resource": resource,
            }),
        ),
        (
            Signal::Metrics,
            json!({
                "type": "sum", "name": "requests", "unit": "1", "aggregation_temporality": "cumulative", "is_monotonic": true,
                "start_time": "2026-11-21T07:00:00Z", "time": "2026-11-21T07:00:01Z", "value": 7,
                "attributes": {"method": "GET"}, "exemplars": [{"value": 1.5, "time": "2026-11-21T07:00:01Z"}],
            }),
        ),
        (
            Signal::Metrics,
            json!({
                "type": "histogram", "name": "latency", "aggregation_temporality": "delta", "count": 3, "sum": 4.5,
                "bucket_counts": [1, 2], "explicit_bounds": [0.5], "time": "2026-11-21T07:00:01Z", "min": 0.25,
            }),
        ),
        (
            Signal::Metrics,
            json!({
                "type": "exponential_histogram", "name": "e", "aggregation_temporality": "delta", "count": 3, "scale": 2,
                "zero_count": 1, "positive": {"offset": -3, "bucket_counts": [1, 1]},
            }),
        ),
        (
            Signal::Metrics,
            json!({
                "type": "summary", "name": "s", "count": 3, "quantile_values": [{"quantile": 0.5, "value": 1.5}],
            }),
        ),
    ] {
        let body = encode(signal, std::slice::from_ref(&item)).unwrap();
        let read = decode(signal, &body);
        assert_eq!(read.len(), 1);
        let differing = crate::differences(&item, &read[0], true);
        assert!(differing.is_empty(), "{differing:?}\n{}", read[0]);
    }
}

#[test]
fn neighbours_share_their_envelopes() {
    let point = |name: &str, value: u64| json!({"type": "gauge", "name": name, "value": value});
    let items = [point("a", 1), point("a", 2), point("b", 3), point("a", 4)];
    let body = encode(Signal::Metrics, &items).unwrap();
    assert_eq!(decode(Signal::Metrics, &body).len(), 4);
    let request: otlp::MetricsRequest<'_> = otlp::Request::new(&body);
    let points: Vec<Vec<usize>> = request
        .resources()
        .flat_map(|resource| {
            resource
                .scopes()
                .map(|scope| scope.items().map(|metric| metric.data.points()).collect())
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(points, [vec![2, 1, 1]], "one resource and scope, three metrics");
}

#[test]
fn what_would_be_lost_is_named() {
    for (item, named) in [
        (json!({"nane": "x"}), "nane"),
        (json!({"attributes": "x"}), "attributes"),
        (json!({"status": {"kode": "ok"}}), "status.kode"),
        (json!({"kind": "servant"}), "kind"),
        (json!({"signal": "logs"}), "signal"),
        (json!({"trace_id": "12"}), "trace_id"),
        (json!(7), "members"),
    ] {
        let error = encode(Signal::Traces, &[json!({"name": "ok"}), item.clone()]).unwrap_err();
        assert_eq!(error.item, 1, "{item}");
        assert!(error.to_string().contains(named) || named == "trace_id", "{item}: {error}");
    }
}
