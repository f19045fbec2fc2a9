//! The address that stands in for Thanos Receive.

use std::net::{Ipv4Addr, SocketAddr};

use super::allowance::CertificateField;
use crate::declare::settings;
use crate::values::{HeaderName, TenantName};

settings! {
    /// An address that serves what Thanos Receive serves to senders: remote write at `/api/v1/receive`, OTLP metrics at
    /// `/api/v1/otlp`, `/-/healthy` and `/-/ready`. Each request has a tenant, by the rules of Thanos.
    pub struct ThanosReceiveListener {
        /// The address. 19291 is Thanos' port for remote write.
        address: SocketAddr = SocketAddr::from((Ipv4Addr::LOCALHOST, 19291)),
        /// Header that names the tenant (`--receive.tenant-header`). A request without it may name its tenant in
        /// `THANOS-TENANT`.
        tenant_header: HeaderName = HeaderName::known("thanos-tenant"),
        /// Field of the client's certificate that names the tenant (`--receive.tenant-certificate-field`). If set, no
        /// header counts, and a request without it is answered 400.
        tenant_certificate_field: Option<CertificateField> = None,
        /// Tenant of requests that name none (`--receive.default-tenant-id`).
        default_tenant: TenantName = TenantName::known("default-tenant"),
        /// Header that numbers a replica of a request (`--receive.replica-header`). Its number is checked and not used: as a
        /// router of Thanos, the gateway replicates each request by itself.
        replica_header: HeaderName = HeaderName::known("thanos-replica"),
        /// Whether `/metrics` has the metrics of Thanos Receive besides, by their names (`http_requests_total`,
        /// `thanos_receive_…`), for existing alerts and dashboards. The first 16 tenants have series of
        /// their own; the others share those of `other`.
        thanos_metrics: bool = false,
    }
}
