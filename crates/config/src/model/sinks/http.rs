use std::collections::BTreeMap;

use super::{Backoff, Compression, Outbound, Signal, SinkSettings, Tls};
use crate::checks::SinkCheck;
use crate::declare::{choices, settings};
use crate::model::{Journal, Route, WhenFull};
use crate::setting::Sequence;
use crate::values::{Bytes, Condition, ContentType, Duration, HeaderName, Name, Secret, Url};

settings! {
    /// An HTTP server that accepts JSON.
    pub struct HttpSink {
        /// The URLs: one, or several equivalent ones. Requests rotate between them; a failing endpoint is left out until it
        /// answers again. With `format: otlp_json`, `/v1/traces`, `/v1/metrics` or `/v1/logs` is appended to the path unless
        /// it ends so. An endpoint on another machine is reached through the proxy in the environment variable `http_proxy`
        /// or `https_proxy`, unless `no_proxy` names the endpoint.
        endpoints: Vec<Url>,
        /// Format of the request body. A request contains items of one signal only.
        format: HttpFormat = HttpFormat::Ndjson,
        /// Request method.
        method: HttpMethod = HttpMethod::Post,
        /// The header `Content-Type`. Default: `application/x-ndjson` for `ndjson`, otherwise `application/json`.
        content_type: Option<ContentType> = None,
        /// How requests are compressed.
        compression: Compression = Compression::None,
        /// Signals to send; the sink skips everything else. Profiles have no JSON form.
        signals: Vec<Signal> = vec![Signal::Traces, Signal::Metrics, Signal::Logs],
        /// Most concurrent requests. The actual number adapts to the receivers' response times.
        max_in_flight: u32 [1..=256] = 8,
        /// Largest request before compression. Queued items are batched up to this size; a larger item is sent alone.
        max_request_bytes: Bytes [Bytes::kib(64)..=Bytes::gib(1)] = Bytes::mib(4),
        /// How long an incomplete batch waits for more data.
        linger: Duration [Duration::milliseconds(0)..=Duration::minutes(1)] = Duration::seconds(1),
        /// Response timeout; after it the request is retried.
        timeout: Duration [Duration::milliseconds(100)..=Duration::minutes(10)] = Duration::seconds(30),
        /// Delay between attempts.
        backoff: Backoff = Backoff::default(),
        /// Headers to add to every request, for example `authorization`. Their values are never shown.
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
        /// OTTL conditions: the sink takes only items that meet at least one of them. A condition about one kind of
        /// telemetry leaves the others as they are.
        when: Option<Sequence<Condition>> = None,
        /// Whether the sink takes what no other sink takes by its `when`.
        otherwise: bool = false,
    }
}

choices! {
    /// Formats of request bodies.
    pub enum HttpFormat is "a format" {
        /// One JSON object per span, log record or metric point, each on its own line.
        Ndjson = "ndjson",
        /// A JSON array of the same objects.
        JsonArray = "json_array",
        /// OTLP/JSON, which an OpenTelemetry Collector accepts.
        OtlpJson = "otlp_json",
    }
}

choices! {
    /// Request methods.
    pub enum HttpMethod is "a method" {
        /// `POST`.
        Post = "post",
        /// `PUT`.
        Put = "put",
    }
}

impl SinkSettings for HttpSink {
    fn route(&self) -> Route<'_> {
        Route {
            pipeline: self.pipeline.as_ref(),
            when: self.when.as_deref().unwrap_or_default(),
            otherwise: self.otherwise,
            relabel: &[],
        }
    }

    fn signals(&self) -> &[Signal] {
        &self.signals
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
        let name = check.name;
        // Other formats are sent to the URL as it is written, and OTLP too where that has the path of a signal.
        if self.format == HttpFormat::OtlpJson {
            let is_base = |url: &&Url| {
                let path = url.path().split('?').next().unwrap_or_default().trim_end_matches('/');
                !["/v1/traces", "/v1/metrics", "/v1/logs"].iter().any(|signal| path.ends_with(signal))
            };
            check.no_query(self.endpoints.iter().filter(is_base));
        }
        if self.signals.contains(&Signal::Profiles) {
            let message = format!("`sinks.{name}.signals` has profiles, which have no JSON form");
            check.clash("signals", message, "remove them; a sink of type `otlp` accepts profiles");
        }
    }
}
