//! A node on loopback that keeps documents by their `_id`, and answers as it is told.

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tidegate_wire::coding::{Decode, Needs};
use tidegate_wire::gzip;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// How a request is answered.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Each document is taken.
    Ok,
    /// With this status and text; nothing is taken.
    Status(u16, &'static str),
    /// It is at another place.
    Redirect(u16, String),
    /// Documents are taken, but the answer is lost.
    Lost,
    /// 413 when it is longer than so many bytes as it came; otherwise taken.
    AtMost(usize),
    /// 400 for all of it when this document is in it; otherwise taken.
    Chokes(u64),
    /// Every so manieth document is rejected for want of room; the others are taken.
    Every(usize, u16),
    /// This document is not wanted.
    Dislikes(u64),
    /// The first document is not wanted, and there is no room for the others.
    DislikesFirst,
    /// 500 for all of it when this document is in it; otherwise taken.
    Breaks(u64),
    /// 500 for this document.
    Faults(u64),
}

#[derive(Debug, Default)]
pub(crate) struct Seen {
    /// Documents by their id, each with its number.
    pub(crate) documents: BTreeMap<String, u64>,
    /// The requests: how many documents they had, how many bytes, and their headers.
    pub(crate) requests: Vec<(usize, usize, hyper::HeaderMap)>,
    /// Documents that came without an id.
    pub(crate) anonymous: u64,
    /// Documents that came again under their id.
    pub(crate) repeated: u64,
    /// Indexes that take nothing now; and the requests with documents for one of them, by how many they had of it and
    /// of others.
    pub(crate) red: BTreeSet<String>,
    pub(crate) refused: Vec<(usize, usize)>,
    /// Requests that came, answered or not; no answer is given while it holds them, and each takes so long.
    pub(crate) came: usize,
    pub(crate) holds: bool,
    pub(crate) delay: Duration,
    /// The documents themselves, where they are wanted.
    pub(crate) keeps: bool,
    pub(crate) kept: Vec<(String, Value)>,
    script: VecDeque<Answer>,
    always: Option<Answer>,
}

pub(crate) struct Node {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    stop: Option<watch::Sender<()>>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Node {
    fn drop(&mut self) {
        drop(self.stop.take());
        let ended = self.thread.take().map(std::thread::JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_none_or(|ended| ended.is_ok()));
    }
}

impl Node {
    /// A node that answers so first, and then takes everything.
    pub(crate) fn new(script: impl IntoIterator<Item = Answer>) -> Node {
        let seen = Arc::new(Mutex::new(Seen { script: script.into_iter().collect(), ..Seen::default() }));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::clone(&seen);
        let (stop, mut stopped) = watch::channel(());
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let listener = TcpListener::from_std(listener).unwrap();
                let mut connections = JoinSet::new();
                loop {
                    tokio::select! {
                        accepted = listener.accept() => {
                            let (stream, _) = accepted.unwrap();
                            let state = Arc::clone(&state);
                            let service = service_fn(move |request| serve(request, Arc::clone(&state)));
                            let served = hyper::server::conn::http1::Builder::new()
                                .serve_connection(TokioIo::new(stream), service);
                            connections.spawn(served);
                        }
                        _ = stopped.changed() => break,
                    }
                }
            });
        });
        Node { address, seen, stop: Some(stop), thread: Some(thread) }
    }

    /// Answers the next requests with these.
    pub(crate) fn answers(&self, script: impl IntoIterator<Item = Answer>) {
        self.seen().script = script.into_iter().collect();
    }

    /// From now on, behind what is left of the script.
    pub(crate) fn always(self, answer: Answer) -> Node {
        self.seen().always = Some(answer);
        self
    }

    pub(crate) fn seen(&self) -> std::sync::MutexGuard<'_, Seen> {
        self.seen.lock().unwrap()
    }

    /// That it has each of these documents once, and no other.
    pub(crate) fn assert_has(&self, numbers: impl IntoIterator<Item = u64>) {
        let mut has: Vec<u64> = self.seen().documents.values().copied().collect();
        has.sort_unstable();
        assert_eq!(has, numbers.into_iter().collect::<Vec<_>>());
    }
}

async fn serve(
    request: Request<Incoming>,
    state: Arc<Mutex<Seen>>,
) -> Result<Response<Full<Bytes>>, std::io::Error> {
    assert_eq!(request.uri().path(), "/es/_bulk");
    // Well below what a request may take.
    assert!(request.uri().query().unwrap().contains("timeout=5000ms"), "{}", request.uri());
    let (head, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes();
    let len = body.len();
    let gzipped = head.headers.get("content-encoding").is_some_and(|coding| coding == "gzip");
    let raw = if gzipped { gunzip(&body) } else { body.to_vec() };
    let items = parsed(&raw);
    let delay = {
        let mut seen = state.lock().unwrap();
        seen.came += 1;
        seen.delay
    };
    tokio::time::sleep(delay).await;
    while state.lock().unwrap().holds {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let mut seen = state.lock().unwrap();
    let Some(items) = items else {
        let malformed = r#"{"error":{"type":"illegal_argument_exception","reason":"Malformed action"}}"#;
        return Ok(Response::builder().status(400).body(Full::new(Bytes::from(malformed))).unwrap());
    };
    seen.requests.push((items.len(), len, head.headers));
    let answer = seen.script.pop_front().or(seen.always.clone()).unwrap_or(Answer::Ok);
    let reply = |status: u16, text: String| {
        let response = Response::builder().status(status).header("content-type", "application/json");
        Ok(response.body(Full::new(Bytes::from(text))).unwrap())
    };
    match answer {
        Answer::Status(status, text) => return reply(status, text.to_owned()),
        Answer::Redirect(status, place) => {
            let response = Response::builder().status(status).header("location", place);
            return Ok(response.body(Full::default()).unwrap());
        }
        Answer::AtMost(most) if len > most => return reply(413, String::new()),
        Answer::Breaks(number) if items.iter().any(|item| item.document["n"] == number) => {
            let error = r#"{"error":{"type":"illegal_state_exception","reason":"There are no ingest nodes"},"status":500}"#;
            return reply(500, error.to_owned());
        }
        Answer::Chokes(number) if items.iter().any(|item| item.document["n"] == number) => {
            return reply(400, r#"{"error":{"type":"illegal_argument_exception"}}"#.to_owned());
        }
        _ => {}
    }
    let unwanted = || json!({"status": 400, "error": {"type": "document_parsing_exception", "reason": "no \"such\" field"}});
    let (mut errors, mut answers) = (false, Vec::new());
    let refused = items.iter().filter(|item| seen.red.contains(&item.index)).count();
    if refused > 0 {
        let others = items.len() - refused;
        seen.refused.push((refused, others));
    }
    for (at, Item { kind, id, index, document }) in items.into_iter().enumerate() {
        let number = document["n"].as_u64().unwrap_or(seen.documents.len() as u64);
        let outcome = match &answer {
            _ if seen.red.contains(&index) => {
                json!({"status": 503, "error": {"type": "unavailable_shards_exception", "reason": "primary shard is not active"}})
            }
            Answer::Faults(faulty) if number == *faulty => {
                json!({"status": 500, "error": {"type": "null_pointer_exception", "reason": "x"}})
            }
            Answer::Every(step, status) if at % step == 0 => {
                json!({"status": status, "error": {"type": "es_rejected_execution_exception", "reason": "full"}})
            }
            Answer::DislikesFirst if at > 0 => {
                json!({"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "full"}})
            }
            Answer::DislikesFirst => unwanted(),
            Answer::Dislikes(disliked) if number == *disliked => unwanted(),
            _ => {
                if seen.keeps {
                    seen.kept.push((index, document));
                }
                seen.index(&kind, id, number)
            }
        };
        errors |= outcome["status"].as_u64().unwrap() >= 400;
        answers.push(json!({ kind: outcome }));
    }
    if matches!(answer, Answer::Lost) {
        return Err(std::io::Error::other("the answer is lost"));
    }
    reply(200, json!({"took": 1, "errors": errors, "items": answers}).to_string())
}

impl Seen {
    fn index(&mut self, kind: &str, id: Option<String>, number: u64) -> Value {
        let Some(id) = id else {
            self.anonymous += 1;
            let id = format!("anonymous-{}", self.anonymous);
            self.documents.insert(id, number);
            return json!({"status": 201});
        };
        let known = self.documents.contains_key(&id);
        self.repeated += u64::from(known);
        if kind == "create" && known {
            return json!({"status": 409, "error": {"type": "version_conflict_engine_exception", "reason": "exists"}});
        }
        self.documents.insert(id, number);
        json!({"status": if known { 200 } else { 201 }})
    }
}

struct Item {
    kind: String,
    id: Option<String>,
    index: String,
    document: Value,
}

/// The items; nothing where an action is none.
fn parsed(raw: &[u8]) -> Option<Vec<Item>> {
    assert!(raw.is_empty() || raw.ends_with(b"\n"));
    let mut lines = raw.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut items = Vec::new();
    while let Some(action) = lines.next() {
        let action: Value = serde_json::from_slice(action).unwrap();
        let (kind, fields) = action.as_object().unwrap().iter().next()?;
        let text = |name: &str| fields[name].as_str().map(str::to_owned);
        let (id, index) = (text("_id"), text("_index").unwrap_or_default());
        items.push(Item {
            kind: kind.clone(),
            id,
            index,
            document: serde_json::from_slice(lines.next().unwrap()).unwrap(),
        });
    }
    Some(items)
}

fn gunzip(body: &[u8]) -> Vec<u8> {
    let mut decoder = gzip::Decoder::new();
    decoder.reset();
    let (mut out, mut rest) = (Vec::new(), body);
    let mut room = vec![0; 64 << 10];
    loop {
        let progress = decoder.step(rest, &mut room).unwrap();
        out.extend_from_slice(&room[..progress.written]);
        rest = &rest[progress.read..];
        match progress.needs {
            Needs::Nothing if rest.is_empty() => return out,
            Needs::Input => panic!("the body ends too early"),
            _ => {}
        }
    }
}
