//! The plugins of Fluent Bit, and what is known of those that have no counterpart.

use super::plugin::Plugin;
use super::report::Report;
use super::section::SectionKind;
use crate::error::quote;
use crate::suggest::nearest;

/// Notes a plugin that cannot be converted: an error if its name is a misspelling.
pub(super) fn unknown(kind: SectionKind, plugin: &Plugin<'_>, report: &mut Report) {
    let (singular, names) = match kind {
        SectionKind::Input => ("input", INPUTS),
        SectionKind::Filter => ("filter", FILTERS),
        _ => ("output", OUTPUTS),
    };
    let name = plugin.name.as_str();
    let mut known = names.split_ascii_whitespace();
    if !known.clone().any(|known| known == name)
        && let Some(meant) = nearest(name, &mut known)
    {
        let message = format!("there is no {singular} {}", quote(name));
        return report.error(plugin.file(), plugin.at(), message, format!("did you mean `{meant}`?"));
    }
    plugin.note(format!("left out: {}", reason(kind, name)), report);
}

/// Why a plugin has no counterpart.
fn reason(kind: SectionKind, name: &str) -> &'static str {
    match (kind, name) {
        (SectionKind::Input, "splunk") => {
            "tidegate does not receive Splunk's HEC; let its clients send OTLP, or lines over HTTP"
        }
        (SectionKind::Input, "tcp" | "udp" | "serial" | "mqtt" | "stdin" | "unix_socket") => {
            "tidegate does not receive this; let the sender write syslog, OTLP, or lines over HTTP"
        }
        (SectionKind::Input, "statsd" | "collectd" | "prometheus_scrape") => {
            "tidegate does not receive this; let an agent send its metrics by remote write or OTLP"
        }
        (SectionKind::Input, "kafka") => "tidegate does not read from queues",
        (SectionKind::Input, "dummy" | "random") => "tidegate makes no telemetry for tests",
        (SectionKind::Input, "exec" | "exec_wasi") => "tidegate runs no programs; write the output to a file",
        (SectionKind::Input, "kubernetes_events") => "tidegate does not read events of Kubernetes",
        (SectionKind::Input, _) => {
            "tidegate collects nothing but logs; keep an agent for it, which sends to tidegate over OTLP"
        }
        (SectionKind::Filter, "lua" | "wasm") => {
            "tidegate runs no scripts; write what it does as statements in `edit`, or as conditions in `drop`"
        }
        (SectionKind::Filter, "throttle" | "throttle_size") => {
            "tidegate drops nothing because of its rate; `limits.sources` slows clients down, and a step `sample` keeps a part"
        }
        (SectionKind::Filter, "aws" | "ecs" | "geoip2" | "sysinfo" | "nightfall" | "tensorflow") => {
            "tidegate does not look up metadata; set constant attributes with `edit` or `attributes`"
        }
        (SectionKind::Filter, "log_to_metrics") => "tidegate does not derive telemetry from other telemetry",
        (SectionKind::Filter, "multiline") => {
            "set `multiline` of the input, whose lines are joined as they are read"
        }
        (SectionKind::Filter, "sampling") => "write a step `sample`",
        (SectionKind::Filter, _) => "tidegate has no step for it; see whether `edit` or `drop` can do it",
        (_, "kafka" | "kafka-rest" | "nats" | "pulsar") => "tidegate does not write to queues",
        (_, "forward") => {
            "tidegate does not send the forward protocol; a Fluent Bit behind it can receive OTLP"
        }
        (_, "syslog" | "tcp" | "udp" | "websocket" | "gelf") => {
            "tidegate does not send this protocol; see whether the receiver takes OTLP or JSON over HTTP"
        }
        (_, "file" | "s3" | "azure_blob" | "oracle_log_analytics" | "plot") => {
            "tidegate does not write it; a sink of type `lake` stores everything in files of its own format"
        }
        (_, "prometheus_exporter") => {
            "tidegate cannot be scraped for the metrics that it receives; use prometheus_remote_write"
        }
        (_, _) => "tidegate has no sink for it; many vendors accept OTLP",
    }
}

const INPUTS: &str = "tail systemd syslog forward opentelemetry http elasticsearch prometheus_remote_write splunk tcp udp \
    cpu mem disk dummy exec exec_wasi docker docker_events ebpf event_type fluentbit_metrics gpu_metrics head health kafka kmsg \
    kubernetes_events mqtt netif nginx_metrics node_exporter_metrics podman_metrics proc process_exporter_metrics \
    prometheus_scrape prometheus_textfile random serial statsd stdin thermal winevtlog winlog winstat windows_exporter_metrics \
    collectd unix_socket blob etw lib emitter storage_backlog stream_processor calyptia_fleet";
const FILTERS: &str = "kubernetes modify record_modifier grep parser nest rewrite_tag lua throttle throttle_size multiline \
    type_converter aws ecs geoip2 expect stdout log_to_metrics checklist lookup nightfall sysinfo tensorflow wasm alter_size \
    sampling content_modifier labels metrics_selector sql";
const OUTPUTS: &str = "loki es opensearch splunk http opentelemetry prometheus_remote_write forward stdout null counter \
    flowcounter s3 kafka kafka-rest azure azure_blob azure_kusto azure_logs_ingestion bigquery chronicle cloudwatch \
    cloudwatch_logs datadog exit file firehose gelf influxdb kinesis kinesis_firehose kinesis_streams logdna nats nrlogs \
    newrelic observe oracle_log_analytics pgsql plot prometheus_exporter retry skywalking slack stackdriver syslog td tcp udp \
    vivo_exporter websocket dash0 doris zig lib azure_eventhubs grafana-loki grafana_cloud";
