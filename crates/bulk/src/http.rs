//! The transport over HTTP/1.1: several nodes of one cluster, idle connections, TLS, and an API key.
//!
//! Requests go to the healthy nodes in turn. A node that cannot be reached backs off, and the request goes to
//! the next one, since nothing of it was sent. Other failures are returned to the engine.

mod health;

use crate::transport::{Transport, TransportError, TransportRequest, TransportResponse};
use bytes::Bytes;
use health::NodeHealth;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use hyper::rt::Executor;
use hyper::{Method, Response, Uri};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioTimer;
use rustls::{ClientConfig, RootCertStore};
use std::error::Error;
use std::future::Future;
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};
use tokio::task::JoinSet;

/// The most bytes of an answer's text that are kept.
const EXCERPT: usize = 512;
/// The most that one connection buffers in each direction.
const CONNECTION_BUFFER: usize = 64 << 10;
/// How long an idle connection is kept open.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);

/// The nodes of a cluster.
pub struct Nodes {
    client: legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>,
    connections: Connections,
    nodes: Vec<Node>,
    health: NodeHealth,
    authorization: Option<HeaderValue>,
}

/// How to connect to the nodes.
#[derive(Debug, Clone)]
pub struct ConnectionSettings {
    /// Goes with every request: `ApiKey …` or `Basic …`.
    pub authorization: Option<HeaderValue>,
    /// For nodes with `https`; the system's certificates where there is none.
    pub tls: Option<ClientConfig>,
    /// How long connecting may take.
    pub connect_timeout: Duration,
    /// How many connections without a request are kept for each node.
    pub max_idle_per_node: usize,
}

impl Default for ConnectionSettings {
    fn default() -> ConnectionSettings {
        ConnectionSettings {
            authorization: None,
            tls: None,
            connect_timeout: Duration::from_secs(5),
            max_idle_per_node: 4,
        }
    }
}

/// The nodes cannot be used as they are named.
#[derive(Debug, thiserror::Error)]
pub enum InvalidNodes {
    /// There is none.
    #[error("preparing to send to Elasticsearch: no node is named; name at least one, as http://host:9200")]
    NoNode,
    /// It is no URL.
    #[error(
        "preparing to send to {node}: it is no address of a node; write http://host:9200 or https://host:9200"
    )]
    InvalidUrl {
        /// The configured names.
        node: Uri,
    },
    /// There are no certificates to check its own against.
    #[error("preparing TLS: the system's root certificates cannot be read: {0}")]
    RootCertificates(std::io::Error),
}

struct Node {
    scheme: hyper::http::uri::Scheme,
    authority: hyper::http::uri::Authority,
    /// The prefix of each path, without a slash at its end.
    prefix: String,
}

impl Nodes {
    /// The cluster at `nodes`.
    ///
    /// # Errors
    /// When a node is no URL, or TLS cannot be prepared.
    pub fn new(nodes: &[Uri], reach: ConnectionSettings) -> Result<Nodes, InvalidNodes> {
        let nodes = nodes.iter().map(Node::of).collect::<Result<Vec<_>, _>>()?;
        if nodes.is_empty() {
            return Err(InvalidNodes::NoNode);
        }
        let tls = nodes.iter().any(|node| node.scheme == hyper::http::uri::Scheme::HTTPS);
        let config = match reach.tls {
            Some(config) => config,
            None => roots(tls)?,
        };
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.enforce_http(false);
        connector.set_connect_timeout(Some(reach.connect_timeout));
        let connector = HttpsConnectorBuilder::new()
            .with_tls_config(config)
            .https_or_http()
            .enable_http1()
            .wrap_connector(connector);
        let connections = Connections::default();
        let client = legacy::Client::builder(connections.clone())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(reach.max_idle_per_node)
            // A request that a kept connection took with it to its end is the engine's to judge.
            .retry_canceled_requests(false)
            .http1_max_buf_size(CONNECTION_BUFFER)
            .build(connector);
        let authorization = reach.authorization.map(|mut value| {
            value.set_sensitive(true);
            value
        });
        let health = NodeHealth::new(nodes.len());
        Ok(Nodes { client, connections, nodes, health, authorization })
    }

    fn request(&self, node: &Node, request: &TransportRequest) -> Option<hyper::Request<Full<Bytes>>> {
        let uri = Uri::builder()
            .scheme(node.scheme.clone())
            .authority(node.authority.clone())
            .path_and_query(format!("{}{}", node.prefix, request.path))
            .build()
            .ok()?;
        let mut sent = hyper::Request::new(Full::new(Bytes::from_owner(request.body.clone())));
        *sent.method_mut() = Method::POST;
        *sent.uri_mut() = uri;
        let headers = sent.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(request.content_type));
        if let Some(authorization) = &self.authorization {
            headers.insert(AUTHORIZATION, authorization.clone());
        }
        Some(sent)
    }
}

impl Transport for Nodes {
    async fn send(
        &self,
        request: TransportRequest,
        on_chunk: &mut (dyn FnMut(&[u8]) -> ControlFlow<()> + Send),
    ) -> Result<TransportResponse, TransportError> {
        let mut message = String::new();
        for place in self.health.order() {
            let Some(node) = self.nodes.get(place) else { continue };
            let Some(sent) = self.request(node, &request) else { continue };
            // On the heap: it is the largest part of a request in flight.
            match Box::pin(self.client.request(sent)).await {
                Ok(response) => {
                    self.health.record_success(place);
                    drop(request);
                    return Box::pin(read(response, on_chunk)).await;
                }
                Err(error) if error.is_connect() => {
                    self.health.record_failure(place);
                    message = format!("{}: {}", node.authority, chain(&error));
                }
                Err(error) => return Err(TransportError::Broken(chain(&error))),
            }
        }
        Err(TransportError::NotSent(message))
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        self.connections.tasks().abort_all();
    }
}

impl Node {
    fn of(uri: &Uri) -> Result<Node, InvalidNodes> {
        let (Some(scheme), Some(authority)) = (uri.scheme(), uri.authority()) else {
            return Err(InvalidNodes::InvalidUrl { node: uri.clone() });
        };
        if !matches!(scheme.as_str(), "http" | "https") {
            return Err(InvalidNodes::InvalidUrl { node: uri.clone() });
        }
        let prefix = uri.path().trim_end_matches('/').to_owned();
        Ok(Node { scheme: scheme.clone(), authority: authority.clone(), prefix })
    }
}

fn roots(needed: bool) -> Result<ClientConfig, InvalidNodes> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| InvalidNodes::RootCertificates(std::io::Error::other(error)))?;
    let builder = if needed {
        builder.with_native_roots().map_err(InvalidNodes::RootCertificates)?
    } else {
        builder.with_root_certificates(RootCertStore::empty())
    };
    Ok(builder.with_no_client_auth())
}

async fn read(
    response: Response<Incoming>,
    on_chunk: &mut (dyn FnMut(&[u8]) -> ControlFlow<()> + Send),
) -> Result<TransportResponse, TransportError> {
    let (head, mut body) = response.into_parts();
    let status = head.status.as_u16();
    let mut excerpt = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| TransportError::Broken(chain(&error)))?;
        let Some(data) = frame.data_ref() else { continue };
        if status == 200 {
            if on_chunk(data).is_break() {
                // Dropping the body ends the connection: cheaper than reading on.
                break;
            }
        } else {
            let wanted = EXCERPT.saturating_sub(excerpt.len());
            excerpt.extend(data.iter().take(wanted));
            if excerpt.len() >= EXCERPT {
                break;
            }
        }
    }
    let retry_after = head.headers.get(RETRY_AFTER).and_then(delay);
    let excerpt = String::from_utf8_lossy(&excerpt).trim().to_owned();
    Ok(TransportResponse { status, retry_after, excerpt })
}

/// `Retry-After` in seconds or as a date, RFC 9110 section 10.2.3; at most an hour is believed.
fn delay(value: &HeaderValue) -> Option<Duration> {
    let text = value.to_str().ok()?.trim();
    let delay = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(SystemTime::now()).unwrap_or_default(),
    };
    Some(delay.min(Duration::from_secs(3600)))
}

/// An error with its causes: the last one usually says what is wrong.
fn chain(error: &dyn Error) -> String {
    let (mut message, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        message = format!("{message}: {error}");
        cause = error.source();
    }
    message
}

/// The tasks that serve the connections: at most a few for each request in flight.
#[derive(Clone, Default)]
struct Connections(Arc<Mutex<JoinSet<()>>>);

impl Connections {
    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Connections {
    fn execute(&self, task: F) {
        let mut tasks = self.tasks();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}
