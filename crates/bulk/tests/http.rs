//! The transport against servers on the loopback.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::HeaderValue;
use hyper::service::service_fn;
use hyper::{Request, Response, Uri};
use hyper_util::rt::TokioIo;
use std::cell::Cell;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tidegate_arena::{Arena, Floors, Share};
use tidegate_bulk::http::{ConnectionSettings, InvalidNodes, Nodes};
use tidegate_bulk::{Bulk, FailureKind, Settings, Target};
use tokio::io::AsyncReadExt;
use tokio::net::TcpListener;

const MIB: usize = 1 << 20;

/// A request as the server saw it: the path, the authorization, and the body.
type Seen = Arc<Mutex<Vec<(String, String, Vec<u8>)>>>;

async fn listener() -> (TcpListener, Uri) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/prefix/", listener.local_addr().unwrap()).parse().unwrap();
    (listener, uri)
}

/// Answers every item of a `_bulk` with 201, and after `refusals` requests with 429.
async fn serve(listener: TcpListener, seen: Seen, refusals: usize) {
    let refusals = Cell::new(refusals);
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let service = service_fn(|request: Request<Incoming>| {
            let refused = refusals.replace(refusals.get().saturating_sub(1)) > 0;
            let seen = Arc::clone(&seen);
            async move {
                let path = request.uri().to_string();
                let authorization =
                    request.headers().get("authorization").map(|value| value.to_str().unwrap().to_owned());
                let body = request.into_body().collect().await.unwrap().to_bytes();
                let items = body.split(|byte| *byte == b'\n').count() / 2;
                seen.lock().unwrap().push((path, authorization.unwrap_or_default(), body.to_vec()));
                let item = "{\"index\":{\"status\":201,\"_version\":1}}";
                let text = format!("{{\"items\":[{}]}}", vec![item; items].join(","));
                let response =
                    Response::builder().status(if refused { 429 } else { 200 }).header("retry-after", "1");
                Ok::<_, Infallible>(response.body(Full::new(Bytes::from(text))).unwrap())
            }
        });
        let connection =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
        let _ = connection.await;
    }
}

/// Runs `test` while an engine is driven against `nodes`.
async fn driven(nodes: Vec<Uri>, test: impl AsyncFnOnce(&Bulk)) {
    let reach = ConnectionSettings {
        authorization: Some(HeaderValue::from_static("ApiKey a2V5")),
        ..ConnectionSettings::default()
    };
    let nodes = Nodes::new(&nodes, reach).unwrap();
    let arena = Arena::new(16 << 20, Floors::NONE, 4 * MIB, 64, 16).unwrap();
    let (bulk, driver) = Bulk::new(Settings::new(Share::Forward, 16 << 20), arena.clone());
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let test = async {
        test(&bulk).await;
        drop(stop);
    };
    futures_util::future::join(test, driver.run(&nodes, async move { drop(stopped.await) })).await;
    assert!(arena.usage().shares.iter().all(|share| share.used == 0));
}

/// A request arrives whole at its path with the key, also when it is large; connections are kept; what was refused
/// whole is sent again when the server asks for it.
#[tokio::test]
async fn items_go_out_and_answers_come_back() {
    let (listener, uri) = listener().await;
    let seen = Seen::default();
    let server = serve(listener, Arc::clone(&seen), 1);
    let test = driven(vec![uri], async |bulk| {
        let body = format!("{{\"a\":\"{}\"}}", "x".repeat(2 * MIB));
        assert_eq!(
            bulk.index(Target::new("i", "large"), body.as_bytes()).unwrap().await.unwrap().status,
            201
        );
        for id in 0..5 {
            let answer = bulk.index(Target::new("i", &id.to_string()), b"{}").unwrap().await;
            assert_eq!(answer.unwrap().version, 1);
        }
    });
    tokio::select! { () = test => {}, () = server => {} }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 7, "the first was refused");
    for (path, authorization, body) in seen.iter() {
        assert!(path.starts_with("/prefix/_bulk?filter_path="), "{path}");
        assert!(!path.contains(char::is_whitespace));
        assert_eq!(authorization, "ApiKey a2V5");
        assert_eq!(body.last(), Some(&b'\n'));
    }
    assert!(seen[0].2.len() > 2 * MIB && seen[0].2 == seen[1].2);
}

/// A node that cannot be reached costs nothing but a look at it.
#[tokio::test]
async fn an_unreachable_nodes_requests_go_to_another() {
    let (gone, nowhere) = listener().await;
    drop(gone);
    let (listener, uri) = listener().await;
    let seen = Seen::default();
    let server = serve(listener, Arc::clone(&seen), 0);
    let test = driven(vec![nowhere, uri], async |bulk| {
        for id in 0..4 {
            assert!(bulk.index(Target::new("i", &id.to_string()), b"{}").unwrap().await.is_ok());
        }
    });
    tokio::select! { () = test => {}, () = server => {} }
    assert_eq!(seen.lock().unwrap().len(), 4);
}

/// A connection that ends before the answer leaves writes unanswered, and does not send them twice.
#[tokio::test]
async fn a_broken_connection_is_no_reason_to_write_twice() {
    let (listener, uri) = listener().await;
    let mut accepted = 0;
    let server = async {
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            accepted += 1;
            let _ = stream.read(&mut [0; 1000]).await;
        }
    };
    let test = driven(vec![uri], async |bulk| {
        let failure = bulk.index(Target::new("i", "1"), b"{}").unwrap().await.unwrap_err();
        assert_eq!(failure.kind, FailureKind::Unanswered);
        assert!(failure.reason.is_some());
    });
    tokio::select! { () = test => {}, () = server => {} }
    assert_eq!(accepted, 1);
}

/// Addresses that cannot be used are refused with what to write instead.
#[test]
fn nodes_are_addresses() {
    let refused = |node: &str| {
        Nodes::new(&[node.parse().unwrap()], ConnectionSettings::default()).err().unwrap().to_string()
    };
    assert!(matches!(Nodes::new(&[], ConnectionSettings::default()), Err(InvalidNodes::NoNode)));
    assert!(refused("/only/a/path").contains("write http://host:9200"));
    assert!(refused("ftp://host").contains("write http://host:9200"));
}
