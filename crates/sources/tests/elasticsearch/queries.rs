//! Requests that clients make before they send, answered so that they proceed.

use crate::client::raw;
use crate::rig::Rig;
use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn asked(method: &str, path: &str) -> (u16, String) {
    let rig = Rig::new();
    let request =
        format!("{method} /elasticsearch{path} HTTP/1.1\r\nHost: gate:9200\r\nContent-Length: 2\r\n\r\n{{}}");
    let request = if matches!(method, "GET" | "HEAD") {
        format!("{method} /elasticsearch{path} HTTP/1.1\r\nHost: gate:9200\r\nConnection: close\r\n\r\n")
    } else {
        request
    };
    let answer = rig.serve(async |address| raw(address, request.as_bytes()).await).await;
    assert_eq!(answer.header("x-elastic-product"), Some("Elasticsearch"), "{method} {path}");
    assert_eq!(rig.books_of("elasticsearch").received, 1, "{method} {path}");
    (answer.status, answer.text())
}

/// All that comes until the connection is closed.
async fn whole(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

async fn json(path: &str) -> Value {
    let (status, text) = asked("GET", path).await;
    assert_eq!(status, 200, "{path}: {text}");
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}: {text}"))
}

/// Each client finds what it looks for: who this is, a licence, a healthy cluster of one node, templates that are
/// there already.
#[tokio::test]
async fn clients_find_the_cluster_they_expect() {
    let about = json("").await;
    assert_eq!(about["version"]["number"], "8.19.0");
    assert_eq!(about["version"]["build_flavor"], "default");
    assert_eq!(about["tagline"], "You Know, for Search");
    assert_eq!(json("/").await, about);
    assert_eq!(json("/_license?human=false").await["license"]["status"], "active");
    assert_eq!(json("/_xpack").await["features"]["ilm"]["enabled"], true);
    assert_eq!(json("/_cluster/health").await["status"], "green");
    assert_eq!(json("/_cat/indices?format=json").await, serde_json::json!([]));
    let nodes = json("/_nodes/_all/http").await;
    assert_eq!(nodes["nodes"]["tidegate"]["http"]["publish_address"], "gate:9200");
    for path in [
        "/_index_template/filebeat-9.0",
        "/_ilm/policy/x",
        "/_ingest/pipeline/y",
        "/_data_stream/z",
        "/_alias/a",
    ] {
        assert!(json(path).await.is_object(), "{path}");
    }
}

/// Existence checks and setup requests succeed, so that clients proceed.
#[tokio::test]
async fn setup_requests_are_acknowledged() {
    for path in ["/", "/logs", "/_index_template/x", "/_template/x", "/_alias/x"] {
        let rig = Rig::new();
        let request = format!("HEAD /elasticsearch{path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let answer = rig.serve(async |address| whole(address, &request).await).await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{path}: {answer}");
        assert!(answer.ends_with("\r\n\r\n"), "{path}: {answer}");
    }
    for (method, path) in [
        ("PUT", "/_index_template/x"),
        ("PUT", "/_ilm/policy/x"),
        ("PUT", "/_component_template/x"),
        ("PUT", "/_ingest/pipeline/x"),
        ("PUT", "/_data_stream/x"),
        ("PUT", "/_cluster/settings"),
        ("POST", "/_aliases"),
        ("DELETE", "/_template/x"),
    ] {
        assert_eq!(asked(method, path).await, (200, "{\"acknowledged\":true}".to_owned()), "{method} {path}");
    }
    let (status, text) = asked("PUT", "/logs-000001").await;
    assert_eq!((status, text.contains("\"index\":\"logs-000001\"")), (200, true), "{text}");
    for path in [
        "/_refresh",
        "/logs/_refresh",
        "/_all/_refresh",
        "/*/_refresh",
        "/a,b*/_refresh?expand_wildcards=all",
    ] {
        for method in ["POST", "GET"] {
            let (status, text) = asked(method, path).await;
            assert_eq!(
                (status, text.contains("\"_shards\":{\"total\":1")),
                (200, true),
                "{method} {path}: {text}"
            );
        }
    }
    for path in ["/_all/_flush", "/_all/_forcemerge?max_num_segments=1", "/_all/_cache/clear"] {
        assert!(asked("POST", path).await.1.contains("_shards"), "{path}");
    }
    // Data in another cluster cannot be searched or removed here.
    for (method, path) in [("GET", "/_all/_search"), ("POST", "/_all/_delete_by_query"), ("DELETE", "/_all")]
    {
        assert_eq!(asked(method, path).await.0, 404, "{method} {path}");
    }
}
