//! Sources: the addresses that tidegate listens on, and the files and journals that it reads.

mod files;
mod journals;
mod listeners;

use super::Vector;
use super::vocabulary::Origin;
use crate::import::document::{Map, Yaml};
use crate::import::group::FileReader;
use crate::import::ottl::literal;
use crate::model::Signal;

/// The attribute of resources that names the source of records, where sinks take those of some.
pub(super) const MARK: &str = "vector.source";

/// The properties of a type of source.
pub(super) struct SourceKind {
    signals: &'static [Signal],
    origin: Origin,
    /// Whether records can have an attribute of their source.
    is_marked: bool,
}

/// Tells the records of a source from others.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Mark {
    Condition(String),
    None,
}

impl SourceKind {
    pub(super) fn of(kind: &str) -> SourceKind {
        let (signals, origin, is_marked): (&'static [Signal], Origin, bool) = match kind {
            "file" => (&[Signal::Logs], Origin::Lines, true),
            "docker_logs" => (&[Signal::Logs], Origin::Lines, true),
            "kubernetes_logs" => (&[Signal::Logs], Origin::Kubernetes, true),
            "journald" => (&[Signal::Logs], Origin::Journald, true),
            "syslog" => (&[Signal::Logs], Origin::Syslog, false),
            "opentelemetry" => (&[Signal::Logs, Signal::Metrics, Signal::Traces], Origin::Otlp, false),
            "internal_logs" | "internal_metrics" | "demo_logs" | "static_metrics" => {
                (&[], Origin::Plain, false)
            }
            "prometheus_remote_write" | "prometheus_scrape" | "prometheus_pushgateway" | "statsd" => {
                (&[Signal::Metrics], Origin::Metrics, false)
            }
            kind if kind.ends_with("_metrics") => (&[Signal::Metrics], Origin::Metrics, false),
            "datadog_agent" | "vector" => {
                (&[Signal::Logs, Signal::Metrics, Signal::Traces], Origin::Plain, false)
            }
            _ => (&[Signal::Logs], Origin::Plain, false),
        };
        SourceKind { signals, origin, is_marked }
    }

    /// The signals that come out of an output, each with what its fields mean.
    pub(super) fn ways(&self, output: &str) -> Vec<(Signal, Origin)> {
        let is_from = |signal: &&Signal| match output {
            "" => true,
            output => output == crate::import::sinks::signal_name(**signal),
        };
        let origin = |signal: Signal| match signal {
            Signal::Logs => self.origin,
            Signal::Metrics => Origin::Metrics,
            _ => Origin::Traces,
        };
        self.signals.iter().filter(is_from).map(|signal| (*signal, origin(*signal))).collect()
    }

    pub(super) fn mark(&self, name: &str) -> Mark {
        if self.is_marked {
            Mark::Condition(format!("resource.attributes[\"{MARK}\"] == {}", literal(name)))
        } else {
            Mark::None
        }
    }
}

impl Vector<'_> {
    /// Converts a source. `is_marked` says whether its records need its name.
    pub(super) fn source(&mut self, index: usize, is_marked: bool, reader: &mut FileReader<'_, '_>) {
        let Some(component) = self.all.get_mut(index) else { return };
        let Some(mut group) = component.group.take() else { return };
        let component = &self.all[index];
        let out = &mut self.out;
        let mut attributes = Map::default();
        if is_marked {
            attributes.set(MARK, component.name);
        }
        match component.kind.as_str() {
            "file" => files::file(component, &mut group, attributes, out, reader),
            "docker_logs" => files::docker(component, &mut group, attributes, out, reader),
            "kubernetes_logs" => files::kubernetes(component, &mut group, attributes, out, reader),
            "journald" => journals::journald(component, &mut group, attributes, out, reader),
            "syslog" | "socket" => listeners::syslog(component, &mut group, out, reader),
            "fluent" => listeners::fluent(component, &mut group, out, reader),
            "opentelemetry" => listeners::opentelemetry(component, &mut group, out, reader),
            "prometheus_remote_write" => {
                let what = "remote write at `listen.http`, path `/api/v1/write`";
                listeners::http(component, &mut group, what, out, reader);
            }
            "http_server" | "http" => {
                if let Some(path) = group.text("path", reader) {
                    let http = out.group("sources").group("http");
                    match http.get("path") {
                        Some(Yaml::Text(other)) if *other != path.value => {
                            let message = "left out: `sources.http.path` is one path, and another source has set it; its \
                                           lines come there, too";
                            reader.note(&path.at, &group.path_of("path"), message);
                        }
                        _ => http.set("path", path.value),
                    }
                }
                let what = "lines at `listen.http`, path `sources.http.path`, one record a line";
                listeners::http(component, &mut group, what, out, reader);
            }
            "internal_logs" | "internal_metrics" => {
                component.note("not needed: `/metrics` and the log are the gateway's own telemetry", reader);
                group.take_all();
            }
            "demo_logs" | "static_metrics" => {
                component.note(
                    "left out: tidegate makes no telemetry up; `tidegate test` tries pipelines",
                    reader,
                );
                group.take_all();
            }
            kind => {
                component.note(format!("left out: {}", reason(kind)), reader);
                group.take_all();
            }
        }
        group.finish(reader);
    }
}

/// Why a type of source has no counterpart.
fn reason(kind: &str) -> &'static str {
    match kind {
        "vector" => {
            "tidegate does not speak the protocol between Vectors; give the sending Vector a sink `opentelemetry`, to `listen.http`"
        }
        "logstash" => {
            "tidegate does not speak Beats' protocol; give Beats and Logstash an output `elasticsearch`, to `listen.elasticsearch`"
        }
        "splunk_hec" => {
            "tidegate does not receive events for Splunk; clients can send OTLP, or lines over HTTP"
        }
        "datadog_agent" => {
            "tidegate does not receive from Datadog's agent; SDKs and Collectors can send OTLP"
        }
        "prometheus_scrape" | "prometheus_pushgateway" => {
            "tidegate does not scrape; let Prometheus, vmagent or a Collector scrape and send by remote write or OTLP"
        }
        "stdin" | "exec" | "file_descriptor" => {
            "tidegate runs no programs; write to a file, or POST lines to `/ingest/logs`"
        }
        "kafka" | "amqp" | "nats" | "pulsar" | "redis" | "mqtt" | "gcp_pubsub" | "aws_sqs" | "aws_s3" => {
            "tidegate does not read from queues"
        }
        "heroku_logs" | "aws_kinesis_firehose" | "http_client" | "websocket" | "okta" | "dnstap" => {
            "tidegate does not receive this"
        }
        _ => "tidegate collects nothing but logs; keep an agent for it, which sends to tidegate over OTLP",
    }
}
