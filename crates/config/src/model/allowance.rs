use std::collections::BTreeMap;

use super::listener::Listener;
use crate::declare::{choices, settings};
use crate::values::{Bytes, HeaderName, IndexGlob, TenantName};

settings! {
    /// Limits for each source, shared by all its clients. Without a value there is no limit.
    pub struct SourceLimits {
        /// OpenTelemetry, over HTTP and gRPC.
        otlp: Allowance = Allowance::default(),
        /// Prometheus remote write.
        prometheus_remote_write: Allowance = Allowance::default(),
        /// Elasticsearch.
        elasticsearch: Allowance = Allowance::default(),
        /// Elastic APM.
        elastic_apm: Allowance = Allowance::default(),
        /// Log records in JSON or plain text.
        http: Allowance = Allowance::default(),
        /// Log files.
        file: Allowance = Allowance::default(),
        /// Loki's push API.
        loki: Allowance = Allowance::default(),
        /// Syslog.
        syslog: Allowance = Allowance::default(),
        /// Fluentd's forward protocol. A request is a batch of records.
        fluent_forward: Allowance = Allowance::default(),
        /// The systemd journal. A request is a batch of entries.
        journald: Allowance = Allowance::default(),
        /// Logs of Kubernetes containers. A request is a batch of records.
        kubernetes_logs: Allowance = Allowance::default(),
    }
}

settings! {
    /// Rate and size limits. Without a value there is no limit. A request above a limit is answered 429 with a
    /// `Retry-After` header that gives the wait; Prometheus retries 429 only with `retry_on_http_429: true`.
    pub struct Allowance {
        /// Requests per second.
        requests_per_second: Option<u32> [1..=1_000_000_000] = None,
        /// Burst size in requests. Default: the number allowed in one second.
        requests_burst: Option<u32> [1..=1_000_000_000] = None,
        /// Items (samples, log records, spans, events) per second. The number is known only after a request has been
        /// read, so a request larger than the remaining allowance is accepted, and the following requests wait until
        /// the deficit is made up.
        items_per_second: Option<u32> [1..=1_000_000_000] = None,
        /// Burst size in items. Default: the number allowed in one second.
        items_burst: Option<u32> [1..=1_000_000_000] = None,
        /// Body bytes per second, as sent.
        bytes_per_second: Option<Bytes> [Bytes::kib(1)..=Bytes::gib(1024)] = None,
        /// Burst size in bytes. Default: the number allowed in one second. A larger body is accepted if the allowance
        /// is full, and the following requests wait until the deficit is made up.
        bytes_burst: Option<Bytes> [Bytes::kib(1)..=Bytes::gib(1024)] = None,
        /// Concurrent requests.
        requests_at_once: Option<u32> [1..=1_000_000] = None,
        /// Body bytes of concurrent requests. A larger body is accepted only alone.
        bytes_at_once: Option<Bytes> [Bytes::kib(1)..=Bytes::gib(1024)] = None,
        /// Largest decompressed body. A larger one is answered 413.
        request_bytes: Option<Bytes> [Bytes::kib(1)..=Bytes::gib(1024)] = None,
        /// Most items in one request. A request with more is answered 413.
        request_items: Option<u32> [1..=1_000_000_000] = None,
    }
}

settings! {
    /// Tenants: the owners of the data, if one gateway serves several. A tenant is required when one of
    /// `certificate`, `credentials`, `header`, `default_at` and `default` is set. With credentials
    /// (`access.credentials_file`), each credential acts for the tenant on its line, or else for the default tenant,
    /// and a header that names another tenant is answered 403; `tenant=*` on the line of a proxy lets the header
    /// choose. The journal stores the tenant's name with its data. When memory is short, each tenant is limited to
    /// its fair share: a tenant that floods is answered 503, and the others are unaffected.
    pub struct Tenants {
        /// Field of the client's certificate that names the tenant. If set, it is the only source of the tenant's
        /// name, and a request without it is refused. Requires a listener that requests client certificates.
        certificate: Option<CertificateField> = None,
        /// Whether every credential must name a tenant, if there is no default tenant. A tenant named by a credential
        /// applies in any case.
        credentials: bool = false,
        /// Header that names the tenant, such as `X-Scope-OrgID` or `THANOS-TENANT`. Without credentials any client
        /// can write it, unless a proxy in front of tidegate sets it; with credentials it applies only to those with
        /// `tenant=*`.
        header: Option<HeaderName> = None,
        /// Tenant of requests that name none. Without it, such a request is answered 400.
        default: Option<TenantName> = None,
        /// Default tenant per address, instead of `default`.
        default_at: DefaultAt = DefaultAt::default(),
        /// Index patterns that each tenant may write to over Elasticsearch's `_bulk`, unless its credential
        /// (`indices=…`) or its entry in `overrides` has patterns. An item for another index is answered 403.
        /// Default: every index whose name does not begin with a dot; only a credential can allow those.
        indices: Option<Vec<IndexGlob>> = None,
        /// Most tenants tracked separately. Further tenants share one entry named `other`, with its limits and its
        /// share of the memory; their data keeps its tenant's name. Each entry takes about 1 KiB of memory.
        most: u32 [1..=250] = 200,
        /// Limits for each tenant without an entry in `overrides`.
        limits: Allowance = Allowance::default(),
        /// Most active series of each tenant in the store behind, by the query in `limits.head_series`. A request with series of a
        /// tenant that has at least as many is answered 429. 0: no limit.
        head_series: u32 = 0,
        /// Limits for one tenant, by its name, instead of `limits`.
        overrides: BTreeMap<TenantName, TenantOverride> = BTreeMap::new(),
    }
}

settings! {
    /// Default tenant of each address.
    pub struct DefaultAt {
        /// At `listen.http`.
        http: Option<TenantName> = None,
        /// At `listen.grpc`.
        grpc: Option<TenantName> = None,
        /// At `listen.elasticsearch`.
        elasticsearch: Option<TenantName> = None,
        /// At `listen.apm`.
        apm: Option<TenantName> = None,
    }
}

settings! {
    /// Limits and rights of one tenant.
    pub struct TenantOverride {
        /// Weight when memory is short: its share is this many times that of a tenant without a weight.
        weight: u32 [1..=1000] = 1,
        /// Its limits. Without a value there is no limit.
        limits: Allowance = Allowance::default(),
        /// Most active series of it in the store behind, instead of `tenants.head_series`. 0: no limit.
        head_series: Option<u32> = None,
        /// Index patterns that it may write to over `_bulk`, instead of `tenants.indices`.
        indices: Option<Vec<IndexGlob>> = None,
    }
}

choices! {
    /// A field of a certificate's subject.
    pub enum CertificateField is "a field of a certificate" {
        /// The common name, `CN`.
        CommonName = "common_name",
        /// The first organization, `O`.
        Organization = "organization",
        /// The first organizational unit, `OU`.
        OrganizationalUnit = "organizational_unit",
    }
}

impl Tenants {
    /// Whether every request must have a tenant.
    pub fn are_on(&self) -> bool {
        let named = self.certificate.is_some() || self.credentials || self.header.is_some();
        let mut listeners = Listener::ALL.into_iter();
        named || listeners.any(|listener| self.default_at(listener).is_some()) || self.default.is_some()
    }

    /// The default tenant of this address, if it differs from that of all addresses.
    pub fn default_at(&self, listener: Listener) -> Option<&TenantName> {
        listener.tenant(&self.default_at)
    }
}
