//! The components of a configuration by their sections, and the types that Vector has.

use super::Vector;
use crate::error::quote;
use crate::import::group::{FileReader, Group, Text};
use crate::suggest::nearest;
use crate::yaml::Entry;

/// A section of components.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    Sources,
    Transforms,
    Sinks,
}

impl Section {
    pub(super) fn name(self) -> &'static str {
        match self {
            Section::Sources => "sources",
            Section::Transforms => "transforms",
            Section::Sinks => "sinks",
        }
    }

    fn singular(self) -> &'static str {
        match self {
            Section::Sources => "source",
            Section::Transforms => "transform",
            Section::Sinks => "sink",
        }
    }

    fn types(self) -> impl Iterator<Item = &'static str> {
        let types = match self {
            Section::Sources => SOURCES,
            Section::Transforms => TRANSFORMS,
            Section::Sinks => SINKS,
        };
        types.split_whitespace()
    }
}

/// The most components of a configuration.
const MOST_COMPONENTS: usize = 1000;
/// The longest name of one.
const LONGEST_NAME: usize = 128;

/// A component whose type is known.
pub(super) struct Component<'t> {
    pub(super) name: &'t str,
    pub(super) kind: String,
    pub(super) entry: &'t Entry,
    pub(super) section: Section,
    pub(super) group: Option<Group<'t>>,
    pub(super) inputs: Vec<Text>,
}

impl Component<'_> {
    /// The path of its settings.
    pub(super) fn path(&self) -> String {
        format!("{}.{}", self.section.name(), self.name)
    }

    /// Notes what became of it.
    pub(super) fn note(&self, message: impl Into<String>, reader: &mut FileReader<'_, '_>) {
        reader.note(&self.entry.key_at, &self.path(), message);
    }
}

impl<'t> Vector<'t> {
    /// Reads the components of a section.
    pub(super) fn components(
        &mut self,
        top: &mut Group<'t>,
        section: Section,
        reader: &mut FileReader<'_, '_>,
    ) {
        let Some(mut group) = top.group(section.name(), reader) else { return };
        for entry in group.take_all() {
            let path = format!("{}.{}", section.name(), entry.key);
            let Some(mut settings) = reader.group(&entry.node, &path) else { continue };
            let Some(kind) = settings.text("type", reader) else {
                let help = format!("add `type`, the type of {}", section.singular());
                reader.error(&entry.key_at, format!("{} has no `type`", quote(&path)), help);
                continue;
            };
            let is_known = section.types().any(|known| known == kind.value);
            if !is_known && let Some(meant) = nearest(&kind.value, section.types()) {
                let message = format!("there is no type of {} {}", section.singular(), quote(&kind.value));
                reader.error(&kind.at, message, format!("did you mean `{meant}`?"));
            }
            if self.all.len() >= MOST_COMPONENTS || entry.key.len() > LONGEST_NAME {
                let message = format!(
                    "there are more than {MOST_COMPONENTS} components, or this name is longer than {LONGEST_NAME} bytes"
                );
                reader.error(&entry.key_at, message, "convert a part of the configuration");
                return;
            }
            if self.all.iter().any(|other| other.name == entry.key) {
                let message = format!("the name {} is taken by another component", quote(&entry.key));
                reader.error(&entry.key_at, message, "names are unique among sources, transforms and sinks");
                continue;
            }
            let inputs = settings.texts("inputs", reader);
            if inputs.is_empty() && section != Section::Sources {
                let help = "add `inputs` with the names of sources or transforms";
                reader.error(&entry.key_at, format!("{} has no `inputs`", quote(&path)), help);
            }
            self.all.push(Component {
                name: &entry.key,
                kind: kind.value,
                entry,
                section,
                group: Some(settings),
                inputs,
            });
        }
    }
}

const SOURCES: &str = "amqp apache_metrics aws_ecs_metrics aws_kinesis_firehose aws_s3 aws_sqs datadog_agent demo_logs dnstap \
    docker_logs eventstoredb_metrics exec file file_descriptor fluent gcp_pubsub heroku_logs host_metrics http http_client \
    http_server internal_logs internal_metrics journald kafka kubernetes_logs logstash mongodb_metrics mqtt nats \
    nginx_metrics okta opentelemetry postgresql_metrics prometheus_pushgateway prometheus_remote_write \
    prometheus_scrape pulsar redis socket splunk_hec static_metrics statsd stdin syslog vector websocket windows_event_log";
const TRANSFORMS: &str = "aggregate aws_ec2_metadata dedupe exclusive_route filter incremental_to_absolute log_to_metric lua \
    metric_to_log reduce remap route sample tag_cardinality_limit throttle trace_to_log window delay";
const SINKS: &str = "amqp appsignal aws_cloudwatch_logs aws_cloudwatch_metrics aws_kinesis_firehose aws_kinesis_streams aws_s3 \
    aws_sns aws_sqs axiom azure_blob azure_event_hubs azure_logs_ingestion azure_monitor_logs blackhole clickhouse console databend \
    datadog_events datadog_logs datadog_metrics datadog_traces doris elasticsearch file gcp_chronicle_unstructured \
    gcp_cloud_storage gcp_pubsub gcp_stackdriver_logs gcp_stackdriver_metrics greptimedb_logs greptimedb_metrics honeycomb \
    http humio_logs humio_metrics influxdb_logs influxdb_metrics kafka keep logdna loki mezmo mqtt nats new_relic openobserve \
    opentelemetry papertrail postgres prometheus_exporter prometheus_remote_write pulsar redis sematext_logs \
    sematext_metrics socket splunk_hec splunk_hec_logs splunk_hec_metrics statsd vector webhdfs websocket websocket_server";
