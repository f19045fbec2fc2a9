use std::collections::BTreeMap;

use super::listener::Listener;
use crate::declare::{choices, settings};
use crate::values::{Bytes, HeaderName, IndexGlob, TenantName};

settings! {
    /// How much may be sent to each source by everybody together. Whatever is not set is not limited.
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
    }
}

settings! {
    /// How much may be sent. Whatever is not set is not limited. What is more is answered 429 with a `Retry-After` that
    /// says when it will be let in; Prometheus sends again after that only with `retry_on_http_429: true`.
    pub struct Allowance {
        /// Requests a second.
        requests_per_second: Option<u32> [1..=1_000_000_000] = None,
        /// Requests at once after a pause. Without it: those of one second.
        requests_burst: Option<u32> [1..=1_000_000_000] = None,
        /// Items (samples, log records, spans, events) a second. They are known when a request was read, so one that
        /// has more than is left is taken, and the next ones wait until that is made up for.
        items_per_second: Option<u32> [1..=1_000_000_000] = None,
        /// Items at once after a pause. Without it: those of one second.
        items_burst: Option<u32> [1..=1_000_000_000] = None,
        /// Bytes of bodies a second, as they are sent.
        bytes_per_second: Option<Bytes> [Bytes::kib(1)..=Bytes::gib(1024)] = None,
        /// Bytes at once after a pause. Without it: those of one second. A body that is larger passes when nothing else
        /// was sent before, and the next ones wait until that is made up for.
        bytes_burst: Option<Bytes> [Bytes::kib(1)..=Bytes::gib(1024)] = None,
        /// Requests at a time.
        requests_at_once: Option<u32> [1..=1_000_000] = None,
        /// Bytes of bodies at a time. A body that is larger than that passes alone.
        bytes_at_once: Option<Bytes> [Bytes::kib(1)..=Bytes::gib(1024)] = None,
        /// Bytes of one body, when decompressed. A larger one is answered 413.
        request_bytes: Option<Bytes> [Bytes::kib(1)..=Bytes::gib(1024)] = None,
        /// Items of one request. One with more is answered 413.
        request_items: Option<u32> [1..=1_000_000_000] = None,
    }
}

settings! {
    /// Who sends, where one gateway serves several owners of data. A tenant is required when one of `certificate`,
    /// `credentials`, `header`, `default_at` and `default` is set. Where there are credentials (`access.credentials_file`),
    /// each speaks for the tenant that its line names, or else for the default one, and a header that names another is
    /// answered 403; `tenant=*` on the line of a proxy lets the header choose. The tenant's name goes with its data into the
    /// journal. When memory is short, each tenant may hold its fair part of it: one that floods is answered
    /// 503, and one that does not notices nothing.
    pub struct Tenants {
        /// The field of the client's certificate that names the tenant. Where this is set, nothing else counts, and a
        /// request without it is refused. Needs a listener that asks for certificates.
        certificate: Option<CertificateField> = None,
        /// Whether every credential has to name a tenant, where there is no default one. The tenant that a credential
        /// names counts in any case.
        credentials: bool = false,
        /// The header that names the tenant, such as `X-Scope-OrgID` or `THANOS-TENANT`. Without credentials anybody can
        /// write anything into it, unless a proxy before tidegate sees to that; with them it counts where the credential
        /// says `tenant=*`.
        header: Option<HeaderName> = None,
        /// The tenant of a request that does not name one. Without it, such a request is answered 400.
        default: Option<TenantName> = None,
        /// The same for what comes to one address, in the place of `default`.
        default_at: DefaultAt = DefaultAt::default(),
        /// The indices that each tenant may write to over Elasticsearch's `_bulk`, where neither its credential (`indices=…`)
        /// nor its entry in `overrides` says; others are answered 403, item by item. Without it: all but those that begin
        /// with a dot, which only a credential can allow.
        indices: Option<Vec<IndexGlob>> = None,
        /// How many tenants are told apart. Those that come when there are so many share one entry, named `other`, with
        /// its limits and its part of the memory; their data keeps its tenant's name. Each takes about 1 KiB of memory.
        most: u32 [1..=250] = 200,
        /// How much each tenant may send that has no entry in `overrides`.
        limits: Allowance = Allowance::default(),
        /// How much one tenant may send, by its name, in the place of `limits`.
        overrides: BTreeMap<TenantName, TenantOverride> = BTreeMap::new(),
    }
}

settings! {
    /// The tenant of a request that came to an address and does not name one.
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
    /// How much one tenant may send.
    pub struct TenantOverride {
        /// Its weight where memory is short: it may hold this many times what a tenant without a weight may.
        weight: u32 [1..=1000] = 1,
        /// Its limits. Whatever is not set is not limited.
        limits: Allowance = Allowance::default(),
        /// The indices that it may write to over `_bulk`, in the place of `tenants.indices`.
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

    /// The tenant of what comes to this address without a name, where that is not the one of all addresses.
    pub fn default_at(&self, listener: Listener) -> Option<&TenantName> {
        listener.tenant(&self.default_at)
    }
}
