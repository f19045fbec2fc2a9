//! The address of Thanos Receive.

use super::rules;
use tidegate_admission::tenancy::Tenancy;
use tidegate_config::Config;
use tidegate_sources::{Http, ThanosReceive};

/// The header that names a tenant to every Thanos Receive, whatever its own is.
const TENANT_HEADER: &str = "thanos-tenant";

/// The sources as they are served at the address of Thanos Receive, where there is one.
pub(super) fn of(http: &Http, config: &Config) -> Http {
    let Some(listener) = &config.listen.thanos_receive else { return http.clone() };
    let tenancy = Tenancy {
        certificate: listener.tenant_certificate_field.map(rules::subject_field),
        header: Some(listener.tenant_header.as_str().into()),
        second_header: Some(TENANT_HEADER.into()),
        default: Some(listener.default_tenant.as_str().into()),
        required: true,
    };
    http.thanos_receive(&ThanosReceive { replica_header: listener.replica_header.as_str().into() }, tenancy)
}
