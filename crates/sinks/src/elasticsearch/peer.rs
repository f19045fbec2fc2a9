//! One node: requests over its connections, and the answers, read as they come.

use super::answer::{Answer, Reason};
use super::reply::Reader;
use super::settings::Settings;
use crate::delivery::EndpointError;
use crate::endpoints;
use crate::http::{chain, delay};
use crate::secrets::Secrets;
use crate::tenant;
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT,
};
use hyper::rt::Executor;
use hyper::{Method, Request as HttpRequest, Response, Uri};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioTimer;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_journal::Tenant;
use tokio::task::JoinSet;

/// The most that a connection buffers in each direction: heads of requests, and answers.
const BUFFER: usize = 64 << 10;
/// A TLS session with its buffers.
const TLS: usize = 64 << 10;
/// The roots that TLS trusts.
const ROOTS: usize = 2 << 20;
/// How long an idle connection is kept.
const IDLE: Duration = Duration::from_secs(60);
/// The most bytes of an answer: more is taken for none.
const LONGEST: usize = 64 << 20;
/// The most bytes of a refusal that are kept, for people.
const EXCERPT: usize = 512;
/// How many times a request's time there is in that which a node may wait for an index that takes nothing: its own
/// minute would have every request with one such document end without an answer.
const WAITS: u32 = 4;
/// What of an answer is asked for: what is read of it.
const QUERY: &str = "filter_path=errors,items.*.status,items.*.error.type,items.*.error.reason";
const AGENT: &str = concat!("tidegate/", env!("CARGO_PKG_VERSION"));

/// What the connections of a sink take, in bytes: with their buffers and TLS sessions.
pub(super) fn bytes(settings: &Settings) -> usize {
    // As many as are under way, and as many idle ones at each endpoint.
    let connections = (settings.endpoints.len() + 1) * settings.max_in_flight;
    let secure = settings.endpoints.iter().any(|uri| uri.scheme_str() == Some("https"));
    let (tls, roots) = if secure { (TLS, ROOTS) } else { (0, 0) };
    connections * (2 * BUFFER + tls) + roots
}

/// A request as it goes out. Clones are the same bytes.
#[derive(Debug, Clone)]
pub(super) struct Request {
    /// Whose data it is.
    pub(super) tenant: Tenant,
    pub(super) gzip: bool,
    /// Holds the memory that it lives in.
    pub(super) body: Bytes,
    pub(super) items: usize,
}

/// One node.
pub(super) struct Peer {
    uri: Uri,
    headers: HeaderMap,
    secrets: Secrets,
    tenant_header: Option<HeaderName>,
    timeout: Duration,
    connector: Connector,
    connections: usize,
    /// Its connections. Exchanged for new ones when an answer does not come: the way there may be dead.
    client: Mutex<Arc<Client>>,
}

#[derive(Clone)]
enum Connector {
    Plain(HttpConnector),
    Tls(HttpsConnector<HttpConnector>),
}

/// Connections to a node. Dropping it ends them, and what they hold is given back.
struct Client {
    client: Either,
    tasks: Tasks,
}

enum Either {
    Plain(legacy::Client<HttpConnector, Full<Bytes>>),
    Tls(legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

impl Peer {
    /// The node at `uri`.
    pub(super) fn new(uri: &Uri, settings: &Settings) -> Result<Peer, EndpointError> {
        let address = || EndpointError::Address(uri.clone());
        let secure = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(address()),
        };
        let mut parts = uri.clone().into_parts();
        let wait = (settings.timeout / WAITS).as_millis().max(1);
        let path = format!("{}/_bulk?{QUERY}&timeout={wait}ms", uri.path().trim_end_matches('/'));
        parts.path_and_query = Some(path.parse().map_err(|_| address())?);
        let bulk = Uri::from_parts(parts).map_err(|_| address())?;
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(settings.timeout));
        tcp.set_keepalive(Some(IDLE));
        let connector = if secure {
            let builder = HttpsConnectorBuilder::new().with_tls_config(settings.tls.config()?).https_only();
            let builder = match settings.tls.name()? {
                Some(name) => builder.with_server_name_resolver(FixedServerNameResolver::new(name)),
                None => builder,
            };
            Connector::Tls(builder.enable_http1().wrap_connector(tcp))
        } else {
            Connector::Plain(tcp)
        };
        let client = Mutex::new(Arc::new(Client::new(&connector, settings.max_in_flight)));
        Ok(Peer {
            uri: bulk,
            headers: settings.headers.clone(),
            secrets: Secrets::of(uri, &settings.headers),
            tenant_header: settings.tenant_header.clone(),
            timeout: settings.timeout,
            connector,
            connections: settings.max_in_flight,
            client,
        })
    }

    /// Sends a request and reads the answer.
    pub(super) async fn send(&self, request: &Request) -> Answer {
        let client = self.client();
        let head = self.head(request);
        let items = request.items;
        let exchange = async {
            match client.request(head).await {
                Ok(response) => read(response, items).await,
                Err(error) => Answer::lost(chain(&error)),
            }
        };
        // On the heap: it is the largest part of what a sink waits in.
        match tokio::time::timeout(self.timeout, Box::pin(exchange)).await {
            Ok(answer) => answer.masked(&self.secrets),
            Err(_) => {
                self.dial_anew(&client);
                Answer::lost(format!("no answer within {:?}", self.timeout))
            }
        }
    }

    /// Puts `body` at `path`, which stands in the place of `/_bulk`.
    ///
    /// # Errors
    /// What the node said to it, or that it said nothing.
    pub(super) async fn put(&self, path: &str, body: &'static str) -> Result<(), Reason> {
        let unusable = |words: String| Reason { status: None, words };
        let mut parts = self.uri.clone().into_parts();
        let whole = format!("{}{path}", self.uri.path().trim_end_matches("/_bulk"));
        parts.path_and_query = Some(whole.parse().map_err(|_| unusable(format!("{whole} is no path")))?);
        let uri = Uri::from_parts(parts).map_err(|error| unusable(error.to_string()))?;
        let mut request = HttpRequest::new(Full::new(Bytes::from_static(body.as_bytes())));
        *request.method_mut() = Method::PUT;
        *request.uri_mut() = uri;
        request.headers_mut().clone_from(&self.headers);
        request.headers_mut().insert(USER_AGENT, HeaderValue::from_static(AGENT));
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        let client = self.client();
        let exchange = async {
            let response = client.request(request).await.map_err(|error| unusable(chain(&error)))?;
            let status = response.status();
            let mut body = Limited::new(response.into_body(), EXCERPT).frame().await;
            let said =
                body.take().and_then(Result::ok).and_then(|frame| frame.into_data().ok()).unwrap_or_default();
            let words = self.secrets.mask(String::from_utf8_lossy(&said).trim().to_owned());
            if status.is_success() { Ok(()) } else { Err(Reason { status: Some(status), words }) }
        };
        let late = |_| Err(unusable(format!("no answer within {:?}", self.timeout)));
        tokio::time::timeout(self.timeout, Box::pin(exchange)).await.unwrap_or_else(late)
    }

    fn head(&self, request: &Request) -> HttpRequest<Full<Bytes>> {
        let mut head = HttpRequest::new(Full::new(request.body.clone()));
        *head.method_mut() = Method::POST;
        head.uri_mut().clone_from(&self.uri);
        head.headers_mut().clone_from(&self.headers);
        let headers = head.headers_mut();
        tenant::put(self.tenant_header.as_ref(), &request.tenant, headers);
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
        if request.gzip {
            headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        head
    }

    fn client(&self) -> Arc<Client> {
        Arc::clone(&self.client.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Has later requests use other connections than those of `old`, which end with the last request on them.
    fn dial_anew(&self, old: &Arc<Client>) {
        let mut client = self.client.lock().unwrap_or_else(PoisonError::into_inner);
        if Arc::ptr_eq(&client, old) {
            *client = Arc::new(Client::new(&self.connector, self.connections));
        }
    }
}

impl endpoints::Peer for Peer {
    fn uri(&self) -> &Uri {
        &self.uri
    }

    fn hang_up(&self) {
        let client = Arc::new(Client::new(&self.connector, self.connections));
        *self.client.lock().unwrap_or_else(PoisonError::into_inner) = client;
    }

    async fn close(&self) {
        let client = self.client();
        let mut tasks = std::mem::take(&mut *client.tasks.0.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.shutdown().await;
    }
}

impl Client {
    /// A client without connections, which makes them as they are needed.
    fn new(connector: &Connector, connections: usize) -> Client {
        let tasks = Tasks::default();
        let mut builder = legacy::Client::builder(tasks.clone());
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(connections)
            .http1_max_buf_size(BUFFER);
        let client = match connector {
            Connector::Plain(connector) => Either::Plain(builder.build(connector.clone())),
            Connector::Tls(connector) => Either::Tls(builder.build(connector.clone())),
        };
        Client { client, tasks }
    }

    async fn request(&self, request: HttpRequest<Full<Bytes>>) -> Result<Response<Incoming>, legacy::Error> {
        match &self.client {
            Either::Plain(client) => client.request(request).await,
            Either::Tls(client) => client.request(request).await,
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        // Each task knows the set that it is in, so the set does not end by itself.
        self.tasks.0.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}

/// The tasks of connections. They end with their owner, not when they like.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<JoinSet<()>>>);

impl<F> Executor<F> for Tasks
where
    F: Future<Output = ()> + Send + 'static,
{
    fn execute(&self, task: F) {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        while tasks.try_join_next().is_some() {}
        tasks.spawn(task);
    }
}

/// Reads an answer to its end.
async fn read(response: Response<Incoming>, items: usize) -> Answer {
    let (head, mut incoming) = response.into_parts();
    let mut reader = head.status.is_success().then(|| Reader::new(items));
    let (mut excerpt, mut len) = (Vec::new(), 0usize);
    while let Some(frame) = incoming.frame().await {
        let data = match frame {
            Ok(frame) => frame.into_data().unwrap_or_default(),
            Err(error) => return Answer::lost(chain(&error)),
        };
        if let Some(reader) = &mut reader {
            reader.read(&data);
        }
        let wanted = EXCERPT.saturating_sub(excerpt.len()).min(data.len());
        excerpt.extend(data.iter().take(wanted));
        len = len.saturating_add(data.len());
        if len > LONGEST {
            break;
        }
    }
    let words = || String::from_utf8_lossy(&excerpt).trim().to_owned();
    let after = head.headers.get(RETRY_AFTER).and_then(delay);
    match reader {
        None => Answer::of(head.status, words(), after),
        Some(reader) => match reader.finish() {
            Some(reply) => Answer::Taken(reply),
            None => {
                Answer::lost(format!("{} with an answer that is none to a `_bulk`: {}", head.status, words()))
            }
        },
    }
}
