//! The HTTP client of the network sinks: connections to one endpoint, which live no longer than their owner.
//!
//! Over HTTP/1.1 there are as many connections as requests in flight; over HTTP/2 there is one.

mod burst;
mod proxy;
pub(crate) mod redirect;

use super::EndpointError;
use crate::secrets::Shown;
use crate::tls::{Stamps, Tls, TlsError};
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::PROXY_AUTHORIZATION;
use hyper::rt::Executor;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioTimer;
pub(crate) use proxy::proxy_of;
use proxy::{ForwardProxy, ProxyConnector, ProxyRules};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The receive window of an HTTP/2 connection: responses are short.
const H2_WINDOW: u32 = 65_535;
/// The longest list of headers that is accepted.
pub(crate) const MAX_HEADER_LIST: u32 = 16 << 10;
/// The send buffer of an HTTP/2 connection. The bytes are not copied into it.
const H2_SEND_BUFFER: usize = 256 << 10;
/// The memory of an HTTP/2 connection besides its window: frames being written, header tables, streams.
const H2_CONNECTION_BYTES: usize = 96 << 10;
/// A TLS session with its buffers.
const TLS_SESSION_BYTES: usize = 64 << 10;
/// The roots that TLS trusts: each endpoint has its own, which it reads again when their file changes.
pub(crate) const ROOT_STORE_BYTES: usize = 2 << 20;
/// How long an idle connection is kept.
const IDLE_TIMEOUT: Duration = Duration::from_secs(60);
/// How often files of TLS settings are looked at, while connections can be made.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The version of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Version {
    Http1,
    /// Known to be spoken, or agreed on by TLS.
    Http2,
}

/// How an endpoint is connected to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ClientSettings<'a> {
    pub(crate) tls: &'a Tls,
    pub(crate) version: Version,
    /// The most requests in flight.
    pub(crate) max_in_flight: usize,
    /// The most that a connection over HTTP/1.1 buffers in each direction: heads of requests, and responses.
    pub(crate) buffer: usize,
    /// How long a connection may take to be made, and a response to arrive.
    pub(crate) timeout: Duration,
}

impl ClientSettings<'_> {
    /// The memory of a sink's connections to these endpoints, in bytes: with their buffers and TLS sessions.
    pub(crate) fn bytes(&self, endpoints: &[Uri]) -> usize {
        let (connections, each) = match self.version {
            // One for each endpoint, and one that is being given up.
            Version::Http2 => (2 * endpoints.len(), H2_WINDOW as usize + H2_CONNECTION_BYTES),
            // As many as are in flight, and as many idle ones at each endpoint.
            Version::Http1 => ((endpoints.len() + 1) * self.max_in_flight, 2 * self.buffer),
        };
        let secure = endpoints.iter().filter(|uri| uri.scheme_str() == Some("https")).count();
        let tls = if secure > 0 { TLS_SESSION_BYTES } else { 0 };
        connections * (each + tls) + secure * ROOT_STORE_BYTES
    }
}

/// The client of one endpoint.
pub(crate) struct Client {
    timeout: Duration,
    state: Mutex<ClientState>,
}

struct ClientState {
    dialer: Dialer,
    /// Exchanged for new ones when a response does not come: the path may be dead.
    connections: Arc<Connections>,
    /// The files of the TLS settings, where there are any.
    watched: Option<WatchedFiles>,
}

/// Files that are read again when they change.
struct WatchedFiles {
    tls: Tls,
    /// Of what is in use.
    stamps: Stamps,
    /// Of what could not be used, and was said to be so. It is tried again: a file that nobody may read yet looks the same
    /// when it can be read.
    refused: Option<Stamps>,
    looked_at: Instant,
}

/// No response came in time.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
pub(crate) struct TimedOut(pub(crate) Duration);

/// How connections are made.
struct Dialer {
    uri: Uri,
    proxies: ProxyRules,
    connector: Connector,
    version: Version,
    max_idle: usize,
    buffer: usize,
    timeout: Duration,
}

#[derive(Clone)]
enum Connector {
    Plain(ProxyConnector),
    Tls(HttpsConnector<ProxyConnector>),
}

/// Connections to an endpoint, made as they are needed. Dropping them ends them, and what they hold is given back.
pub(crate) struct Connections {
    client: HttpClient,
    /// The proxy that forwards the requests, if there is one.
    forward_proxy: Option<ForwardProxy>,
    tasks: ConnectionTasks,
    /// One could not be made.
    failed: AtomicBool,
}

enum HttpClient {
    Plain(legacy::Client<ProxyConnector, Full<Bytes>>),
    Tls(legacy::Client<HttpsConnector<ProxyConnector>, Full<Bytes>>),
}

impl Client {
    /// A client for the endpoint at `uri`, without connections yet.
    ///
    /// # Errors
    /// When the address or the TLS settings cannot be used.
    pub(crate) fn new(uri: &Uri, settings: ClientSettings<'_>) -> Result<Client, EndpointError> {
        Client::through(uri, settings, ProxyRules::of_process())
    }

    /// The same through these proxies.
    fn through(
        uri: &Uri,
        settings: ClientSettings<'_>,
        proxies: ProxyRules,
    ) -> Result<Client, EndpointError> {
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(EndpointError::Address(uri.clone())),
        };
        // Before the files are read: a change in between is seen as one.
        let stamps = settings.tls.stamps().filter(|_| secure);
        let watched = stamps.map(|stamps| WatchedFiles {
            tls: settings.tls.clone(),
            stamps,
            refused: None,
            looked_at: Instant::now(),
        });
        let dialer = Dialer::new(uri, secure, settings, proxies)?;
        let connections = Arc::new(dialer.connections());
        let state = Mutex::new(ClientState { dialer, connections, watched });
        Ok(Client { timeout: settings.timeout, state })
    }

    /// How long a response may take.
    pub(crate) fn timeout(&self) -> Duration {
        self.timeout
    }

    /// Runs an exchange over the connections, for the timeout at most. After that later requests use other connections.
    pub(crate) async fn exchange<F: Future>(
        &self,
        exchange: impl FnOnce(Arc<Connections>) -> F,
    ) -> Result<F::Output, TimedOut> {
        let connections = self.connections();
        // On the heap: it is the largest part of what a sink waits in.
        let exchange = Box::pin(exchange(Arc::clone(&connections)));
        match tokio::time::timeout(self.timeout, exchange).await {
            Ok(response) => Ok(response),
            Err(_) => {
                let mut state = self.lock();
                if Arc::ptr_eq(&state.connections, &connections) {
                    state.dial_anew();
                }
                Err(TimedOut(self.timeout))
            }
        }
    }

    /// Has later requests use other connections, which ends those that no request waits on.
    pub(crate) fn hang_up(&self) {
        self.lock().dial_anew();
    }

    /// Ends all connections, and waits until what they hold is given back.
    pub(crate) async fn close(&self) {
        let connections = Arc::clone(&self.lock().connections);
        let mut tasks = std::mem::take(&mut *connections.tasks.lock());
        tasks.shutdown().await;
    }

    /// The connections for the next request: new ones where the files of the TLS settings have changed. Requests in flight
    /// end on the old ones.
    fn connections(&self) -> Arc<Connections> {
        let mut state = self.lock();
        let failed = state.connections.failed.swap(false, Relaxed);
        match state.read_changed_files(failed) {
            None => {}
            Some(Ok(())) => {
                tracing::info!(url = %Shown(&state.dialer.uri), "TLS files have changed and are in use")
            }
            Some(Err(error)) => {
                tracing::warn!(url = %Shown(&state.dialer.uri), %error, "TLS files have changed and cannot be used; keeping the old ones");
            }
        }
        Arc::clone(&state.connections)
    }

    fn lock(&self) -> MutexGuard<'_, ClientState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientState {
    fn dial_anew(&mut self) {
        self.connections = Arc::new(self.dialer.connections());
    }

    /// Reads the files of the TLS settings if they have changed: where a connection has failed they may be why, otherwise
    /// they are looked at now and then.
    fn read_changed_files(&mut self, failed: bool) -> Option<Result<(), TlsError>> {
        let watched = self.watched.as_mut()?;
        if !failed && watched.looked_at.elapsed() < FILE_CHECK_INTERVAL {
            return None;
        }
        watched.looked_at = Instant::now();
        let stamps = watched.tls.stamps().filter(|stamps| *stamps != watched.stamps)?;
        match self.dialer.connector_with(&watched.tls, true) {
            Ok(connector) => {
                (watched.stamps, watched.refused) = (stamps, None);
                self.dialer.connector = connector;
                self.dial_anew();
                Some(Ok(()))
            }
            Err(_) if watched.refused.as_ref() == Some(&stamps) => None,
            Err(error) => {
                watched.refused = Some(stamps);
                Some(Err(error))
            }
        }
    }
}

impl Dialer {
    fn new(
        uri: &Uri,
        secure: bool,
        settings: ClientSettings<'_>,
        proxies: ProxyRules,
    ) -> Result<Dialer, TlsError> {
        let ClientSettings { tls, version, max_in_flight, buffer, timeout } = settings;
        let connector = Connector::Plain(ProxyConnector::Direct(tcp(timeout)));
        let uri = uri.clone();
        let mut dialer =
            Dialer { uri, proxies, connector, version, max_idle: max_in_flight, buffer, timeout };
        dialer.connector = dialer.connector_with(tls, secure)?;
        Ok(dialer)
    }

    /// The connector for these TLS settings.
    fn connector_with(&self, tls: &Tls, secure: bool) -> Result<Connector, TlsError> {
        let path = ProxyConnector::to(&self.uri, &self.proxies, self.version, tcp(self.timeout));
        if !secure {
            return Ok(Connector::Plain(path));
        }
        let builder = HttpsConnectorBuilder::new().with_tls_config(tls.config()?).https_only();
        let builder = match tls.name()? {
            Some(name) => builder.with_server_name_resolver(FixedServerNameResolver::new(name)),
            None => builder,
        };
        Ok(Connector::Tls(match self.version {
            Version::Http2 => builder.enable_http2().wrap_connector(path),
            Version::Http1 => builder.enable_http1().wrap_connector(path),
        }))
    }

    fn connections(&self) -> Connections {
        let tasks = ConnectionTasks::default();
        let mut builder = legacy::Client::builder(tasks.clone());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE_TIMEOUT)
            .pool_max_idle_per_host(self.max_idle)
            .http1_max_buf_size(self.buffer)
            .http2_only(self.version == Version::Http2)
            .http2_initial_stream_window_size(H2_WINDOW)
            .http2_initial_connection_window_size(H2_WINDOW)
            .http2_max_header_list_size(MAX_HEADER_LIST)
            .http2_max_send_buf_size(H2_SEND_BUFFER);
        let (client, forward_proxy) = match &self.connector {
            Connector::Plain(connector) => {
                (HttpClient::Plain(builder.build(connector.clone())), connector.forward_proxy().cloned())
            }
            Connector::Tls(connector) => (HttpClient::Tls(builder.build(connector.clone())), None),
        };
        Connections { client, forward_proxy, tasks, failed: AtomicBool::new(false) }
    }
}

/// Makes connections over TCP.
fn tcp(timeout: Duration) -> HttpConnector {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.enforce_http(false);
    tcp.set_connect_timeout(Some(timeout));
    tcp.set_keepalive(Some(IDLE_TIMEOUT));
    tcp
}

impl Connections {
    /// Sends a request; the response comes with its head.
    ///
    /// # Errors
    /// When there is no connection, or it breaks.
    pub(crate) async fn request(
        &self,
        mut request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, RequestError> {
        if let Some(credentials) = self.forward_proxy.as_ref().and_then(|proxy| proxy.credentials.as_ref()) {
            request.headers_mut().insert(PROXY_AUTHORIZATION, credentials.clone());
        }
        let response = match &self.client {
            HttpClient::Plain(client) => client.request(request).await,
            HttpClient::Tls(client) => client.request(request).await,
        };
        let outcome = match response {
            Ok(response) if self.forward_proxy.is_some() && is_of_the_proxy(response.status()) => {
                Err(RequestError::ProxyCredentials)
            }
            Ok(response) => Ok(response),
            Err(error) => Err(RequestError::Connection(error)),
        };
        if outcome.as_ref().is_err_and(RequestError::is_connect) {
            self.failed.store(true, Relaxed);
        }
        outcome
    }

    /// Sends a request, and then `again` where the response says that it is elsewhere on the same host: once.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub(crate) async fn request_following(
        &self,
        request: Request<Full<Bytes>>,
        again: impl FnOnce() -> Option<Request<Full<Bytes>>>,
    ) -> Result<Response<Incoming>, RequestError> {
        let here = request.uri().clone();
        let response = self.request(request).await?;
        let place = redirect::target(response.status(), response.headers(), &here);
        let Some((place, mut again)) = place.and_then(|place| Some((place, again()?))) else {
            return Ok(response);
        };
        // The response itself says nothing more.
        drop(response);
        *again.uri_mut() = place;
        self.request(again).await
    }
}

/// Whether a status comes from the proxy itself: the endpoint has not seen the request.
fn is_of_the_proxy(status: StatusCode) -> bool {
    status == StatusCode::PROXY_AUTHENTICATION_REQUIRED
}

/// There is no response to a request.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RequestError {
    /// There is no connection, or it broke.
    #[error(transparent)]
    Connection(#[from] legacy::Error),
    /// The proxy takes no request with these credentials.
    #[error(
        "the proxy answered 407 Proxy Authentication Required; write its URL in the environment as http://user:password@host:port"
    )]
    ProxyCredentials,
}

impl RequestError {
    /// Whether no connection to the endpoint could be made, so that it has seen nothing of the request.
    pub(crate) fn is_connect(&self) -> bool {
        match self {
            RequestError::Connection(error) => error.is_connect(),
            RequestError::ProxyCredentials => true,
        }
    }
}

impl Drop for Connections {
    fn drop(&mut self) {
        // Each task knows the set that it is in, so the set does not end by itself.
        self.tasks.lock().abort_all();
    }
}

/// The tasks of connections. They end with their owner, not when they like.
#[derive(Clone, Default)]
struct ConnectionTasks(Arc<Mutex<JoinSet<()>>>);

impl ConnectionTasks {
    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> Executor<F> for ConnectionTasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        let mut tasks = self.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(burst::in_bursts(task));
    }
}
