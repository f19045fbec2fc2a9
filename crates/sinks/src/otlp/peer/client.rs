//! The connections to one endpoint, which live no longer than whoever uses them.

use super::gathering;
use crate::otlp::settings::{Settings, Transport};
use crate::tls::TlsError;
use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::rt::Executor;
use hyper::{Request, Response};
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioTimer;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::task::JoinSet;

/// The most that a connection over HTTP/1.1 buffers in each direction: heads of requests, and answers.
pub(in crate::otlp) const BUFFER: usize = 16 << 10;
/// What a connection over HTTP/2 lets the peer send before it is read: answers are short.
pub(in crate::otlp) const WINDOW: u32 = 65_535;
/// The longest list of headers that is taken.
pub(in crate::otlp) const HEADERS: u32 = 16 << 10;
/// What of a body a connection over HTTP/2 counts as being sent. The bytes stay where they are.
const SENDING: usize = 256 << 10;
/// How long an idle connection is kept.
const IDLE: Duration = Duration::from_secs(60);

/// How to reach an endpoint.
pub(super) struct Dial {
    connector: Connector,
    transport: Transport,
    connections: usize,
}

#[derive(Clone)]
enum Connector {
    Plain(HttpConnector),
    Tls(HttpsConnector<HttpConnector>),
}

/// Connections to an endpoint. Dropping it ends them, and what they hold is given back.
pub(super) struct Client {
    client: Either,
    tasks: Tasks,
}

enum Either {
    Plain(legacy::Client<HttpConnector, Full<Bytes>>),
    /// Over HTTP/2.
    Framed(legacy::Client<gathering::Connector, Full<Bytes>>),
    Tls(legacy::Client<HttpsConnector<HttpConnector>, Full<Bytes>>),
}

impl Dial {
    pub(super) fn new(secure: bool, settings: &Settings) -> Result<Dial, TlsError> {
        let mut tcp = HttpConnector::new();
        tcp.set_nodelay(true);
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(settings.timeout));
        tcp.set_keepalive(Some(IDLE));
        let transport = settings.transport;
        let connector = if secure {
            let builder = HttpsConnectorBuilder::new().with_tls_config(settings.tls.config()?).https_only();
            let builder = match settings.tls.name()? {
                Some(name) => builder.with_server_name_resolver(FixedServerNameResolver::new(name)),
                None => builder,
            };
            Connector::Tls(match transport {
                Transport::Grpc => builder.enable_http2().wrap_connector(tcp),
                Transport::Http => builder.enable_http1().wrap_connector(tcp),
            })
        } else {
            Connector::Plain(tcp)
        };
        Ok(Dial { connector, transport, connections: settings.max_in_flight })
    }

    /// A client without connections, which makes them as they are needed.
    pub(super) fn client(&self) -> Client {
        let tasks = Tasks::default();
        let mut builder = legacy::Client::builder(tasks.clone());
        builder
            .timer(TokioTimer::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE)
            .pool_max_idle_per_host(self.connections)
            .http1_max_buf_size(BUFFER)
            .http2_only(self.transport == Transport::Grpc)
            .http2_initial_stream_window_size(WINDOW)
            .http2_initial_connection_window_size(WINDOW)
            .http2_max_header_list_size(HEADERS)
            .http2_max_send_buf_size(SENDING);
        let client = match &self.connector {
            Connector::Plain(connector) => match self.transport {
                Transport::Http => Either::Plain(builder.build(connector.clone())),
                Transport::Grpc => Either::Framed(builder.build(gathering::Connector(connector.clone()))),
            },
            Connector::Tls(connector) => Either::Tls(builder.build(connector.clone())),
        };
        Client { client, tasks }
    }
}

impl Client {
    pub(super) async fn request(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<Response<Incoming>, legacy::Error> {
        match &self.client {
            Either::Plain(client) => client.request(request).await,
            Either::Framed(client) => client.request(request).await,
            Either::Tls(client) => client.request(request).await,
        }
    }
}

impl Client {
    /// Ends all connections, and waits until what they hold is given back.
    pub(super) async fn close(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.0.lock().unwrap_or_else(PoisonError::into_inner));
        tasks.shutdown().await;
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
