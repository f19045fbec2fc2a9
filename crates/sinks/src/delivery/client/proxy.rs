//! Connections to `https` endpoints through a proxy, where the environment names one (`HTTPS_PROXY`, `ALL_PROXY`,
//! `NO_PROXY`, in capitals or not).
//!
//! The proxy gets a `CONNECT` and carries TLS that it cannot read. Endpoints on this machine are reached directly, as in
//! other programs; so are `http` ones, whose requests a proxy would read.

use hyper::Uri;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::TokioIo;
use std::error::Error;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::net::TcpStream;
use tower_service::Service;

/// Makes connections, directly or through a proxy.
#[derive(Clone)]
pub(super) enum ProxyConnector {
    Direct(HttpConnector),
    Proxy(Box<Tunnel<HttpConnector>>),
}

impl ProxyConnector {
    /// The path to the `https` endpoint at `uri`.
    pub(super) fn to(uri: &Uri, proxies: &Matcher, tcp: HttpConnector) -> ProxyConnector {
        let Some(proxy) = proxy_for(uri, proxies) else { return ProxyConnector::Direct(tcp) };
        if !is_supported(&proxy) {
            // Without its credentials, which are in its URL.
            let (proxy, endpoint) = (proxy.uri().scheme_str(), uri.host());
            tracing::warn!(
                proxy,
                endpoint,
                "the environment names a proxy that is none of HTTP; this endpoint is reached directly"
            );
            return ProxyConnector::Direct(tcp);
        }
        let tunnel = Tunnel::new(proxy.uri().clone(), tcp);
        ProxyConnector::Proxy(Box::new(match proxy.basic_auth() {
            Some(credentials) => tunnel.with_auth(credentials.clone()),
            None => tunnel,
        }))
    }
}

/// The proxy for this endpoint, if there is one.
fn proxy_for(uri: &Uri, proxies: &Matcher) -> Option<Intercept> {
    let host = uri.host()?.trim_matches(['[', ']']);
    let is_local = host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    // Requests in the clear would be read by it.
    let is_secret = uri.scheme_str() == Some("https");
    proxies.intercept(uri).filter(|_| is_secret && !is_local)
}

/// Whether a proxy speaks plain HTTP: not SOCKS, nor HTTP over TLS.
fn is_supported(proxy: &Intercept) -> bool {
    proxy.uri().scheme_str() == Some("http")
}

impl Service<Uri> for ProxyConnector {
    type Response = TokioIo<TcpStream>;
    type Error = Box<dyn Error + Send + Sync>;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        match self {
            ProxyConnector::Direct(tcp) => tcp.poll_ready(context).map_err(Into::into),
            ProxyConnector::Proxy(tunnel) => tunnel.poll_ready(context).map_err(Into::into),
        }
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        match self {
            ProxyConnector::Direct(tcp) => {
                let connecting = tcp.call(target);
                Box::pin(async move { connecting.await.map_err(Into::into) })
            }
            ProxyConnector::Proxy(tunnel) => {
                let connecting = tunnel.call(target);
                Box::pin(async move { connecting.await.map_err(Into::into) })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Client, ClientSettings, Version};
    use super::*;
    use crate::tls::Tls;
    use bytes::Bytes;
    use http_body_util::Full;
    use std::time::Duration;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    #[test]
    fn only_requests_to_other_machines_use_the_proxy() {
        let proxies =
            Matcher::builder().https("http://proxy.example:3128").no("inside.example,10.0.0.0/8").build();
        for (uri, is_proxied) in [
            ("https://api.example/v1", true),
            ("https://8.8.8.8:4318", true),
            ("https://inside.example", false),
            ("https://es.inside.example:9200", false),
            ("https://10.1.2.3", false),
            ("https://localhost:4317", false),
            ("https://127.0.0.1:4317", false),
            ("https://[::1]:4317", false),
            ("http://api.example", false),
        ] {
            assert_eq!(proxy_for(&uri.parse().unwrap(), &proxies).is_some(), is_proxied, "{uri}");
        }
        let none = Matcher::builder().build();
        assert!(proxy_for(&"https://api.example".parse().unwrap(), &none).is_none());
        for (proxy, supported) in [
            ("http://proxy.example:3128", true),
            ("https://proxy.example:3129", false),
            ("socks5://proxy.example:1080", false),
        ] {
            let proxies = Matcher::builder().https(proxy).build();
            let proxy = proxy_for(&"https://api.example".parse().unwrap(), &proxies).unwrap();
            assert_eq!(is_supported(&proxy), supported, "{:?}", proxy.uri());
        }
    }

    /// The proxy learns the host and its own credentials, and nothing of the request.
    #[tokio::test]
    async fn a_proxy_is_asked_for_a_tunnel() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = format!("http://user:hunter2@{}", listener.local_addr().unwrap());
        let proxies = Matcher::builder().https(proxy).build();
        let uri: Uri = "https://api.example/v1/logs?key=secret".parse().unwrap();
        let settings = ClientSettings {
            tls: &Tls::default(),
            version: Version::Http1,
            max_in_flight: 1,
            buffer: 16 << 10,
            timeout: Duration::from_secs(20),
        };
        let client = Client::through(&uri, settings, proxies).unwrap();
        let asked = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = Vec::new();
            while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                assert!(stream.read_buf(&mut head).await.unwrap() > 0);
            }
            stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await.unwrap();
            String::from_utf8(head).unwrap()
        };
        let mut request = hyper::Request::new(Full::new(Bytes::from_static(b"body")));
        *request.uri_mut() = uri.clone();
        let exchange =
            client.exchange(|connections| async move { connections.request(request).await.is_err() });
        let (failed, head) = tokio::join!(exchange, asked);
        assert!(failed.unwrap(), "the proxy has refused");
        assert!(head.starts_with("CONNECT api.example:443 HTTP/1.1\r\n"), "{head}");
        assert!(
            head.to_ascii_lowercase().contains("proxy-authorization: basic dxnlcjpodw50zxiy\r\n"),
            "{head}"
        );
        assert!(!head.contains("secret"), "{head}");
    }
}
