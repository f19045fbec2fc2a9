use std::collections::BTreeMap;

use super::{Backoff, Outbound, Signal, SinkSettings, Tls};
use crate::checks::SinkCheck;
use crate::declare::settings;
use crate::model::{Journal, Route, WhenFull};
use crate::setting::Sequence;
use crate::values::{Bytes, Condition, Duration, HeaderName, Name, Secret, Url};

settings! {
    /// Loki.
    pub struct LokiSink {
        /// The URLs of Loki: one, or several equivalent ones. Requests rotate between them; a failing endpoint is left out
        /// until it answers again. `/loki/api/v1/push` is appended to the path unless it ends with `/push`. An endpoint on
        /// another machine is reached through the proxy in the environment variable `http_proxy` or `https_proxy`, unless
        /// `no_proxy` names the endpoint.
        endpoints: Vec<Url>,
        /// Resource attributes that become labels of the stream, for example `service.name`; all others become structured
        /// metadata. Each combination of their values is a stream of its own, which costs Loki memory. Default: the list of
        /// Loki's own OTLP endpoint (`service.name`, `service.namespace`, `k8s.namespace.name` and others, see
        /// `docs/loki.md`). Labels of records received by the source `loki` stay labels.
        labels: Option<Vec<String>> = None,
        /// Most concurrent requests. The actual number adapts to Loki's response times.
        max_in_flight: u32 [1..=256] = 8,
        /// Largest request before compression. Queued records are batched up to this size; a larger record is sent alone.
        max_request_bytes: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(2),
        /// How long an incomplete batch waits for more data.
        linger: Duration [Duration::milliseconds(0)..=Duration::minutes(1)] = Duration::seconds(1),
        /// Response timeout; after it the request is retried.
        timeout: Duration [Duration::milliseconds(100)..=Duration::minutes(10)] = Duration::seconds(30),
        /// Delay between attempts.
        backoff: Backoff = Backoff::default(),
        /// Headers to add to every request, for example `authorization` or `x-scope-orgid`. Their values are never shown.
        headers: BTreeMap<HeaderName, Secret> = BTreeMap::new(),
        /// Header for the tenant's name, for example `X-Scope-OrgID`. A request contains the data of one tenant only;
        /// data without a tenant is sent without the header.
        tenant_header: Option<HeaderName> = None,
        /// TLS settings for `https` endpoints.
        tls: Tls = Tls::default(),
        /// Whether keys, passwords and tokens may be sent to another machine over plain `http`, where anyone on the
        /// network can read them. Only for trusted networks.
        insecure: bool = false,
        /// Behaviour when this sink is so far behind that the journal is full. Default: `journal.when_full`.
        when_full: Option<WhenFull> = None,
        /// The pipeline that items pass through on their way to this sink: a name under `pipelines`.
        pipeline: Option<Name> = None,
        /// OTTL conditions: the sink takes only records that meet at least one of them.
        when: Option<Sequence<Condition>> = None,
        /// Whether the sink takes what no other sink takes by its `when`.
        otherwise: bool = false,
    }
}

impl SinkSettings for LokiSink {
    fn route(&self) -> Route<'_> {
        Route {
            pipeline: self.pipeline.as_ref(),
            when: self.when.as_deref().unwrap_or_default(),
            otherwise: self.otherwise,
            relabel: &[],
        }
    }

    fn signals(&self) -> &[Signal] {
        &[Signal::Logs]
    }

    fn when_full(&self, journal: &Journal) -> WhenFull {
        self.when_full.unwrap_or(journal.when_full)
    }

    fn outbound(&self) -> Option<Outbound<'_>> {
        Some(Outbound {
            setting: "endpoints",
            urls: &self.endpoints,
            credentials: Vec::new(),
            headers: &self.headers,
            tenant_header: self.tenant_header.as_ref(),
            backoff: &self.backoff,
            tls: Some(&self.tls),
            insecure: self.insecure,
        })
    }

    fn check(&self, check: &mut SinkCheck<'_>) {
        check.no_query(self.endpoints.iter());
    }
}
