use super::super::{Client, ClientSettings, RequestError, Version};
use super::*;
use crate::tls::Tls;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Request, StatusCode};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A client of the endpoint at `uri`, whose proxy is `listener`.
fn client(uri: &Uri, version: Version, listener: &TcpListener) -> Client {
    let proxy = format!("http://user:hunter2@{}", listener.local_addr().unwrap());
    let proxies = ProxyRules::of(|name| (name == "all_proxy").then(|| proxy.clone()));
    let settings = ClientSettings {
        tls: &Tls::default(),
        version,
        max_in_flight: 1,
        buffer: 16 << 10,
        timeout: Duration::from_secs(20),
    };
    Client::through(uri, settings, proxies).unwrap()
}

async fn post(client: &Client, uri: &Uri) -> Result<(StatusCode, Bytes), RequestError> {
    let mut request = Request::new(Full::new(Bytes::from_static(b"body")));
    *request.method_mut() = hyper::Method::POST;
    *request.uri_mut() = uri.clone();
    let exchange = client.exchange(|connections| async move {
        let response = connections.request(request).await?;
        let status = response.status();
        Ok((status, response.into_body().collect().await.unwrap().to_bytes()))
    });
    exchange.await.unwrap()
}

/// The first request head that the proxy receives, and its connection.
async fn head(listener: &TcpListener) -> (String, TcpStream) {
    let (mut stream, _) = listener.accept().await.unwrap();
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        assert!(stream.read_buf(&mut head).await.unwrap() > 0);
    }
    (String::from_utf8(head).unwrap().to_ascii_lowercase(), stream)
}

const CREDENTIALS: &str = "proxy-authorization: basic dxnlcjpodw50zxiy\r\n";

/// The proxy learns the host and its own credentials, and nothing of the request.
#[tokio::test]
async fn a_proxy_is_asked_for_a_tunnel() {
    for (uri, version, target) in [
        ("https://api.example/v1/logs?key=secret", Version::Http1, "api.example:443"),
        ("https://api.example:8443/?key=secret", Version::Http2, "api.example:8443"),
        ("http://api.example/Service/Method?key=secret", Version::Http2, "api.example:80"),
        ("http://api.example:4317/Service/Method?key=secret", Version::Http2, "api.example:4317"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri: Uri = uri.parse().unwrap();
        let client = client(&uri, version, &listener);
        let asked = async {
            let (head, mut stream) = head(&listener).await;
            stream.write_all(b"HTTP/1.1 403 Forbidden\r\n\r\n").await.unwrap();
            head
        };
        let (answer, head) = tokio::join!(post(&client, &uri), asked);
        assert!(answer.is_err(), "the proxy has refused");
        assert!(head.starts_with(&format!("connect {target} http/1.1\r\n")), "{head}");
        assert!(head.contains(CREDENTIALS), "{head}");
        assert!(!head.contains("secret"), "{head}");
    }
}

#[tokio::test]
async fn requests_in_the_clear_go_to_the_proxy_in_absolute_form() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri: Uri = "http://api.example:9090/api/v1/write?key=1".parse().unwrap();
    let client = client(&uri, Version::Http1, &listener);
    let asked = async {
        let (head, mut stream) = head(&listener).await;
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nfine").await.unwrap();
        (head, stream)
    };
    let (answer, (head, _stream)) = tokio::join!(post(&client, &uri), asked);
    assert_eq!(answer.unwrap(), (StatusCode::OK, Bytes::from_static(b"fine")));
    assert!(head.starts_with("post http://api.example:9090/api/v1/write?key=1 http/1.1\r\n"), "{head}");
    assert!(head.contains("host: api.example:9090\r\n"), "{head}");
    assert!(head.contains(CREDENTIALS), "{head}");
}

/// 407 is the proxy's, and nothing has reached the endpoint: it must not count as a refusal of what was sent.
#[tokio::test]
async fn a_proxy_that_wants_other_credentials_counts_as_no_connection() {
    for version in [Version::Http1, Version::Http2] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let uri: Uri = "http://api.example/in".parse().unwrap();
        let client = client(&uri, version, &listener);
        let refuses = async {
            let (_, mut stream) = head(&listener).await;
            let answer = b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n";
            stream.write_all(answer).await.unwrap();
            stream
        };
        let (answer, _stream) = tokio::join!(post(&client, &uri), refuses);
        let error = answer.unwrap_err();
        assert!(error.is_connect(), "{error}");
        assert!(crate::http_peer::chain(&error).contains("proxy"), "{error}");
    }
}

/// An endpoint's own 407 stays its own.
#[tokio::test]
async fn a_407_without_a_proxy_is_an_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri: Uri = format!("http://{}/in", listener.local_addr().unwrap()).parse().unwrap();
    let client = client(&uri, Version::Http1, &listener);
    let refuses = async {
        let (head, mut stream) = head(&listener).await;
        stream.write_all(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        (head, stream)
    };
    let (answer, (head, _stream)) = tokio::join!(post(&client, &uri), refuses);
    assert_eq!(answer.unwrap().0, StatusCode::PROXY_AUTHENTICATION_REQUIRED);
    assert!(head.starts_with("post /in http/1.1\r\n") && !head.contains("proxy-authorization"), "{head}");
}
