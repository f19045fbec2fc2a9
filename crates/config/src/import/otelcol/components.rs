//! The components of a Collector, and what is known of those that have no counterpart.

use super::{ByName, type_of};
use crate::error::quote;
use crate::import::group::{FileReader, Group, Text};
use crate::suggest::nearest;
use crate::yaml::Entry;

/// A section of components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Receivers,
    Processors,
    Exporters,
    Connectors,
    Extensions,
}

/// All components that are configured.
pub(super) struct Components<'t> {
    receivers: ByName<'t>,
    processors: ByName<'t>,
    exporters: ByName<'t>,
    connectors: ByName<'t>,
    extensions: ByName<'t>,
    used: Vec<(Section, String)>,
}

impl Section {
    const ALL: [Section; 5] = [
        Section::Receivers,
        Section::Processors,
        Section::Exporters,
        Section::Connectors,
        Section::Extensions,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Section::Receivers => "receivers",
            Section::Processors => "processors",
            Section::Exporters => "exporters",
            Section::Connectors => "connectors",
            Section::Extensions => "extensions",
        }
    }

    fn singular(self) -> &'static str {
        self.name().trim_end_matches('s')
    }

    /// The types of the Collector's distributions, for spelling.
    fn types(self) -> impl Iterator<Item = &'static str> {
        let types = match self {
            Section::Receivers => RECEIVERS,
            Section::Processors => PROCESSORS,
            Section::Exporters => EXPORTERS,
            Section::Connectors => CONNECTORS,
            Section::Extensions => EXTENSIONS,
        };
        types.split_ascii_whitespace()
    }
}

impl<'t> Components<'t> {
    /// Takes all sections of components.
    pub(super) fn read(top: &mut Group<'t>, reader: &mut FileReader<'_, '_>) -> Components<'t> {
        let mut read = |section: Section| -> ByName<'t> {
            let group = top.group(section.name(), reader);
            let entries = group.map_or(&[][..], |mut group| group.take_all());
            entries.iter().map(|entry| (entry.key.as_str(), entry)).collect()
        };
        Components {
            receivers: read(Section::Receivers),
            processors: read(Section::Processors),
            exporters: read(Section::Exporters),
            connectors: read(Section::Connectors),
            extensions: read(Section::Extensions),
            used: Vec::new(),
        }
    }

    fn section(&self, section: Section) -> &ByName<'t> {
        match section {
            Section::Receivers => &self.receivers,
            Section::Processors => &self.processors,
            Section::Exporters => &self.exporters,
            Section::Connectors => &self.connectors,
            Section::Extensions => &self.extensions,
        }
    }

    /// Whether there is a component of this name.
    pub(super) fn has(&self, section: Section, name: &str) -> bool {
        self.section(section).contains_key(name)
    }

    /// The component of this name, if there is one.
    pub(super) fn find(&mut self, section: Section, name: &str) -> Option<&'t Entry> {
        let entry = self.section(section).get(name).copied()?;
        if !self.used.iter().any(|(of, used)| *of == section && used == name) {
            self.used.push((section, name.to_owned()));
        }
        Some(entry)
    }

    /// Notes that a pipeline names a component that is not configured. Connectors stand among receivers and exporters.
    pub(super) fn refuse(&self, section: Section, name: &Text, reader: &mut FileReader<'_, '_>) {
        let connectors = matches!(section, Section::Receivers | Section::Exporters);
        let others = self.connectors.keys().filter(|_| connectors);
        let help = match nearest(&name.value, self.section(section).keys().chain(others).copied()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("configure it under `{}`, or remove it from the pipeline", section.name()),
        };
        let message = format!("there is no {} {}", section.singular(), quote(&name.value));
        reader.error(&name.at, message, help);
    }

    /// Notes a component that cannot be converted: an error if its type is a misspelling.
    pub(super) fn unknown(&self, section: Section, entry: &Entry, reader: &mut FileReader<'_, '_>) {
        let kind = type_of(&entry.key);
        if !section.types().any(|known| known == kind)
            && let Some(meant) = nearest(kind, section.types())
        {
            let message = format!("there is no type of {} {}", section.singular(), quote(kind));
            reader.error(&entry.key_at, message, format!("did you mean `{meant}`?"));
            return;
        }
        let reason = reason(section, kind);
        reader.note(
            &entry.key_at,
            &format!("{}.{}", section.name(), entry.key),
            format!("left out: {reason}"),
        );
    }

    /// Notes every component that no pipeline uses.
    pub(super) fn note_unused(&self, reader: &mut FileReader<'_, '_>) {
        for section in Section::ALL {
            for (name, entry) in self.section(section) {
                if !self.used.iter().any(|(of, used)| *of == section && used == name) {
                    let message = "left out: no pipeline uses it";
                    reader.note(&entry.key_at, &format!("{}.{name}", section.name()), message);
                }
            }
        }
    }
}

/// Why a type of component has no counterpart.
fn reason(section: Section, kind: &str) -> &'static str {
    const AGENT: &str =
        "tidegate collects nothing but logs; keep an agent for it, which sends to tidegate over OTLP";
    match (section, kind) {
        (Section::Receivers, "prometheus") => {
            "tidegate does not scrape; let Prometheus, vmagent or a Collector scrape and send by remote write or OTLP"
        }
        (Section::Receivers, "jaeger" | "zipkin" | "opencensus") => {
            "tidegate does not receive this protocol; SDKs and agents can send OTLP"
        }
        (Section::Receivers, "kafka" | "awss3" | "azureeventhub") => "tidegate does not read from queues",
        (Section::Receivers, _) => AGENT,
        (
            Section::Processors,
            "k8sattributes" | "k8s_attributes" | "resourcedetection" | "resource_detection",
        ) => "tidegate does not look up metadata; leave it to the agents, whose resource attributes are kept",
        (Section::Processors, "tail_sampling") => {
            "copy its `policies` to `sample: { tail: { policies: … } }` of the sink: they have the same form (docs/tail-sampling.md)"
        }
        (Section::Processors, "groupbytrace") => {
            "a sink with `sample.tail` decides about whole traces, and sends their spans as they came"
        }
        (
            Section::Processors,
            "cumulativetodelta" | "deltatocumulative" | "deltatorate" | "interval" | "metricsgeneration",
        ) => {
            "a pipeline keeps no state between records; a sink of type prometheus_remote_write can accumulate deltas (`otlp.deltas`)"
        }
        (Section::Processors, _) => "tidegate has no step for it; see whether `edit` or `drop` can do it",
        (Section::Exporters, "kafka" | "pulsar" | "rabbitmq") => "tidegate does not write to queues",
        (Section::Exporters, "prometheus") => {
            "tidegate cannot be scraped for the metrics that it receives; use prometheusremotewrite"
        }
        (Section::Exporters, "file") => "a sink of type `lake` stores everything in files of its own format",
        (Section::Exporters, _) => "tidegate has no sink for it; many vendors accept OTLP",
        (Section::Connectors, "spanmetrics" | "span_metrics") => {
            "copy its settings to `span_metrics` of a sink of type `derive`, where `interval`, `temporality` and `expire` are those of the sink \
             (docs/derived-metrics.md)"
        }
        (Section::Connectors, "count") => {
            "copy its settings to `count` of a sink of type `derive` (docs/derived-metrics.md)"
        }
        (Section::Connectors, "signaltometrics" | "signal_to_metrics") => {
            "copy its settings to `signal_to_metrics` of a sink of type `derive` (docs/derived-metrics.md)"
        }
        (Section::Connectors, "servicegraph" | "service_graph") => {
            "copy its settings to `service_graph` of a sink of type `derive` (docs/derived-metrics.md)"
        }
        (Section::Connectors, _) => "tidegate does not derive telemetry from other telemetry",
        (Section::Extensions, _) => "it has no counterpart",
    }
}

const RECEIVERS: &str = "otlp prometheusremotewrite prometheus filelog file_log hostmetrics host_metrics jaeger zipkin kafka \
    kubeletstats k8s_cluster k8s_events k8sobjects journald syslog statsd fluentforward loki splunk_hec \
    opencensus httpcheck redis postgresql mysql nginx docker_stats windowseventlog windowsperfcounters \
    awss3 azureeventhub tcplog udplog webhookevent datadog carbon influxdb signalfx skywalking sqlquery \
    nop";
const PROCESSORS: &str = "filter transform attributes resource probabilistic_sampler batch memory_limiter k8sattributes \
    k8s_attributes resourcedetection resource_detection tail_sampling groupbytrace groupbyattrs \
    metricstransform span redaction cumulativetodelta deltatocumulative deltatorate interval \
    metricsgeneration logdedup geoip schema routing remotetap sumologic unroll isolationforest lookup";
const EXPORTERS: &str = "otlp otlphttp otlp_grpc otlp_http prometheusremotewrite elasticsearch opensearch debug nop logging \
    prometheus loki file kafka pulsar rabbitmq loadbalancing load_balancing datadog splunk_hec clickhouse awsxray \
    awsemf awss3 awscloudwatchlogs azuremonitor googlecloud googlemanagedprometheus zipkin jaeger \
    signalfx sapm coralogix logzio honeycombmarker sumologic influxdb syslog dataset mezmo \
    tencentcloud_logservice cassandra sentry";
const CONNECTORS: &str = "routing forward spanmetrics span_metrics servicegraph service_graph count sum signaltometrics signal_to_metrics \
    failover exceptions grafanacloud datadog roundrobin otlpjson slowsql";
const EXTENSIONS: &str = "health_check healthcheckv2 pprof zpages file_storage bearertokenauth basicauth headers_setter \
    oauth2client sigv4auth oidc memory_limiter memory_ballast opamp k8s_observer host_observer \
    docker_observer redis_storage db_storage googleclientauth azureauth jaegerremotesampling asapauth \
    ack k8s_leader_elector cgroupruntime";
