use super::{Delivery, Outbound, Signal, SinkRouting, SinkSettings};
use crate::checks::SinkCheck;
use crate::declare::settings;
use crate::values::{Bytes, Duration, Url};

settings! {
    /// Loki.
    pub struct LokiSink with delivery: Delivery, routing: SinkRouting {
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
    }
}

impl SinkSettings for LokiSink {
    fn routing(&self) -> Option<&SinkRouting> {
        Some(&self.routing)
    }

    fn signals(&self) -> &[Signal] {
        &[Signal::Logs]
    }

    fn outbound(&self) -> Option<Outbound<'_>> {
        Some(Outbound {
            setting: "endpoints",
            urls: &self.endpoints,
            credentials: Vec::new(),
            delivery: &self.delivery,
        })
    }

    fn check(&self, check: &mut SinkCheck<'_>) {
        check.no_query(self.endpoints.iter());
    }
}
