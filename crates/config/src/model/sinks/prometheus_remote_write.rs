use std::collections::BTreeMap;

use super::{Outbound, Signal, SinkSettings, Tls};
use crate::checks::SinkCheck;
use crate::declare::{choices, settings};
use crate::model::{Journal, WhenFull};
use crate::values::{Bytes, Duration, HeaderName, Secret, Url};

settings! {
    /// A receiver of Prometheus remote write.
    pub struct RemoteWriteSink {
        /// The receivers, each with its path: one or several that are the same to the sender. Requests go to them in
        /// turn, and one that fails is left out for a while. An `https` one on another machine is reached through the
        /// proxy that the environment names in `HTTPS_PROXY`, unless `NO_PROXY` names it.
        endpoints: Option<Vec<Url>> = None,
        /// The only receiver: short for `endpoints` with one URL.
        url: Option<Url> = None,
        /// The version of the protocol to send.
        protocol: Protocol = Protocol::Auto,
        /// How many requests may be in flight at once. With more than one, series are split between
        /// them by hash, so that each series still arrives in order.
        lanes: u32 [1..=64] = 1,
        /// The largest request, measured before compression. Queued requests are joined up to this.
        max_request_bytes: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(8),
        /// The most samples in one request.
        max_request_samples: u32 [1..=10_000_000] = 20_000,
        /// How long to wait for more before a request that is not full is sent.
        linger: Duration [Duration::milliseconds(0)..=Duration::minutes(1)] = Duration::milliseconds(100),
        /// How long an answer may take before the request is sent again.
        timeout: Duration [Duration::milliseconds(100)..=Duration::minutes(10)] = Duration::seconds(30),
        /// How long to wait between attempts.
        backoff: Backoff = Backoff::default(),
        /// Headers to add to every request, for example `authorization` or `x-scope-orgid`. Their
        /// values are never shown.
        headers: BTreeMap<HeaderName, Secret> = BTreeMap::new(),
        /// A header that says whose data a request carries, for example `X-Scope-OrgID`: the name of the tenant with
        /// which the data came. What came without one is sent without the header.
        tenant_header: Option<HeaderName> = None,
        /// Whom to trust and who to be, for endpoints that begin with `https`.
        tls: Tls = Tls::default(),
        /// Whether keys, passwords and tokens may go to another machine over plain `http`: everybody on the way can read
        /// them. Only where the network itself is trusted.
        insecure: bool = false,
        /// How metrics that came as OTLP become series.
        otlp: Translation = Translation::default(),
        /// What happens when this sink is so far behind that the journal is full. Without it: as
        /// `journal.when_full` says.
        when_full: Option<WhenFull> = None,
    }
}

settings! {
    /// The wait between attempts.
    pub struct Backoff {
        /// The wait before the second attempt. It doubles from one to the next, with jitter. A longer
        /// `Retry-After` of the receiver counts instead.
        min: Duration [Duration::milliseconds(1)..=Duration::hours(1)] = Duration::milliseconds(30),
        /// The longest wait between two attempts.
        max: Duration [Duration::milliseconds(1)..=Duration::hours(1)] = Duration::seconds(5),
    }
}

settings! {
    /// How metrics that came as OTLP become series.
    pub struct Translation {
        /// How names are made.
        naming: Naming = Naming::UnderscoreEscapingWithSuffixes,
        /// Attributes of the resource that become labels of each of its series, for example
        /// `k8s.namespace.name`.
        promote: Option<Vec<String>> = None,
        /// Whether series have `otel_scope_…` labels, from the scope that they were recorded in.
        scope_labels: bool = true,
        /// Whether there is a `target_info` for each resource, with its attributes as labels.
        target_info: bool = true,
        /// What becomes of sums and histograms that say how much came since the last time. A sum that may fall and
        /// exponential histograms are refused either way.
        deltas: Deltas = Deltas::Refuse,
        /// The most series that are added up; about 110 bytes each. A histogram is one for each bucket and
        /// two more. Points of further series are refused, until others are not heard of for an hour.
        delta_series: u32 [1..=100_000_000] = 10_000,
    }
}

choices! {
    /// What becomes of points that say how much came since the last time.
    pub enum Deltas is "a way to treat deltas" {
        /// They are dropped and counted.
        Refuse = "refuse",
        /// They are added up to what Prometheus takes for a counter. It begins again when tidegate is restarted.
        Accumulate = "accumulate",
    }
}

choices! {
    /// How names are made of those of OTLP, by the words that Prometheus has for it.
    pub enum Naming is "a way to make names" {
        /// What names may not have becomes `_`; units and `_total` are appended.
        UnderscoreEscapingWithSuffixes = "UnderscoreEscapingWithSuffixes",
        /// What names may not have becomes `_`.
        UnderscoreEscapingWithoutSuffixes = "UnderscoreEscapingWithoutSuffixes",
        /// Names stay as they are, with units and `_total` appended.
        NoUTF8EscapingWithSuffixes = "NoUTF8EscapingWithSuffixes",
        /// Names stay as they are.
        NoTranslation = "NoTranslation",
    }
}

choices! {
    /// The version of Prometheus remote write to send.
    pub enum Protocol is "a protocol version" {
        /// As it was received; as 1.0 to a receiver that does not take 2.0.
        Auto = "auto",
        /// Always 1.0.
        V1 = "1.0",
        /// 2.0, and 1.0 only after the receiver has refused 2.0 with 415.
        V2 = "2.0",
    }
}

impl SinkSettings for RemoteWriteSink {
    fn signals(&self) -> &[Signal] {
        &[Signal::Metrics]
    }

    fn when_full(&self, journal: &Journal) -> WhenFull {
        self.when_full.unwrap_or(journal.when_full)
    }

    fn outbound(&self) -> Option<Outbound<'_>> {
        Some(Outbound {
            setting: self.setting(),
            urls: self.endpoints(),
            credentials: Vec::new(),
            headers: &self.headers,
            tenant_header: self.tenant_header.as_ref(),
            backoff: &self.backoff,
            tls: Some(&self.tls),
            insecure: self.insecure,
        })
    }

    fn check(&self, check: &mut SinkCheck<'_>) {
        let (name, setting) = (check.name, self.setting());
        match (&self.endpoints, &self.url) {
            (Some(endpoints), Some(url)) if !endpoints.contains(url) => {
                let message = format!("`sinks.{name}.url` is none of its `endpoints`");
                check.clash(
                    "url",
                    message,
                    "`url` is short for `endpoints` with one URL: give one of the two",
                );
            }
            _ if self.endpoints().is_empty() => {
                let message = format!("`sinks.{name}` has no `endpoints`");
                let help =
                    "add `endpoints:` with a list of URLs, for example `http://127.0.0.1:9090/api/v1/write`";
                check.clash_or_sink("endpoints", message, help);
            }
            _ => {}
        }
        if self.endpoints().iter().any(|url| !url.path().starts_with('/')) {
            let message = format!("`sinks.{name}.{setting}` has no path");
            check.clash(setting, message, "add it; Prometheus takes remote write at `/api/v1/write`");
        }
    }
}

impl RemoteWriteSink {
    /// Where it sends to.
    pub fn endpoints(&self) -> &[Url] {
        match (&self.endpoints, &self.url) {
            (Some(endpoints), _) => endpoints,
            (None, url) => url.as_slice(),
        }
    }

    /// The setting with the URLs.
    fn setting(&self) -> &'static str {
        if self.endpoints.is_some() { "endpoints" } else { "url" }
    }
}
