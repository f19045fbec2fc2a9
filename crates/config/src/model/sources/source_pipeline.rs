//! Settings that all kinds of sources share: the pipeline before the journal.

use std::ops::{Deref, DerefMut};

use super::{
    ElasticApmSource, ElasticsearchSource, FluentForwardSource, HttpLogsSource, JournaldSource,
    KubernetesLogsSource, LokiSource, OtlpSource, RemoteWriteSource, Sources,
};
use crate::declare::{choices, settings};
use crate::presets::Parse;
use crate::reader::{Entries, Reader};
use crate::setting::{Field, PlainValue, Section, Setting, Shape};
use crate::values::Name;
use crate::yaml::Node;

settings! {
    /// The pipeline of a source.
    pub struct SourcePipeline {
        /// The format of the log lines that it receives: their parts become attributes, time and severity, before `pipeline`. Default:
        /// lines stay as they are. See [parsing.md](parsing.md).
        parse: Option<Parse> = None,
        /// The pipeline that items pass through before they are written to the journal, for what must never touch the disk:
        /// a name under `pipelines`.
        pipeline: Option<Name> = None,
        /// Where the source's `pipeline` runs. The default is the only value.
        before: Before = Before::Journal,
    }
}

choices! {
    /// Where the pipeline of a source runs.
    pub enum Before is "a place" {
        /// Before the journal: what a step removes is never written to disk, and no sink gets it.
        Journal = "journal",
    }
}

/// The settings of a source: those of its kind, and those of its pipeline.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source<K> {
    kind: K,
    /// The settings of its pipeline.
    pub pipeline: SourcePipeline,
}

/// The settings of a kind of source.
pub(crate) trait SourceKind: Section {
    /// Items of a source to which pipelines do not apply, as a plural noun for an error.
    const WITHOUT_PIPELINE: Option<&'static str> = None;
}

impl SourceKind for OtlpSource {}
impl SourceKind for RemoteWriteSource {}
impl SourceKind for HttpLogsSource {}
impl SourceKind for JournaldSource {}
impl SourceKind for KubernetesLogsSource {}
impl SourceKind for LokiSource {}

impl SourceKind for FluentForwardSource {}

impl SourceKind for ElasticsearchSource {
    const WITHOUT_PIPELINE: Option<&'static str> = Some("documents of `_bulk`");
}

impl SourceKind for ElasticApmSource {
    const WITHOUT_PIPELINE: Option<&'static str> = Some("Elastic APM events");
}

impl Sources {
    /// The settings of the pipelines of all sources, by the names of the sources.
    pub fn pipelines(&self) -> [(&'static str, &SourcePipeline); 11] {
        let Sources {
            otlp,
            prometheus_remote_write,
            elasticsearch,
            elastic_apm,
            http,
            file,
            loki,
            syslog,
            fluent_forward,
            journald,
            kubernetes_logs,
        } = self;
        [
            ("otlp", &otlp.pipeline),
            ("prometheus_remote_write", &prometheus_remote_write.pipeline),
            ("elasticsearch", &elasticsearch.pipeline),
            ("elastic_apm", &elastic_apm.pipeline),
            ("http", &http.pipeline),
            ("file", &file.pipeline),
            ("loki", &loki.pipeline),
            ("syslog", &syslog.pipeline),
            ("fluent_forward", &fluent_forward.pipeline),
            ("journald", &journald.pipeline),
            ("kubernetes_logs", &kubernetes_logs.pipeline),
        ]
    }

    /// These, with the pipelines of `other`.
    #[must_use]
    pub fn with_pipelines_of(&self, other: Sources) -> Sources {
        fn with<K: Clone>(own: &Source<K>, other: Source<K>) -> Source<K> {
            Source { kind: own.kind.clone(), pipeline: other.pipeline }
        }
        let Sources {
            otlp,
            prometheus_remote_write,
            elasticsearch,
            elastic_apm,
            http,
            file,
            loki,
            syslog,
            fluent_forward,
            journald,
            kubernetes_logs,
        } = other;
        Sources {
            otlp: with(&self.otlp, otlp),
            prometheus_remote_write: with(&self.prometheus_remote_write, prometheus_remote_write),
            elasticsearch: with(&self.elasticsearch, elasticsearch),
            elastic_apm: with(&self.elastic_apm, elastic_apm),
            http: with(&self.http, http),
            file: with(&self.file, file),
            loki: with(&self.loki, loki),
            syslog: with(&self.syslog, syslog),
            fluent_forward: with(&self.fluent_forward, fluent_forward),
            journald: with(&self.journald, journald),
            kubernetes_logs: with(&self.kubernetes_logs, kubernetes_logs),
        }
    }
}

impl<K> Deref for Source<K> {
    type Target = K;

    fn deref(&self) -> &K {
        &self.kind
    }
}

impl<K> DerefMut for Source<K> {
    fn deref_mut(&mut self) -> &mut K {
        &mut self.kind
    }
}

impl<K> From<K> for Source<K> {
    fn from(kind: K) -> Source<K> {
        Source { kind, pipeline: SourcePipeline::default() }
    }
}

impl<K: SourceKind> Section for Source<K> {
    fn fields() -> Vec<Field> {
        let common = if K::WITHOUT_PIPELINE.is_none() { SourcePipeline::fields() } else { Vec::new() };
        K::fields().into_iter().chain(common).collect()
    }

    fn read_fields(entries: &Entries<'_>, reader: &mut Reader<'_, '_>) -> Option<Self> {
        let pipeline = match K::WITHOUT_PIPELINE {
            None => SourcePipeline::read_fields(entries, reader),
            Some(what) => {
                for at in ["parse", "pipeline"].into_iter().filter_map(|name| entries.written(name)) {
                    let help = "remove it: they are journalled as they are received";
                    reader.refuse_shown(at, &format!("pipelines do not apply to {what}"), help);
                }
                Some(SourcePipeline::default())
            }
        };
        Some(Source { kind: K::read_fields(entries, reader)?, pipeline: pipeline? })
    }

    fn read_entries(entries: &Entries<'_>, reader: &mut Reader<'_, '_>) -> Option<Self> {
        let source = Self::read_fields(entries, reader);
        // All of them, since a pipeline that does not apply has been refused with its reason.
        let known: Vec<Field> = K::fields().into_iter().chain(SourcePipeline::fields()).collect();
        reader.no_others(entries, &known);
        source
    }

    fn plain_entries(&self) -> Vec<(String, PlainValue)> {
        let common = match K::WITHOUT_PIPELINE {
            None => self.pipeline.plain_entries(),
            Some(_) => Vec::new(),
        };
        self.kind.plain_entries().into_iter().chain(common).collect()
    }

    fn section_secrets(&self, out: &mut Vec<String>) {
        self.kind.section_secrets(out);
        self.pipeline.section_secrets(out);
    }
}

impl<K: SourceKind> Setting for Source<K> {
    fn read(node: &Node, reader: &mut Reader<'_, '_>) -> Option<Self> {
        reader.section(node, Self::read_entries)
    }

    fn shape() -> Shape {
        Shape::Section(Self::fields())
    }

    fn plain(&self) -> PlainValue {
        PlainValue::Map(self.plain_entries())
    }

    fn secrets(&self, out: &mut Vec<String>) {
        self.section_secrets(out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each kind of source is asked for its pipeline.
    #[test]
    fn names_every_source() {
        let known: Vec<&str> = Sources::fields().iter().map(|field| field.name).collect();
        let listed: Vec<&str> = Sources::default().pipelines().iter().map(|(name, _)| *name).collect();
        assert_eq!(listed, known);
    }
}
