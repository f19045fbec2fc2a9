//! Connections through the proxy that the environment names for an endpoint, as curl and Go programs make them.
//!
//! The proxy gets requests of HTTP/1.1 to an `http` endpoint itself, with the whole URL ("absolute form"). For everything else
//! (TLS, and gRPC without it) it is asked for a tunnel with `CONNECT`. Endpoints on this machine are reached directly.

mod environment;

use super::Version;
use super::burst::BurstSocket;
pub(super) use environment::ProxyRules;
use hyper::Uri;
use hyper::header::HeaderValue;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use hyper_util::client::proxy::matcher::Intercept;
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tower_service::Service;

/// The proxy of the environment for the endpoint at `uri`: the variable that names it, and the proxy, if it is one over plain HTTP.
pub(crate) fn proxy_of(uri: &Uri) -> Option<(&'static str, Option<Intercept>)> {
    let proxy = ProxyRules::of_process().proxy_for(uri)?;
    Some((proxy.variable, proxy.intercept))
}

/// Makes connections to an endpoint, directly or through a proxy.
#[derive(Clone)]
pub(super) enum ProxyConnector {
    Direct(HttpConnector),
    /// To the proxy, which forwards the requests.
    Forward(HttpConnector, Box<ForwardProxy>),
    /// To the endpoint, through the proxy.
    Tunnel(Box<Tunnel<HttpConnector>>),
}

/// A proxy that forwards requests.
#[derive(Clone)]
pub(super) struct ForwardProxy {
    uri: Uri,
    /// The value of `Proxy-Authorization` in each request.
    pub(super) credentials: Option<HeaderValue>,
}

/// A connection.
pub(super) struct ProxyStream {
    stream: TokioIo<TcpStream>,
    burst: BurstSocket,
    /// Whether a proxy reads the requests.
    is_forwarded: bool,
}

impl ProxyConnector {
    /// The path to the endpoint at `uri`, whose requests have this version.
    pub(super) fn to(
        uri: &Uri,
        proxies: &ProxyRules,
        version: Version,
        tcp: HttpConnector,
    ) -> ProxyConnector {
        let Some(proxy) = proxies.proxy_for(uri) else { return ProxyConnector::Direct(tcp) };
        let (variable, endpoint) = (proxy.variable, uri.host());
        let Some(intercept) = proxy.intercept else {
            // Its URL may have a password.
            tracing::warn!(
                variable,
                endpoint,
                "the environment names a proxy that is not of the form http://host:port; this endpoint is reached directly"
            );
            return ProxyConnector::Direct(tcp);
        };
        tracing::info!(variable, endpoint, "this endpoint is reached through the proxy of the environment");
        let (uri_of_proxy, credentials) = (intercept.uri().clone(), intercept.basic_auth().cloned());
        if uri.scheme_str() == Some("http") && version == Version::Http1 {
            return ProxyConnector::Forward(tcp, Box::new(ForwardProxy { uri: uri_of_proxy, credentials }));
        }
        let tunnel = Tunnel::new(uri_of_proxy, tcp);
        ProxyConnector::Tunnel(Box::new(match credentials {
            Some(credentials) => tunnel.with_auth(credentials),
            None => tunnel,
        }))
    }

    /// The proxy that forwards the requests, if there is one.
    pub(super) fn forward_proxy(&self) -> Option<&ForwardProxy> {
        match self {
            ProxyConnector::Forward(_, proxy) => Some(proxy),
            ProxyConnector::Direct(_) | ProxyConnector::Tunnel(_) => None,
        }
    }
}

impl Service<Uri> for ProxyConnector {
    type Response = ProxyStream;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        match self {
            ProxyConnector::Direct(tcp) | ProxyConnector::Forward(tcp, _) => {
                tcp.poll_ready(context).map_err(Into::into)
            }
            ProxyConnector::Tunnel(tunnel) => tunnel.poll_ready(context).map_err(Into::into),
        }
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        match self {
            ProxyConnector::Direct(tcp) => {
                let connecting = tcp.call(target);
                Box::pin(async move { Ok(ProxyStream::new(connecting.await?, false)) })
            }
            ProxyConnector::Forward(tcp, proxy) => {
                let connecting = tcp.call(proxy.uri.clone());
                Box::pin(async move { Ok(ProxyStream::new(connecting.await?, true)) })
            }
            ProxyConnector::Tunnel(tunnel) => {
                let connecting = tunnel.call(with_port(target));
                Box::pin(async move { Ok(ProxyStream::new(connecting.await?, false)) })
            }
        }
    }
}

impl ProxyStream {
    fn new(stream: TokioIo<TcpStream>, is_forwarded: bool) -> ProxyStream {
        let burst = BurstSocket::of(stream.inner());
        ProxyStream { stream, burst, is_forwarded }
    }
}

/// The same endpoint with its port: a tunnel takes 443 for what is missing.
fn with_port(uri: Uri) -> Uri {
    let (None, Some("http"), Some(host)) = (uri.port(), uri.scheme_str(), uri.host()) else { return uri };
    let authority = format!("{host}:80").parse();
    let mut parts = uri.clone().into_parts();
    parts.authority = authority.ok();
    Uri::from_parts(parts).unwrap_or(uri)
}

impl Connection for ProxyStream {
    fn connected(&self) -> Connected {
        self.stream.connected().proxy(self.is_forwarded)
    }
}

impl Read for ProxyStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for ProxyStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.burst.writes(bytes.len());
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.burst.writes(slices.iter().map(|slice| slice.len()).sum());
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }
}

#[cfg(test)]
mod tests;
