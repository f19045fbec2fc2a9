//! Promises: the protocol's headers win; an answer of any size and shape is bounded; a peer that says when to
//! return is understood.

#![allow(clippy::large_futures, reason = "tests")]

use super::*;
use hyper::header::CONTENT_TYPE;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// Posts to a peer that answers `answer` and closes; what came of it, and what the peer was sent.
async fn post(answer: &[u8], own: &[(&'static str, &'static str)]) -> (Result<HttpAnswer, NoAnswer>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri: Uri = format!("http://{}/write?x=1", listener.local_addr().unwrap()).parse().unwrap();
    let mut headers = HeaderMap::new();
    for (name, value) in own {
        headers.insert(*name, HeaderValue::from_static(value));
    }
    let peer = HttpPeer::new(uri, headers, &Tls::default(), Duration::from_secs(5), 1).unwrap();
    let protocol = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/x-protobuf"))]);
    let serve = async {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = Vec::new();
        while !request.ends_with(b"body") {
            assert!(stream.read_buf(&mut request).await.unwrap() > 0);
        }
        // A client that has read enough closes before all is written.
        let _closed = stream.write_all(answer).await;
        String::from_utf8(request).unwrap()
    };
    tokio::join!(peer.post(&protocol, Bytes::from_static(b"body")), serve)
}

#[tokio::test]
async fn the_protocols_headers_win_over_the_users() {
    let own = [("content-type", "text/plain"), ("authorization", "Bearer secret")];
    let (answer, request) = post(b"HTTP/1.1 204 No Content\r\n\r\n", &own).await;
    assert_eq!(answer.unwrap().status, 204);
    assert!(request.starts_with("POST /write?x=1 HTTP/1.1\r\n"), "{request}");
    assert!(request.contains("content-type: application/x-protobuf\r\n"), "{request}");
    assert!(request.contains("authorization: Bearer secret\r\n"), "{request}");
    assert!(!request.contains("text/plain"), "{request}");
}

#[tokio::test]
async fn of_a_long_answer_the_beginning_is_kept() {
    let mut long = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 10000000\r\n\r\n out of bounds".to_vec();
    long.resize(10_000_000, b'x');
    let (answer, _) = post(&long, &[]).await;
    let answer = answer.unwrap();
    assert_eq!(answer.status, 400);
    assert!(answer.excerpt.starts_with("out of bounds"));
    assert!(answer.excerpt.len() <= EXCERPT);
}

#[tokio::test]
async fn an_invalid_response_is_a_connection_error() {
    for nonsense in [&b""[..], b"SSH-2.0\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc"] {
        assert!(matches!(post(nonsense, &[]).await.0, Err(NoAnswer::Connection(_))));
    }
}

#[test]
fn retry_after_is_seconds_or_a_date_and_at_most_an_hour() {
    let delay = |text: &str| delay(&HeaderValue::from_str(text).unwrap());
    assert_eq!(delay("7"), Some(Duration::from_secs(7)));
    assert_eq!(delay("0"), Some(Duration::ZERO));
    assert_eq!(delay("86400"), Some(Duration::from_secs(3600)));
    let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(90));
    assert!((85..=90).contains(&delay(&soon).unwrap().as_secs()));
    assert_eq!(delay("Sun, 06 Nov 1994 08:49:37 GMT"), Some(Duration::ZERO), "long ago");
    for nonsense in ["", "soon", "-1", "1.5", "99999999999999999999999"] {
        assert_eq!(delay(nonsense), None, "{nonsense}");
    }
}

/// A redirect to another host is not followed; the answer names the host.
#[tokio::test]
async fn a_redirection_elsewhere_names_the_place() {
    let moved =
        b"HTTP/1.1 307 Temporary Redirect\r\nlocation: http://other/write\r\ncontent-length: 0\r\n\r\n";
    let answer = post(moved, &[]).await.0.unwrap();
    assert_eq!(answer.status, 307);
    assert!(answer.excerpt.starts_with("it is at http://other/write, "), "{}", answer.excerpt);
}
