//! The labels from a resource and a scope on all their series, and the series of their own.

use super::{MetricContext, MetricTranslator, family_of, kind};
use crate::otlp::attribute::{AnyValue, Attributes, Resource, Scope};
use crate::otlp::prometheus::labels::Origin;
use crate::otlp::prometheus::series_output::{SeriesOutput, Value};
use crate::otlp::prometheus::text::BufferFull;
use crate::otlp::prometheus::{SeriesScratch, Settings};
use crate::remote_write::{RewriteError, Sample};

impl<T: SeriesOutput> MetricTranslator<'_, T> {
    /// `job`, `instance` and what is promoted become the base of all labels.
    pub(super) fn resource(&mut self, resource: &Resource<'_>) -> Result<(), BufferFull> {
        self.identity(resource.attributes())?;
        let Settings { naming, promote, .. } = *self.settings;
        for attribute in resource.attributes() {
            if promote.iter().any(|promoted| promoted.as_bytes() == attribute.key) {
                let made = self.scratch.labels.attribute(
                    naming,
                    Origin::Promoted,
                    attribute.key,
                    attribute.value,
                )?;
                self.done.dropped.labels += u64::from(!made);
            }
        }
        self.scratch.labels.set_base()
    }

    /// Adds `job` and `instance`.
    fn identity(&mut self, attributes: Attributes<'_>) -> Result<(), BufferFull> {
        let naming = self.settings.naming;
        let labels = &mut self.scratch.labels;
        if let Some(service) = attributes.find(b"service.name") {
            let namespace = attributes.find(b"service.namespace").unwrap_or(AnyValue::Empty);
            labels.put(naming, Origin::Own, b"", b"job", |text| {
                let start = text.len();
                text.value(namespace)?;
                if text.len() > start {
                    text.put(b"/")?;
                }
                text.value(service)
            })?;
        }
        if let Some(instance) = attributes.find(b"service.instance.id") {
            labels.attribute(naming, Origin::Own, b"instance", instance)?;
        }
        Ok(())
    }

    /// The scope's labels join the base.
    pub(super) fn scope(&mut self, scope: &Scope<'_>, schema_url: &[u8]) -> Result<(), BufferFull> {
        let Settings { naming, scope_labels, .. } = *self.settings;
        let labels = &mut self.scratch.labels;
        if scope_labels {
            let own = [
                (&b"otel_scope_name"[..], scope.name),
                (b"otel_scope_version", scope.version),
                (b"otel_scope_schema_url", schema_url),
            ];
            for (name, value) in own {
                labels.attribute(naming, Origin::Own, name, AnyValue::Text(value))?;
            }
            for attribute in scope.attributes() {
                let (key, value) = (attribute.key, attribute.value);
                if matches!(key, b"name" | b"version" | b"schema_url") {
                    continue;
                }
                let made =
                    labels.put(naming, Origin::Scope, b"otel_scope_", key, |text| text.value(value))?;
                self.done.dropped.labels += u64::from(!made);
            }
        }
        labels.set_base()
    }

    /// The resource's attributes as a series of its own, if there is a point to date it.
    pub(super) fn target_info(&mut self, resource: &Resource<'_>) -> Result<(), RewriteError> {
        let Some(timestamp) = self.newest else { return Ok(()) };
        self.scratch.labels.clear();
        let made = self.info_labels(resource);
        let Ok(worth) = made else {
            self.done.dropped.target_infos += 1;
            return Ok(());
        };
        if !worth {
            return Ok(());
        }
        let SeriesScratch { name, unit, exemplars, .. } = &mut *self.scratch;
        name.truncate(0);
        unit.truncate(0);
        exemplars.clear();
        if name.put(b"target_info").is_err() {
            return Ok(());
        }
        let family = name.len();
        let context = MetricContext { kind: kind::GAUGE, help: b"Target metadata", family, adds: false };
        self.target.family(family_of(self.scratch, context))?;
        let value = Value::Sample(Sample { bits: 1f64.to_bits(), timestamp, start_timestamp: 0 });
        self.series(context, None, value, std::iter::empty())
    }

    /// Whether there is something to say and somebody to say it of.
    fn info_labels(&mut self, resource: &Resource<'_>) -> Result<bool, BufferFull> {
        self.identity(resource.attributes())?;
        let identity = self.scratch.labels.len();
        let naming = self.settings.naming;
        for attribute in resource.attributes() {
            if matches!(attribute.key, b"service.name" | b"service.namespace" | b"service.instance.id") {
                continue;
            }
            let made =
                self.scratch.labels.attribute(naming, Origin::Attribute, attribute.key, attribute.value)?;
            self.done.dropped.labels += u64::from(!made);
        }
        let worth = identity > 0 && self.scratch.labels.len() > identity;
        self.scratch.labels.finish()?;
        Ok(worth)
    }
}
