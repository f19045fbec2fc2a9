//! Statements and conditions of public configurations and of the Collector's documentation.

use super::generate::{Case, Signal};

/// All of them.
pub(super) fn cases() -> Vec<Case> {
    let of = |signal, condition, texts: &'static str| {
        let texts = texts.lines().map(str::trim).filter(|line| !line.is_empty());
        texts.map(move |text| Case { signal, condition, text: text.to_owned() })
    };
    of(Signal::Logs, false, LOGS)
        .chain(of(Signal::Logs, true, LOG_CONDITIONS))
        .chain(of(Signal::Traces, false, TRACES))
        .chain(of(Signal::Traces, true, TRACE_CONDITIONS))
        .chain(of(Signal::Metrics, false, METRICS))
        .chain(of(Signal::Metrics, true, METRIC_CONDITIONS))
        .collect()
}

const LOGS: &str = r#"
set(log.severity_text, "FAIL") where log.body == "request failed"
replace_all_matches(log.attributes, "/user/*/list/*", "/user/{userId}/list/{listId}")
replace_all_patterns(log.attributes, "value", "/account/\\d{4}", "/account/{accountId}")
set(log.body, log.attributes["http.route"])
keep_keys(resource.attributes, ["service.name", "service.namespace", "cloud.region"])
keep_keys(log.attributes, ["http.status_code", "http.method"], )
merge_maps(log.cache, ParseJSON(log.body), "upsert") where IsMatch(log.body, "^\\{")
set(log.attributes["attr1"], log.cache["attr1"])
set(log.attributes["nested.attr3"], log.cache["nested"]["attr3"])
flatten(log.attributes)
set(log.severity_number, SEVERITY_NUMBER_INFO) where IsString(log.body) and IsMatch(log.body, "\\sINFO\\s")
set(log.severity_number, SEVERITY_NUMBER_WARN) where IsMatch(log.body.string, "(?i)warn")
set(resource.attributes["k8s.node.name"], log.attributes["node"])
set(log.attributes["message"], log.body["message"]) where IsMap(log.body) and log.body["message"] != nil
delete_key(log.attributes, "password")
delete_matching_keys(log.attributes, "(?i).*password.*")
limit(log.attributes, 100, [])
truncate_all(log.attributes, 4096)
set(log.time, Time(log.attributes["time"], "%Y-%m-%dT%H:%M:%S"))
set(log.attributes["test"], Concat([log.attributes["foo"], log.attributes["bar"]], ": "))
merge_maps(log.attributes, ExtractPatterns(log.body, "^(?P<level>\\w+) (?P<msg>.*)$"), "insert")
merge_maps(log.attributes, ExtractPatterns(log.body, "(?P<git.sha>[0-9a-f]+)"), "insert")
replace_pattern(log.attributes["message"], "device=*", attributes["device_name"], SHA256)
replace_pattern(log.body, "([0-9]{4})-([0-9]{4})", "$$1-****")
set(log.attributes["a"], log.attributes["b"] ? "c" : "d")
keep_keys(log.attributes, "a", "b")
set(log.observed_time_unix_nano, UnixNano(Now())) where log.observed_time_unix_nano == 0
set(log.body, Format("%s: %s", [log.severity_text, log.body]))
set(log.attributes["kv"], ParseKeyValue(log.body, ":", ","))
"#;

const LOG_CONDITIONS: &str = r#"
log.severity_number < SEVERITY_NUMBER_WARN
log.severity_number != SEVERITY_NUMBER_UNSPECIFIED and log.severity_number < SEVERITY_NUMBER_INFO
IsMatch(log.body, ".*password.*")
resource.attributes["service.name"] == "my-service" and not IsMatch(log.attributes["http.target"], "^/(healthz|readyz)$")
log.attributes["http.request.method"] == nil
attr matches "abc"
log.attributes["level"] in ["debug", "trace"]
(log.attributes["a"] == 1 or log.attributes["b"] == 1.0) and log.flags == 0x01
Len(log.body.string) > 1024
log.trace_id == TraceID(0x00000000000000000000000000000000)
log.time > Now()
"#;

const TRACES: &str = r#"
set(span.status.code, STATUS_CODE_OK) where span.attributes["http.path"] == "/health"
set(span.name, span.attributes["http.route"]) where span.attributes["http.route"] != nil
replace_match(span.attributes["http.target"], "/user/*/list/*", "/user/{userId}/list/{listId}")
limit(span.attributes, 100, ["http.method"])
truncate_all(resource.attributes, 4096)
set(span.kind, SPAN_KIND_INTERNAL) where span.kind == SPAN_KIND_UNSPECIFIED
set(span.trace_state["foo"], "bar")
set(spanevent.attributes["name"], span.name)
set(span.attributes["duration_ms"], (span.end_time_unix_nano - span.start_time_unix_nano) / 1000000)
set(span.attributes["parent"], span.parent_span_id.string) where not IsRootSpan()
delete_key(span.attributes, "http.url") where span.attributes["http.url"] != nil
set(span.attributes["events"], span.events)
replace_all_patterns(span.attributes, "key", "^kube_([0-9A-Za-z]+_)", "k8s.$$1.")
replace_pattern(span.name, "^GET (.*)$", "$1", function=ToLowerCase, replacement_format="%s!")
"#;

const TRACE_CONDITIONS: &str = r#"
span.attributes["http.route"] == "/healthz"
IsMatch(span.name, "^(GET|HEAD) /(health|ready)z?$")
spanevent.attributes["grpc"] == true
span.kind == SPAN_KIND_SERVER and span.status.code != STATUS_CODE_ERROR
IsRootSpan() and span.name == "ping"
span.kind.string == "Server"
span.end_time - span.start_time > Duration("1h")
span.status == 1
resource.attributes["a"] == 1 or spanevent.name == "b"
"#;

const METRICS: &str = r#"
set(metric.description, "Sum") where metric.type == METRIC_DATA_TYPE_SUM
set(metric.name, Concat(["prefix", metric.name], "."))
set(datapoint.attributes["source"], resource.attributes["source"])
replace_pattern(metric.name, "_total$", "")
delete_key(datapoint.attributes, "pod") where metric.name == "http_requests"
set(datapoint.value_double, datapoint.value_double * 100.0) where metric.unit == "1"
set(metric.aggregation_temporality, AGGREGATION_TEMPORALITY_DELTA)
set(datapoint.attributes["a"], datapoint.positive.bucket_counts)
set(metric.attributes["a"], 1)
keep_matching_keys(resource.attributes, "^(k8s|service)\\.")
"#;

const METRIC_CONDITIONS: &str = r#"
metric.name == "my.metric" and resource.attributes["my_label"] == "abc123"
metric.type == METRIC_DATA_TYPE_HISTOGRAM
datapoint.value_int == 0 and datapoint.attributes["state"] == "idle"
datapoint.flags == FLAG_NO_RECORDED_VALUE
metric.type == FLAG_NONE
IsMatch(metric.name, "^(go|process)_")
"#;
