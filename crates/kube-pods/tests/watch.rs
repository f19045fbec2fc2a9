//! The watcher against an API server that does what real ones do on a bad day.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use rcgen::{CertificateParams, Issuer, KeyPair};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tidegate_kube_pods::{ApiSettings, Fields, LogPath, PodLimits, PodTable, Watcher, WatcherSettings};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

/// How long a test waits for what should come at once.
const PATIENCE: Duration = Duration::from_secs(20);

/// One response of the server.
enum Reply {
    /// A whole response.
    Body(u16, String),
    /// The beginning of a response of unknown length; the connection ends behind it.
    Part(String),
    /// The head, and chunks for as long as the channel lives.
    Stream(mpsc::Receiver<String>),
    /// The connection ends without a response.
    Nothing,
    /// Nothing comes, and the connection stays.
    Silence,
}

/// A server that answers each connection with the next reply.
struct FakeApi {
    url: String,
    replies: mpsc::Sender<Reply>,
    requests: mpsc::Receiver<String>,
    _tasks: JoinSet<()>,
}

impl FakeApi {
    async fn start(tls: Option<TlsAcceptor>) -> FakeApi {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let scheme = if tls.is_some() { "https" } else { "http" };
        let url = format!("{scheme}://localhost:{}", listener.local_addr().unwrap().port());
        let (replies, mut coming) = mpsc::channel(100);
        let (told, requests) = mpsc::channel(100);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let stream: Box<dyn Stream> = match &tls {
                    None => Box::new(stream),
                    Some(acceptor) => match acceptor.accept(stream).await {
                        Ok(stream) => Box::new(stream),
                        Err(_) => continue,
                    },
                };
                // Without a further reply the server is busy for good.
                let reply = coming.recv().await.unwrap_or(Reply::Silence);
                connections.spawn(serve(stream, reply, told.clone()));
            }
        });
        FakeApi { url, replies, requests, _tasks: tasks }
    }

    async fn reply(&self, reply: Reply) {
        self.replies.send(reply).await.unwrap();
    }

    async fn stream(&self) -> mpsc::Sender<String> {
        let (sender, receiver) = mpsc::channel(100);
        self.reply(Reply::Stream(receiver)).await;
        sender
    }

    async fn request(&mut self) -> String {
        tokio::time::timeout(PATIENCE, self.requests.recv()).await.unwrap().unwrap()
    }
}

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

async fn serve(mut stream: Box<dyn Stream>, reply: Reply, told: mpsc::Sender<String>) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(_) => return,
        }
    }
    let _ = told.send(String::from_utf8(head).unwrap()).await;
    let start = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n";
    match reply {
        Reply::Nothing => {}
        Reply::Silence => std::future::pending().await,
        Reply::Body(status, body) => {
            let head = format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n", body.len());
            let _ = stream.write_all((head + &body).as_bytes()).await;
        }
        Reply::Part(body) => {
            let _ = stream.write_all(format!("{start}\r\n{body}").as_bytes()).await;
        }
        Reply::Stream(mut chunks) => {
            let _ = stream.write_all(format!("{start}transfer-encoding: chunked\r\n\r\n").as_bytes()).await;
            while let Some(chunk) = chunks.recv().await {
                let chunk = format!("{:x}\r\n{chunk}\r\n", chunk.len());
                if stream.write_all(chunk.as_bytes()).await.is_err() {
                    return;
                }
            }
            let _ = stream.write_all(b"0\r\n\r\n").await;
        }
    }
    let _ = stream.shutdown().await;
}

fn pod(uid: &str) -> Value {
    json!({
        "metadata": {"name": "web", "namespace": "shop", "uid": uid, "resourceVersion": "9"},
        "spec": {"nodeName": "node-1", "containers": [{"name": "app", "image": "app:1"}]},
    })
}

fn list(version: &str, pods: &[&str], next: &str) -> Reply {
    let items: Vec<Value> = pods.iter().map(|uid| pod(uid)).collect();
    let metadata = json!({"resourceVersion": version, "continue": next});
    Reply::Body(200, json!({"kind": "PodList", "metadata": metadata, "items": items}).to_string())
}

fn event(kind: &str, object: Value) -> String {
    json!({"type": kind, "object": object}).to_string() + "\n"
}

fn expired() -> String {
    event("ERROR", json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}))
}

fn api(url: &str) -> ApiSettings {
    ApiSettings { url: url.parse().unwrap(), token: None, ca: None, certificate: None, server_name: None }
}

/// Starts a watcher; it ends with the set.
fn watch(api: ApiSettings) -> (PodTable, JoinSet<()>) {
    let table = PodTable::new(PodLimits::default(), Duration::from_secs(60));
    let settings = WatcherSettings {
        api,
        node: "node-1".into(),
        fields: Fields::default(),
        timeout: Duration::from_millis(500),
        watch_timeout: Duration::from_secs(300),
    };
    let mut tasks = JoinSet::new();
    tasks.spawn(Watcher::new(settings, table.clone()).run());
    (table, tasks)
}

fn knows(table: &PodTable, uid: &str) -> bool {
    let path = format!("shop_web_{uid}/app/0.log");
    table.pod_of(&LogPath::parse(&path).unwrap()).is_some()
}

async fn until(table: &PodTable, is_so: impl Fn(&PodTable) -> bool) {
    let mut changes = table.changes();
    let wait = async {
        while !is_so(table) {
            changes.next().await;
        }
    };
    tokio::time::timeout(PATIENCE, wait).await.expect("the table never came to this state");
}

/// The first list comes by pages, and the watch goes on from its version.
#[tokio::test]
async fn lists_and_watches() {
    let mut server = FakeApi::start(None).await;
    let (table, _tasks) = watch(api(&server.url));
    server.reply(list("7", &["a"], "more")).await;
    server.reply(list("7", &["b"], "")).await;
    let watch = server.stream().await;
    assert!(server.request().await.contains("&resourceVersion=0"));
    assert!(server.request().await.contains("&continue=more"));
    assert!(
        server
            .request()
            .await
            .contains("watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=7 ")
    );
    assert!(table.is_listed());
    let text = event("ADDED", pod("c"));
    for half in [&text[..30], &text[30..]] {
        watch.send(half.to_owned()).await.unwrap();
    }
    until(&table, |table| knows(table, "a") && knows(table, "b") && knows(table, "c")).await;
}

/// An API behind a gateway to many clusters has a path of its own.
#[tokio::test]
async fn the_path_of_the_url_comes_first() {
    let mut server = FakeApi::start(None).await;
    let (_table, _tasks) = watch(api(&format!("{}/k8s/clusters/c-1/", server.url)));
    server.reply(list("7", &["a"], "")).await;
    assert!(server.request().await.starts_with("GET /k8s/clusters/c-1/api/v1/pods?fieldSelector="));
}

/// A watch that ends goes on from its last version, which a bookmark may have told.
#[tokio::test]
async fn a_watch_goes_on_where_it_was() {
    let mut server = FakeApi::start(None).await;
    let (_table, _tasks) = watch(api(&server.url));
    server.reply(list("7", &["a"], "")).await;
    let bookmark = event("BOOKMARK", json!({"metadata": {"resourceVersion": "55"}}));
    server.reply(Reply::Part(bookmark)).await;
    server.reply(Reply::Nothing).await;
    let _watch = server.stream().await;
    server.request().await;
    assert!(server.request().await.contains("resourceVersion=7 "));
    assert!(server.request().await.contains("resourceVersion=55 "));
    assert!(server.request().await.contains("resourceVersion=55 "));
}

/// 410 comes as an event or as a status; both mean a new list of the latest state.
#[tokio::test]
async fn a_forgotten_version_means_a_new_list() {
    let mut server = FakeApi::start(None).await;
    let (table, _tasks) = watch(api(&server.url));
    server.reply(list("7", &["a"], "")).await;
    server.reply(Reply::Part(expired())).await;
    server.reply(list("20", &["b"], "")).await;
    server.reply(Reply::Body(410, "Gone".into())).await;
    server.reply(list("30", &["c"], "")).await;
    let _watch = server.stream().await;
    for wanted in [
        "resourceVersion=0 ",
        "resourceVersion=7 ",
        "limit=250 ",
        "resourceVersion=20 ",
        "limit=250 ",
        "=30 ",
    ] {
        let request = server.request().await;
        assert!(request.contains(wanted), "{request} has no {wanted}");
    }
    // A pod that is in no list any more has its names for a while.
    until(&table, |table| ["a", "b", "c"].iter().all(|uid| knows(table, uid))).await;
    assert_eq!(table.counters().expired.load(Relaxed), 2);
}

/// Errors, silence, cut responses and what is no JSON: each is tried again, and what is known stays.
#[tokio::test]
async fn survives_a_bad_server() {
    let mut server = FakeApi::start(None).await;
    let (table, _tasks) = watch(api(&server.url));
    server.reply(Reply::Body(500, "etcd leader changed".into())).await;
    server.reply(list("7", &["a"], "")).await;
    server.reply(Reply::Part(event("ADDED", pod("b"))[..100].to_owned())).await;
    server.reply(Reply::Part("<html>busy</html>".into())).await;
    server.reply(Reply::Silence).await;
    server.reply(Reply::Body(403, "pods is forbidden".into())).await;
    let watch = server.stream().await;
    for _ in 0..7 {
        server.request().await;
    }
    assert!(knows(&table, "a") && !knows(&table, "b"));
    watch.send(event("ADDED", pod("b"))).await.unwrap();
    until(&table, |table| knows(table, "b")).await;
    assert_eq!(table.counters().failures.load(Relaxed), 5);
}

/// The token is read for each request, since the kubelet exchanges it.
#[tokio::test]
async fn shows_the_token_of_the_moment_over_tls() {
    let folder = tempfile::tempdir().unwrap();
    let (ca, token) = (folder.path().join("ca.crt"), folder.path().join("token"));
    let key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
    std::fs::write(&ca, authority.self_signed(&key).unwrap().pem()).unwrap();
    let issuer = Issuer::new(authority, key);
    let key = KeyPair::generate().unwrap();
    let certificate =
        CertificateParams::new(vec!["localhost".into()]).unwrap().signed_by(&key, &issuer).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let mut server = FakeApi::start(Some(TlsAcceptor::from(Arc::new(config)))).await;
    std::fs::write(&token, "first\n").unwrap();
    let settings = ApiSettings { token: Some(token.clone()), ca: Some(ca), ..api(&server.url) };
    let (table, _tasks) = watch(settings);
    server.reply(list("7", &["a"], "")).await;
    assert!(server.request().await.contains("authorization: Bearer first"));
    until(&table, |table| knows(table, "a")).await;
    let watch = server.stream().await;
    server.request().await;
    std::fs::write(&token, "second").unwrap();
    drop(watch);
    let _watch = server.stream().await;
    assert!(server.request().await.contains("authorization: Bearer second"));
}
