//! A Kubernetes API server as far as a client of the pods of one node sees it: LIST and WATCH with versions.

use crate::{SOON, free_address, until_some};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many events a watch may begin before the newest one. An earlier one is answered 410.
const KEPT_EVENTS: usize = 1000;

/// The server. It is down until it is [started](Self::start), and ends with the value.
pub struct KubernetesApi {
    address: SocketAddr,
    tls: Option<Arc<ServerConfig>>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    version: u64,
    pods: BTreeMap<String, Value>,
    /// The newest events with their versions.
    events: VecDeque<(u64, String)>,
    /// The version before the first event that is still known.
    forgotten: u64,
    /// The number of the start that is running; watches and listeners of others end.
    run: u64,
    is_up: bool,
    /// The bearer token that requests must have.
    token: Option<String>,
    /// Answers every request with this status.
    refusal: Option<u16>,
    requests: Vec<String>,
    connections: Vec<TcpStream>,
}

/// The head of a request.
struct Head {
    target: String,
    token: Option<String>,
}

impl KubernetesApi {
    /// One without TLS.
    ///
    /// # Panics
    /// When there is no port to be had.
    pub fn new() -> KubernetesApi {
        KubernetesApi { address: free_address(), tls: None, shared: Arc::default() }
    }

    /// One with this certificate and key, in PEM.
    ///
    /// # Panics
    /// When they cannot be used.
    pub fn with_tls(certificate: &Path, key: &Path) -> KubernetesApi {
        let chain = CertificateDer::pem_file_iter(certificate).unwrap().map(Result::unwrap).collect();
        let key = PrivateKeyDer::from_pem_file(key).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config =
            ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = config.with_no_client_auth().with_single_cert(chain, key).unwrap();
        KubernetesApi { address: free_address(), tls: Some(Arc::new(config)), shared: Arc::default() }
    }

    /// Its URL.
    pub fn url(&self) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://localhost:{}", self.address.port())
    }

    /// Starts it, again perhaps. It has the same pods as before.
    ///
    /// # Panics
    /// When its port stays taken.
    pub fn start(&self) {
        // An earlier run may still be leaving it.
        let listener = until_some(SOON, "the port of the API", || TcpListener::bind(self.address).ok());
        let run = {
            let mut state = self.shared.state();
            state.is_up = true;
            state.run += 1;
            state.run
        };
        let (shared, tls) = (Arc::clone(&self.shared), self.tls.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if !shared.state().runs(run) {
                    return;
                }
                let (shared, tls) = (Arc::clone(&shared), tls.clone());
                std::thread::spawn(move || {
                    // A client that goes away ends its thread.
                    let _ = connection(&shared, stream, tls, run);
                });
            }
        });
    }

    /// Stops it, and breaks its connections.
    pub fn stop(&self) {
        let mut state = self.shared.state();
        state.is_up = false;
        for stream in state.connections.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        drop(state);
        self.shared.changed.notify_all();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
    }

    /// Adds a pod, or changes it.
    ///
    /// # Panics
    /// When it has no uid.
    pub fn put(&self, pod: Value) {
        let mut state = self.shared.state();
        let uid = pod["metadata"]["uid"].as_str().unwrap().to_owned();
        let kind = if state.pods.contains_key(&uid) { "MODIFIED" } else { "ADDED" };
        let pod = state.next_version(pod);
        state.event(kind, &pod);
        state.pods.insert(uid, pod);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Deletes a pod.
    ///
    /// # Panics
    /// When there is no such pod.
    pub fn delete(&self, uid: &str) {
        let mut state = self.shared.state();
        let pod = state.pods.remove(uid).unwrap();
        let pod = state.next_version(pod);
        state.event("DELETED", &pod);
        drop(state);
        self.shared.changed.notify_all();
    }

    /// Forgets all events: watches under way end with 410, as do those from an earlier version.
    pub fn forget_events(&self) {
        let mut state = self.shared.state();
        // A version that no client has seen.
        state.version += 1;
        state.events.clear();
        state.forgotten = state.version;
        drop(state);
        self.shared.changed.notify_all();
    }

    /// From now on requests must have this token, or may have any.
    pub fn require_token(&self, token: Option<&str>) {
        self.shared.state().token = token.map(str::to_owned);
    }

    /// From now on every request is answered with this status, or as usual.
    pub fn refuse(&self, status: Option<u16>) {
        self.shared.state().refusal = status;
    }

    /// The targets of the requests so far.
    pub fn requests(&self) -> Vec<String> {
        self.shared.state().requests.clone()
    }
}

impl Default for KubernetesApi {
    fn default() -> KubernetesApi {
        KubernetesApi::new()
    }
}

impl Drop for KubernetesApi {
    fn drop(&mut self) {
        self.stop();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn runs(&self, run: u64) -> bool {
        self.is_up && self.run == run
    }

    fn next_version(&mut self, mut pod: Value) -> Value {
        self.version += 1;
        pod["metadata"]["resourceVersion"] = json!(self.version.to_string());
        pod
    }

    fn event(&mut self, kind: &str, pod: &Value) {
        let text = json!({"type": kind, "object": pod}).to_string() + "\n";
        self.events.push_back((self.version, text));
        if self.events.len() > KEPT_EVENTS
            && let Some((version, _)) = self.events.pop_front()
        {
            self.forgotten = version;
        }
    }
}

fn connection(
    shared: &Shared,
    stream: TcpStream,
    tls: Option<Arc<ServerConfig>>,
    run: u64,
) -> std::io::Result<()> {
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    let socket = stream.try_clone()?;
    shared.state().connections.push(stream.try_clone()?);
    match tls {
        None => serve(shared, stream, run)?,
        Some(config) => {
            let session = ServerConnection::new(config).map_err(std::io::Error::other)?;
            let mut stream = StreamOwned::new(session, stream);
            serve(shared, &mut stream, run)?;
            stream.conn.send_close_notify();
            stream.flush()?;
        }
    }
    socket.shutdown(Shutdown::Write)
}

/// Answers one request. The end of the connection is that of the response.
fn serve(shared: &Shared, stream: impl Read + Write, run: u64) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let head = head(&mut stream)?;
    let stream = stream.get_mut();
    let (refusal, is_known) = {
        let mut state = shared.state();
        state.requests.push(head.target.clone());
        (state.refusal, state.token.is_none() || state.token == head.token)
    };
    if let Some(status) = refusal {
        let message = "pods is forbidden: User \"system:serviceaccount:x:y\" cannot list resource \"pods\"";
        return failure(stream, status, message);
    }
    if !is_known {
        return failure(stream, 401, "Unauthorized");
    }
    let parameter = |name: &str| {
        let query = head.target.split_once('?').map_or("", |(_, query)| query);
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')).map(str::to_owned)
    };
    let node = parameter("fieldSelector").unwrap_or_default().replace("%3D", "=");
    let node = node.strip_prefix("spec.nodeName=").unwrap_or_default().to_owned();
    if parameter("watch").as_deref() == Some("true") {
        let from = parameter("resourceVersion").and_then(|version| version.parse().ok()).unwrap_or_default();
        return watch(shared, stream, from, &node, run);
    }
    let body = {
        let state = shared.state();
        let items: Vec<&Value> = state.pods.values().filter(|pod| is_on(pod, &node)).collect();
        let metadata = json!({"resourceVersion": state.version.to_string()});
        json!({"kind": "PodList", "apiVersion": "v1", "metadata": metadata, "items": items}).to_string()
    };
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )?;
    stream.flush()
}

fn is_on(pod: &Value, node: &str) -> bool {
    pod["spec"]["nodeName"] == *node
}

fn head(stream: &mut impl BufRead) -> std::io::Result<Head> {
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut token = None;
    loop {
        line.clear();
        if stream.read_line(&mut line)? <= 2 {
            return Ok(Head { target, token });
        }
        if let Some(("authorization", value)) = line.trim().split_once(": ") {
            token = value.strip_prefix("Bearer ").map(str::to_owned);
        }
    }
}

fn failure(stream: &mut impl Write, status: u16, message: &str) -> std::io::Result<()> {
    let body = json!({"kind": "Status", "status": "Failure", "message": message, "code": status}).to_string();
    write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n\r\n{body}", body.len())?;
    stream.flush()
}

/// Writes events from a version on, until the server stops or has forgotten where the watch is.
fn watch(
    shared: &Shared,
    stream: &mut impl Write,
    mut from: u64,
    node: &str,
    run: u64,
) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n")?;
    stream.flush()?;
    loop {
        let text = {
            let mut state = shared.state();
            loop {
                if !state.runs(run) {
                    return Ok(());
                }
                if from < state.forgotten || state.version > from {
                    break;
                }
                state = shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if from < state.forgotten {
                let status =
                    json!({"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"});
                let text = json!({"type": "ERROR", "object": status}).to_string() + "\n";
                drop(state);
                stream.write_all(text.as_bytes())?;
                return stream.flush();
            }
            let new = state.events.iter().filter(|(version, _)| *version > from);
            let text: String = new.map(|(_, text)| text.as_str()).collect();
            from = state.version;
            text
        };
        let of_node = text.lines().filter(|line| {
            serde_json::from_str::<Value>(line).is_ok_and(|event| is_on(&event["object"], node))
        });
        for line in of_node {
            stream.write_all(line.as_bytes())?;
            stream.write_all(b"\n")?;
        }
        stream.flush()?;
    }
}
