//! The endpoint: an address and a prepared head for each signal, and its retry state.

use crate::class::Signal;
use crate::config::{Builder, Endpoint, Protocol};
use crate::encode::{intake, otlp};
use crate::record::{Attributes, NoAttributes, Value};
use crate::sender::Growing;
use std::time::Duration;

/// Bytes of a head at most; the buffer has room for it and a chunk.
const LONGEST_HEAD: usize = 8 << 10;

pub(crate) struct OtlpEndpoint {
    routes: [Route; 3],
    resource: Vec<(String, String)>,
    #[cfg(feature = "tls")]
    pub(super) tls: Option<crate::http::Tls>,
    pub(crate) flush_interval: Duration,
    pub(super) timeout: Duration,
    pub(super) backoff: (Duration, Duration),
}

pub(super) struct Route {
    pub(super) endpoint: Endpoint,
    /// Request line and headers, all of them.
    pub(super) head: Vec<u8>,
    pub(super) gzip: bool,
    /// Which connection: signals to the same address share one.
    pub(super) connection: usize,
}

impl OtlpEndpoint {
    /// Nothing when there are mistakes.
    pub(crate) fn new(builder: &Builder, mistakes: &mut Vec<String>) -> Option<OtlpEndpoint> {
        let endpoints = builder.endpoints(mistakes);
        let shared = |index: usize| {
            let address =
                |index: usize| endpoints.get(index).and_then(Option::as_ref).map(|end| &end.address);
            (0..index).find(|other| address(*other) == address(index)).unwrap_or(index)
        };
        let connections = [shared(0), shared(1), shared(2)];
        let [Some(traces), Some(logs), Some(metrics)] = endpoints else { return None };
        let mut route = |signal: Signal, endpoint: Endpoint| {
            let gzip = builder.gzip_to(&endpoint);
            let head = head(builder, signal, &endpoint, gzip);
            if head.len() > LONGEST_HEAD {
                mistakes.push(format!(
                    "the headers of {} take {} bytes: {LONGEST_HEAD} are the most",
                    signal.name(),
                    head.len()
                ));
            }
            let connection = connections.get(signal as usize).copied().unwrap_or(0);
            Route { endpoint, head, gzip, connection }
        };
        let routes =
            [route(Signal::Traces, traces), route(Signal::Logs, logs), route(Signal::Metrics, metrics)];
        #[cfg(feature = "tls")]
        let tls = {
            let secure = |route: &Route| matches!(route.endpoint.address, crate::config::Address::Tls { .. });
            let files = crate::http::TlsFiles {
                authorities: builder.authorities.clone(),
                identity: builder.identity.clone(),
                unverified: builder.unverified,
            };
            let tls = routes.iter().any(secure).then(|| crate::http::Tls::new(&files)).transpose();
            tls.map_err(|error| mistakes.push(error.to_string())).ok()?
        };
        let mut resource = builder.resource.clone();
        if !resource.iter().any(|(name, _)| name == SERVICE) {
            // OpenTelemetry's default.
            resource.push((SERVICE.to_owned(), UNKNOWN.to_owned()));
        }
        if builder.protocol == Protocol::Otlp {
            for (name, value) in [
                ("telemetry.sdk.name", "tidegate-sender"),
                ("telemetry.sdk.language", "rust"),
                ("telemetry.sdk.version", env!("CARGO_PKG_VERSION")),
            ] {
                if !resource.iter().any(|(other, _)| other == name) {
                    resource.push((name.to_owned(), value.to_owned()));
                }
            }
        }
        Some(OtlpEndpoint {
            routes,
            resource,
            #[cfg(feature = "tls")]
            tls,
            flush_interval: builder.flush_interval,
            timeout: builder.timeout,
            backoff: builder.backoff,
        })
    }

    pub(super) fn route(&self, signal: Signal) -> &Route {
        let [traces, logs, metrics] = &self.routes;
        match signal {
            Signal::Traces => traces,
            Signal::Logs => logs,
            Signal::Metrics => metrics,
        }
    }

    pub(crate) fn gzip(&self) -> bool {
        self.routes.iter().any(|route| route.gzip)
    }

    /// The prefix of every body: the resource of OTLP, or the metadata of intake. `first` has additional attributes,
    /// and comes first.
    pub(crate) fn preamble(&self, protocol: Protocol, first: Option<&dyn Attributes>) -> Vec<u8> {
        let mut encoded = Growing(Vec::new());
        let resource = Merged { first: first.unwrap_or(&NoAttributes), then: &self.resource };
        match protocol {
            Protocol::Otlp => otlp::resource(&mut encoded, &resource),
            Protocol::ElasticApm => intake::metadata(&mut encoded, &resource),
        }
        encoded.0
    }

    pub(crate) fn memory(&self) -> usize {
        let heads = self.routes.iter().map(|route| route.head.capacity() + 256).sum::<usize>();
        let resource = self.resource.iter().map(|(name, value)| name.capacity() + value.capacity() + 48);
        // Once as it was given, once encoded, with what the formats add.
        heads + 2 * resource.sum::<usize>() + 1024
    }

    /// rustls: a session with its buffers, and what a handshake takes for a moment.
    pub(crate) fn tls_memory(&self) -> usize {
        #[cfg(feature = "tls")]
        return if self.tls.is_some() { 512 << 10 } else { 0 };
        #[cfg(not(feature = "tls"))]
        0
    }
}

/// All of the first, and of the others what the first does not name. A default of the first is no name.
struct Merged<'a> {
    first: &'a dyn Attributes,
    then: &'a Vec<(String, String)>,
}

const SERVICE: &str = "service.name";
/// The SDKs' name of an unnamed service, some with `:` and the program's name.
const UNKNOWN: &str = "unknown_service";

impl Merged<'_> {
    fn is_named(&self) -> bool {
        self.then.iter().any(|(name, value)| name == SERVICE && !value.starts_with(UNKNOWN))
    }

    /// The attributes of the first that apply.
    fn of_first(&self, visit: &mut dyn FnMut(&str, Value<'_>)) {
        let is_named = self.is_named();
        self.first.each(&mut |name, value| {
            let default = matches!(&value, Value::Str(text) if text.starts_with(UNKNOWN));
            if !(name == SERVICE && default && is_named) {
                visit(name, value);
            }
        });
    }
}

impl Attributes for Merged<'_> {
    fn each(&self, visit: &mut dyn FnMut(&str, Value<'_>)) {
        self.of_first(visit);
        for (name, value) in self.then {
            let mut named = false;
            self.of_first(&mut |other, _| named |= other == name);
            if !named {
                visit(name, Value::Str(value));
            }
        }
    }
}

fn head(builder: &Builder, signal: Signal, endpoint: &Endpoint, gzip: bool) -> Vec<u8> {
    let content = match builder.protocol {
        Protocol::Otlp => "application/x-protobuf",
        Protocol::ElasticApm => "application/x-ndjson",
    };
    let version = env!("CARGO_PKG_VERSION");
    let mut head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: tidegate-sender/{version}\r\nContent-Type: {content}\r\n\
         Transfer-Encoding: chunked\r\n",
        endpoint.path, endpoint.authority
    );
    if gzip {
        head.push_str("Content-Encoding: gzip\r\n");
    }
    let own = |(only, ..): &&(Option<Signal>, String, String)| only.is_none_or(|only| only == signal);
    let headers: Vec<_> = builder.headers.iter().filter(own).collect();
    for (index, (_, name, value)) in headers.iter().enumerate() {
        // The last one of a name counts.
        let later = headers.get(index + 1..).unwrap_or_default();
        if !later.iter().any(|(_, other, _)| other.eq_ignore_ascii_case(name)) {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    head.push_str("\r\n");
    head.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(own: &str, first: &[(&str, Value<'_>)]) -> Vec<String> {
        let own = vec![(SERVICE.to_owned(), own.to_owned()), ("kept".to_owned(), "yes".to_owned())];
        let mut all = Vec::new();
        Merged { first: &first, then: &own }.each(&mut |name, value| {
            if let Value::Str(value) = value {
                all.push(format!("{name}={value}"));
            }
        });
        all.sort();
        all
    }

    #[test]
    fn a_configured_name_wins_over_the_default_of_an_sdk() {
        let sdk = |name| merged("shop", &[(SERVICE, Value::Str(name))]);
        assert_eq!(sdk("unknown_service"), ["kept=yes", "service.name=shop"]);
        assert_eq!(sdk("unknown_service:python"), ["kept=yes", "service.name=shop"]);
        assert_eq!(sdk("of the SDK"), ["kept=yes", "service.name=of the SDK"]);
        let nobody = merged(UNKNOWN, &[(SERVICE, Value::Str("unknown_service:python"))]);
        assert_eq!(nobody, ["kept=yes", "service.name=unknown_service:python"]);
    }
}
