//! The configuration's limits and tenants, as the gate wants them.

use super::head_series;
use super::sources::{self, KINDS, SourceKind};
use crate::Failure;
use std::sync::Arc;
use tidegate_admission::access::{BulkActions, Indices};
use tidegate_admission::tenancy::{SubjectField, Tenancy};
use tidegate_admission::{BulkDefaults, GateRules};
use tidegate_config::{Allowance, BulkAction, CertificateField, Config, IndexGlob};
use tidegate_ledger::Ledger;
use tidegate_limit::{self as limit, AdmissionTable, LimiterSettings, PerSecond, TenantLimits, Tenants};

/// A description of the changes that apply while running.
pub(crate) const CHANGES: &str = "`sinks`, `pipelines`, the `pipeline` and `parse` of sources, `sources.file.inputs`, `limits.sources`, `limits.connections_per_peer`, `limits.head_series`, `tenants.limits`, \
                                  `tenants.head_series`, `tenants.indices`, `tenants.overrides`, `access.bulk`, and the contents of certificate and credentials files";

/// The limits that `config` sets, and where tenants are named.
///
/// # Errors
/// When the books have no pages for the sources.
pub(super) fn of(config: &Config, ledger: &Ledger) -> Result<GateRules, Failure> {
    let route = |kind: &SourceKind| Ok((ledger.source(kind.name)?, of_source(config, kind.name)));
    let routes = sources::configured(config).map(route).collect::<Result<_, Failure>>()?;
    let tenants = &config.tenants;
    let table =
        config.has_tenants().then(|| Tenants::new(most_tenants(config), of_tenants(config), ledger.clone()));
    let tenancy = config.has_tenants().then(|| Tenancy {
        certificate: tenants.certificate.map(subject_field),
        required: tenants.are_on(),
        header: tenants.header.as_ref().map(|name| name.as_str().into()),
        default: tenants.default.as_ref().map(|name| name.as_str().into()),
        ..Tenancy::default()
    });
    let rules = GateRules {
        tenancy,
        limits: Some(Arc::new(AdmissionTable::new(routes, table))),
        head_series: head_series::gate(config),
        ..GateRules::default()
    };
    rules.bulk.store(Arc::new(bulk(config)?));
    Ok(rules)
}

/// The field of a certificate that a setting names.
pub(super) const fn subject_field(field: CertificateField) -> SubjectField {
    match field {
        CertificateField::CommonName => SubjectField::CommonName,
        CertificateField::Organization => SubjectField::Organization,
        CertificateField::OrganizationalUnit => SubjectField::OrganizationalUnit,
    }
}

/// The `_bulk` rights of clients whose credentials grant none.
///
/// # Errors
/// When the patterns for indices cannot be read.
pub(super) fn bulk(config: &Config) -> Result<BulkDefaults, Failure> {
    let indices = |globs: &Option<Vec<IndexGlob>>| -> Result<Option<Indices>, Failure> {
        let Some(globs) = globs else { return Ok(None) };
        let globs: Vec<&str> = globs.iter().map(IndexGlob::as_str).collect();
        Indices::read(&globs.join(",")).map(Some).map_err(|wrong| Failure(format!("`tenants`: {wrong}")))
    };
    let tenants = config.tenants.overrides.iter().filter_map(|(name, tenant)| {
        Some(indices(&tenant.indices).transpose()?.map(|indices| (name.as_str().to_owned(), indices)))
    });
    let open = config.access.bulk.iter().flatten().fold(BulkActions::NONE, |actions, action| {
        use tidegate_admission::access::BulkAction as Allowed;
        actions.with(match action {
            BulkAction::Update => Allowed::Update,
            BulkAction::Delete => Allowed::Delete,
            BulkAction::Script => Allowed::Script,
            BulkAction::Pipeline => Allowed::Pipeline,
        })
    });
    Ok(BulkDefaults {
        open,
        indices: indices(&config.tenants.indices)?,
        tenants: tenants.collect::<Result<_, Failure>>()?,
    })
}

/// The memory of the tenant table, in bytes; 0 without tenants.
pub(super) fn bytes(config: &Config) -> Option<u64> {
    config.has_tenants().then(|| Tenants::bytes(most_tenants(config)) as u64)
}

/// Takes the limits of `config` over, in place of those of before, and its [`bulk`] rights.
pub(super) fn change(rules: &GateRules, config: &Config, bulk: BulkDefaults) {
    rules.bulk.store(Arc::new(bulk));
    if let Some(gate) = &rules.head_series {
        gate.series.set_limits(head_series::limits(config));
    }
    if let Some(table) = &rules.limits {
        table.set_limits(|name| of_source(config, name), of_tenants(config));
    }
}

fn most_tenants(config: &Config) -> u16 {
    u16::try_from(config.tenants.most).unwrap_or(u16::MAX)
}

/// The limits of the source of this name; none for what is no source, such as the page of stray requests.
fn of_source(config: &Config, name: &str) -> LimiterSettings {
    let kind = KINDS.iter().find(|kind| kind.name == name);
    kind.map_or_else(LimiterSettings::default, |kind| limits((kind.allowance)(&config.limits.sources)))
}

fn of_tenants(config: &Config) -> TenantLimits {
    let tenants = &config.tenants;
    let overrides = tenants.overrides.iter().map(|(name, tenant)| {
        let allowance = limit::TenantAllowance { limits: limits(&tenant.limits), weight: tenant.weight };
        (name.as_str().to_owned(), allowance)
    });
    TenantLimits {
        default: limit::TenantAllowance { limits: limits(&tenants.limits), weight: 1 },
        overrides: overrides.collect(),
    }
}

fn limits(allowance: &Allowance) -> LimiterSettings {
    let rate = |rate: Option<u64>, burst: Option<u64>| {
        rate.map(|rate| PerSecond { rate, burst: burst.unwrap_or(rate) })
    };
    let count = |count: Option<u32>| count.map(u64::from);
    let bytes = |bytes: Option<tidegate_config::Bytes>| bytes.map(|bytes| bytes.get());
    LimiterSettings {
        requests: rate(count(allowance.requests_per_second), count(allowance.requests_burst)),
        items: rate(count(allowance.items_per_second), count(allowance.items_burst)),
        bytes: rate(bytes(allowance.bytes_per_second), bytes(allowance.bytes_burst)),
        concurrency: count(allowance.requests_at_once),
        in_flight: bytes(allowance.bytes_at_once),
        request_bytes: bytes(allowance.request_bytes),
        request_items: count(allowance.request_items),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limits that change while running.
    const CHANGEABLE: [&str; 8] = [
        "pipelines.",
        "limits.sources.",
        "limits.head_series.",
        "tenants.head_series",
        "limits.connections_per_peer",
        "tenants.limits.",
        "tenants.indices",
        "tenants.overrides",
    ];

    #[test]
    fn the_words_name_all_that_changes() {
        for setting in CHANGEABLE {
            assert!(CHANGES.contains(&format!("`{}`", setting.trim_end_matches('.'))), "{setting}");
        }
    }

    #[test]
    fn every_source_that_can_be_configured_can_be_limited() {
        let config = Config::default();
        let differing = {
            let mut other = config.clone();
            let allowance = Allowance { requests_per_second: Some(7), ..Allowance::default() };
            other.limits.sources = tidegate_config::SourceLimits {
                otlp: allowance.clone(),
                prometheus_remote_write: allowance.clone(),
                elasticsearch: allowance.clone(),
                elastic_apm: allowance.clone(),
                http: allowance.clone(),
                file: allowance.clone(),
                loki: allowance.clone(),
                syslog: allowance.clone(),
                fluent_forward: allowance.clone(),
                journald: allowance.clone(),
                kubernetes_logs: allowance,
            };
            other.tenants.limits.bytes_burst = Some(tidegate_config::Bytes::kib(1));
            let differing = tidegate_config::differing(&config, &other);
            for SourceKind { name, .. } in KINDS {
                assert_eq!(of_source(&other, name).requests, Some(PerSecond { rate: 7, burst: 7 }), "{name}");
            }
            let changed = super::super::reload::changeable(&config, other.clone());
            assert_eq!(tidegate_config::differing(&changed, &other), [""; 0]);
            differing
        };
        assert_eq!(differing.len(), 12);
        assert_eq!(of_source(&config, "otlp"), LimiterSettings::default(), "nothing is limited by default");
        assert!(bytes(&config).is_none(), "and there are no tenants");
    }
}
