//! One endpoint: requests over its connections, and the answers, bounded.

mod compressed;
mod loki;
mod read;
mod splunk_hec;

use super::answer::OtlpAnswer;
use super::settings::{Json, Settings, Transport};
use crate::delivery::EndpointError;
use crate::delivery::client::{self, Client, ClientSettings};
use crate::endpoints;
use crate::http_peer::chain;
use crate::probe::{HarmlessRefusal, Probe};
use crate::secrets::Secrets;
use crate::tenant;
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, TE, USER_AGENT};
use hyper::{Method, Request as HttpRequest, Uri, Version};
use read::Responder;
pub(crate) use read::{GrpcAnswer, grpc_answer};
use splunk_hec::Acknowledgement;
use tidegate_journal::{Encoding, Signal, Tenant};
use tidegate_wire::otlp::json::Layout;

/// Bytes before a message in gRPC: whether it is compressed, and how long it is.
pub(super) const PREFIX: usize = 5;
/// The most that a connection over HTTP/1.1 buffers in each direction: heads of requests, and responses.
const BUFFER: usize = 16 << 10;
const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");
const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const AGENT: &str = concat!("tidegate/", env!("CARGO_PKG_VERSION"));

/// The path of Loki's push API.
const PUSH: &str = "/loki/api/v1/push";

/// Signals that OTLP has, with the path over HTTP and the method of gRPC.
const SIGNALS: [(Signal, &str, &str); 4] = [
    (Signal::Traces, "/v1/traces", "/opentelemetry.proto.collector.trace.v1.TraceService/Export"),
    (Signal::Metrics, "/v1/metrics", "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export"),
    (Signal::Logs, "/v1/logs", "/opentelemetry.proto.collector.logs.v1.LogsService/Export"),
    (
        Signal::Profiles,
        "/v1development/profiles",
        "/opentelemetry.proto.collector.profiles.v1development.ProfilesService/Export",
    ),
];

/// Whether OTLP has this signal.
pub(super) fn is_spoken(signal: Signal) -> bool {
    SIGNALS.iter().any(|(known, ..)| *known == signal)
}

/// The memory of a sink's connections, in bytes: with their buffers, TLS sessions and the kept parts of responses.
pub(super) fn bytes(settings: &Settings) -> usize {
    let response = read::KEPT + client::MAX_HEADER_LIST as usize;
    client_settings(settings).bytes(&settings.endpoints)
        + settings.max_in_flight * response
        + compressed::DECODER
}

fn client_settings(settings: &Settings) -> ClientSettings<'_> {
    ClientSettings {
        tls: &settings.tls,
        version: match settings.transport {
            Transport::Grpc => client::Version::Http2,
            Transport::Http | Transport::Json(_) | Transport::SplunkHec | Transport::Loki => {
                client::Version::Http1
            }
        },
        // One more asks whether events are indexed.
        max_in_flight: settings.max_in_flight + usize::from(settings.splunk_hec.acknowledgement.is_some()),
        buffer: BUFFER,
        timeout: settings.timeout,
    }
}

/// A request as it goes out. Clones are the same bytes.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) signal: Signal,
    /// The tenant.
    pub(super) tenant: Tenant,
    pub(super) encoding: Encoding,
    /// [`PREFIX`] bytes that say how long it is, and the body; holds the memory they live in.
    pub(super) frame: Bytes,
}

impl Request {
    /// The body, without what gRPC puts before it.
    pub(super) fn body(&self) -> Bytes {
        self.frame.slice(PREFIX.min(self.frame.len())..)
    }
}

/// One endpoint.
pub(super) struct Peer {
    transport: Transport,
    uris: [(Signal, Uri); 4],
    headers: HeaderMap,
    secrets: Secrets,
    tenant_header: Option<HeaderName>,
    /// Of events, where they have to be indexed.
    acknowledgement: Option<Acknowledgement>,
    client: Client,
}

impl Peer {
    /// The endpoint at `uri`.
    pub(super) fn new(uri: &Uri, settings: &Settings) -> Result<Peer, EndpointError> {
        let address = || EndpointError::Address(uri.clone());
        let client = Client::new(uri, client_settings(settings))?;
        let base = match settings.transport {
            Transport::Http | Transport::Json(_) | Transport::Loki => uri.path().trim_end_matches('/'),
            Transport::Grpc | Transport::SplunkHec => "",
        };
        let mut uris = SIGNALS.map(|(signal, ..)| (signal, Uri::default()));
        for ((_, path, method), (_, target)) in SIGNALS.iter().zip(&mut uris) {
            let path = match settings.transport {
                Transport::SplunkHec => {
                    *target = splunk_hec::event_uri(uri)?;
                    continue;
                }
                Transport::Loki if base.ends_with("/push") => {
                    target.clone_from(uri);
                    continue;
                }
                Transport::Loki => PUSH,
                Transport::Grpc => method,
                Transport::Http | Transport::Json(_) => path,
            };
            if let Transport::Json(json) = settings.transport
                && (json.layout != Layout::Request || base.ends_with(path))
            {
                target.clone_from(uri);
                continue;
            }
            let mut parts = uri.clone().into_parts();
            parts.path_and_query = Some(format!("{base}{path}").parse().map_err(|_| address())?);
            *target = Uri::from_parts(parts).map_err(|_| address())?;
        }
        let (headers, transport) = (settings.headers.clone(), settings.transport);
        let tenant_header = settings.tenant_header.clone();
        let secrets = Secrets::of(uri, &headers);
        let acknowledgement = match transport {
            Transport::SplunkHec => Acknowledgement::new(uri, &settings.splunk_hec)?,
            _ => None,
        };
        Ok(Peer { transport, uris, headers, secrets, tenant_header, acknowledgement, client })
    }

    /// Sends `request` and waits for the answer; for `timeout` at most.
    pub(super) async fn send(&self, request: &Request) -> OtlpAnswer {
        if self.transport == Transport::SplunkHec {
            return self.send_events(request).await.masked(&self.secrets);
        }
        let Some(head) = self.head(request) else {
            return OtlpAnswer::lost("the request has no path".to_owned());
        };
        let answer = self.client.exchange(|connections| async move {
            let answered = match self.transport {
                Transport::Grpc => connections.request(head).await,
                _ => connections.request_following(head, || self.head(request)).await,
            };
            match answered {
                Ok(response) => match self.transport {
                    Transport::Grpc => read::grpc(response).await,
                    Transport::Json(json) => read::http(response, Responder::Json(json.layout)).await,
                    Transport::Http | Transport::SplunkHec => read::http(response, Responder::Otlp).await,
                    Transport::Loki => read::http(response, Responder::Loki).await,
                },
                Err(error) => OtlpAnswer::lost(chain(&error)),
            }
        });
        match answer.await {
            Ok(answer) => self.until_known(answer).masked(&self.secrets),
            Err(late) => OtlpAnswer::lost(late.to_string()),
        }
    }

    /// Makes items wait where the peer does not know the sender: that says nothing about them, and somebody can mend the credentials. Where
    /// requests name a tenant, the answer may be about that one, which may not hold up the others.
    fn until_known(&self, answer: OtlpAnswer) -> OtlpAnswer {
        match answer {
            OtlpAnswer::Refused { reason, .. }
                if reason.status.is_unauthenticated() && self.tenant_header.is_none() =>
            {
                OtlpAnswer::Later { reason, after: None }
            }
            answer => answer,
        }
    }

    fn head(&self, request: &Request) -> Option<HttpRequest<Full<Bytes>>> {
        let (_, uri) = self.uris.iter().find(|(signal, _)| *signal == request.signal)?;
        let coding = match request.encoding {
            Encoding::Identity => None,
            Encoding::Gzip => Some(HeaderValue::from_static("gzip")),
            Encoding::Zstd => Some(HeaderValue::from_static("zstd")),
            Encoding::Snappy | Encoding::Deflate => return None,
        };
        let body = match self.transport {
            Transport::Grpc => request.frame.clone(),
            Transport::Http | Transport::Json(_) | Transport::SplunkHec | Transport::Loki => request.body(),
        };
        let mut head = HttpRequest::new(Full::new(body));
        *head.method_mut() = match self.transport {
            Transport::Json(Json { put: true, .. }) => Method::PUT,
            _ => Method::POST,
        };
        head.uri_mut().clone_from(uri);
        head.headers_mut().clone_from(&self.headers);
        let headers = head.headers_mut();
        tenant::put(self.tenant_header.as_ref(), &request.tenant, headers);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        match self.transport {
            Transport::Loki => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
            }
            Transport::Http => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"));
                coding.map(|coding| headers.insert(CONTENT_ENCODING, coding));
            }
            Transport::Json(json) => {
                let usual = match json.layout {
                    Layout::Lines => "application/x-ndjson",
                    Layout::Request | Layout::Array => "application/json",
                };
                headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(usual));
                coding.map(|coding| headers.insert(CONTENT_ENCODING, coding));
            }
            Transport::SplunkHec => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                coding.map(|coding| headers.insert(CONTENT_ENCODING, coding));
            }
            Transport::Grpc => {
                headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
                headers.insert(TE, HeaderValue::from_static("trailers"));
                // At most eight digits.
                let patience = self.client.timeout().as_millis().min(99_999_999);
                let patience = HeaderValue::from_str(&format!("{patience}m")).ok()?;
                headers.insert(GRPC_TIMEOUT, patience);
                coding.map(|coding| headers.insert(GRPC_ENCODING, coding));
                *head.version_mut() = Version::HTTP_2;
            }
        }
        Some(head)
    }
}

/// A request without items to the endpoint at `uri`.
///
/// # Errors
/// When the address cannot be used.
pub(super) fn probe(uri: &Uri, settings: &Settings, signal: Signal) -> Result<Probe, EndpointError> {
    let address = || EndpointError::Address(uri.clone());
    // Snappy's block of nothing.
    let body: &[u8] = if settings.transport == Transport::Loki { &[0] } else { &[] };
    let request = Request {
        signal,
        tenant: Tenant::NONE,
        encoding: Encoding::Identity,
        frame: [&[0; PREFIX], body].concat().into(),
    };
    let head = Peer::new(uri, settings)?.head(&request).ok_or_else(address)?;
    let (mut head, _) = head.into_parts();
    // The JSON of an unknown receiver: only a request without content is known to store nothing.
    let is_unknown =
        matches!(settings.transport, Transport::Json(Json { layout: Layout::Lines | Layout::Array, .. }));
    let (what, body, harmless) = match settings.transport {
        Transport::Grpc => ("an empty export request", request.frame, &[] as &[_]),
        Transport::Http => ("an empty export request", request.body(), &[] as &[_]),
        Transport::Json(_) if is_unknown => {
            head.method = Method::HEAD;
            head.headers.remove(CONTENT_TYPE);
            ("a request for the head alone (HEAD)", Bytes::new(), &HEAD_REFUSALS as &[_])
        }
        Transport::Json(_) => ("an export request without items", Bytes::from_static(b"{}"), &[] as &[_]),
        Transport::Loki => ("a push request without streams", request.body(), &LOKI_REFUSALS as &[_]),
        Transport::SplunkHec => ("a request without events", Bytes::new(), &SPLUNK_REFUSALS as &[_]),
    };
    let lacks_tenant = settings.tenant_header.is_some();
    let request = HttpRequest::from_parts(head, body);
    Ok(Probe { harmless, lacks_tenant, ..Probe::new(request, what, &settings.tls) })
}

/// Servers that know the path, and not the method.
const HEAD_REFUSALS: [HarmlessRefusal; 1] = [HarmlessRefusal {
    statuses: &[400, 405, 501],
    contains: "",
    meaning: "the server takes no request of that method at this path, as many do",
}];
/// Loki answers so when it has let the client in and found no streams.
const LOKI_REFUSALS: [HarmlessRefusal; 1] = [HarmlessRefusal {
    statuses: &[400, 422],
    contains: "stream",
    meaning: "Loki let the gateway in, and found no streams in the request",
}];
/// Splunk looks at the token first.
const SPLUNK_REFUSALS: [HarmlessRefusal; 2] = [
    HarmlessRefusal {
        statuses: &[400],
        contains: "No data",
        meaning: "Splunk knows the token, and found no events in the request",
    },
    HarmlessRefusal {
        statuses: &[400],
        contains: "Data channel is missing",
        meaning: "Splunk knows the token, which wants indexer acknowledgement",
    },
];

impl endpoints::Peer for Peer {
    fn uri(&self) -> &Uri {
        let [(_, uri), ..] = &self.uris;
        uri
    }

    fn hang_up(&self) {
        self.client.hang_up();
    }

    async fn close(&self) {
        self.client.close().await;
    }
}
