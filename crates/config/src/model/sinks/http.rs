use super::{Compression, Delivery, Outbound, Signal, SinkRouting, SinkSample, SinkSettings};
use crate::checks::SinkCheck;
use crate::declare::{choices, settings};
use crate::values::{Bytes, ContentType, Duration, Url};

settings! {
    /// An HTTP server that accepts JSON.
    pub struct HttpSink with delivery: Delivery, routing: SinkRouting {
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
        /// The part of the traces that it takes, decided when they are complete. Default: all.
        sample: Option<SinkSample> = None,
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
    fn routing(&self) -> Option<&SinkRouting> {
        Some(&self.routing)
    }

    fn sample(&self) -> Option<&SinkSample> {
        self.sample.as_ref()
    }

    fn signals(&self) -> &[Signal] {
        &self.signals
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
