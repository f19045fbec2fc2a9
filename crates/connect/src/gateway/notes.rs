//! Settings of sources that senders should know of.

use super::Gateway;
use tidegate_config::{Acknowledge, Allowance, TenantName};

impl Gateway<'_> {
    /// Where a source whose protocol names no tenant needs one, and neither `own` nor the default is there.
    pub(crate) fn source_tenant_note(self, own: Option<&TenantName>, setting: &str) -> Option<String> {
        let tenants = &self.config.tenants;
        (tenants.are_on() && own.or(tenants.default.as_ref()).is_none()).then(|| {
            format!(
                "These senders name no tenant, and the gateway requires one: set `{setting}` or `tenants.default`. Without it, tidegate does not \
                 start."
            )
        })
    }

    /// For senders of `_bulk`.
    pub(crate) fn bulk_notes(self) -> Vec<String> {
        let source = &self.config.sources.elasticsearch;
        let mut notes = vec![format!(
            "The gateway says that it is Elasticsearch {}, and answers requests of more than {} with 413. Senders may `create` and `index`; \
             more takes a right, by `bulk=` in their credential's line or `access.bulk`.",
            source.version, source.max_body
        )];
        if source.acknowledge == Acknowledge::Destination {
            notes.push(
                "The cluster answers each request (`acknowledge: destination`): while it cannot be reached, senders get 503, and have to wait."
                    .to_owned(),
            );
        }
        notes.extend(limit_note(&self.config.limits.sources.elasticsearch, "elasticsearch"));
        notes
    }

    /// For Elastic APM agents.
    pub(crate) fn apm_notes(self) -> Vec<String> {
        let source = &self.config.sources.elastic_apm;
        let mut notes = vec![format!("Events of more than {} are refused.", source.max_event)];
        notes.extend(limit_note(&self.config.limits.sources.elastic_apm, "elastic_apm"));
        notes
    }

    /// For senders of OTLP.
    pub(crate) fn otlp_notes(self) -> Vec<String> {
        let mut notes =
            vec![format!("Requests of more than {} are refused.", self.config.sources.otlp.max_body)];
        notes.extend(limit_note(&self.config.limits.sources.otlp, "otlp"));
        notes
    }

    /// For senders of remote write.
    pub(crate) fn remote_write_notes(self) -> Vec<String> {
        let source = &self.config.sources.prometheus_remote_write;
        let mut notes = vec![format!(
            "Requests of more than {}, decompressed, are refused, and series with more than {} labels.",
            source.max_body, source.max_labels
        )];
        notes.extend(limit_note(
            &self.config.limits.sources.prometheus_remote_write,
            "prometheus_remote_write",
        ));
        notes
    }
}

/// Says that there are limits, where there are.
fn limit_note(limits: &Allowance, source: &str) -> Option<String> {
    (*limits != Allowance::default()).then(|| {
        format!("`limits.sources.{source}` limits all senders together: beyond it, they are answered 429, and should try again.")
    })
}
