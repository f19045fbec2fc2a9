//! A server in memory: it carries out what it is sent, and does what it is told to do instead.

use serde_json::{Value, json};
use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::Duration;
use tidegate_bulk::{RequestFailure, Transport, TransportError, TransportRequest, TransportResponse};
use tokio::sync::oneshot;

/// The server's reaction to one request.
pub(crate) enum Step {
    Serve,
    /// Served when the other end is dropped.
    Hold(oneshot::Receiver<()>),
    Hang,
    Status(u16, Option<Duration>),
    NotSent,
    /// Carried out, and not answered but for so many bytes.
    Broken(usize),
    /// The items at these places get this status instead of being carried out.
    Reject(Vec<usize>, u16),
    /// This, as it is.
    Answer(String),
    /// This, in pieces; or when the other end is dropped.
    Text(String),
    HoldText(oneshot::Receiver<()>, String),
}

#[derive(Default)]
pub(crate) struct Server {
    pub(crate) script: Mutex<VecDeque<Step>>,
    /// Answers come in pieces of so many bytes; 0 is all at once.
    pub(crate) piece: usize,
    /// Bodies longer than this get 413.
    pub(crate) most: Option<usize>,
    /// A body that contains this gets 400.
    pub(crate) poison: Option<&'static str>,
    pub(crate) seen: Mutex<Vec<Seen>>,
    pub(crate) store: Mutex<Store>,
    /// How each request ended.
    pub(crate) ended: Mutex<Vec<Result<usize, RequestFailure>>>,
}

/// A request as it came.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) path: &'static str,
    pub(crate) body: String,
    pub(crate) items: usize,
}

#[derive(Default)]
pub(crate) struct Store {
    pub(crate) documents: HashMap<(String, String), (Value, u64)>,
    /// Every write that was carried out: the id and the body.
    pub(crate) log: Vec<(String, Value)>,
    next: u64,
}

impl Server {
    pub(crate) fn scripted(steps: impl IntoIterator<Item = Step>) -> Server {
        Server { script: Mutex::new(steps.into_iter().collect()), ..Server::default() }
    }

    pub(crate) fn push(&self, step: Step) {
        self.script.lock().unwrap().push_back(step);
    }

    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// How many items each request had.
    pub(crate) fn sizes(&self) -> Vec<usize> {
        self.requests().iter().map(|seen| seen.items).collect()
    }

    /// The writes to the document, in order.
    pub(crate) fn written(&self, id: &str) -> Vec<Value> {
        let store = self.store.lock().unwrap();
        store.log.iter().filter(|(written, _)| written == id).map(|(_, body)| body.clone()).collect()
    }

    fn serve(&self, request: &TransportRequest, rejected: &[usize], status: u16) -> String {
        let body = std::str::from_utf8(request.body.as_ref()).unwrap();
        let mut store = self.store.lock().unwrap();
        let mut answers = Vec::new();
        if request.path.starts_with("/_mget") {
            let body: Value = serde_json::from_str(body).unwrap();
            for document in body["docs"].as_array().unwrap() {
                answers.push(store.get(document, rejected.contains(&answers.len())));
            }
            return json!({"docs": answers}).to_string();
        }
        let mut lines = body.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        if request.path.starts_with("/_msearch") {
            while let (Some(head), Some(query)) = (lines.next(), lines.next()) {
                answers.push(match rejected.contains(&answers.len()) {
                    true => json!({"error": {"type": "es_rejected_execution_exception"}, "status": status}),
                    false => {
                        json!({"took": 1, "hits": {"index": head["index"], "query": query}, "status": 200})
                    }
                });
            }
            return json!({"took": 1, "responses": answers}).to_string();
        }
        while let Some(action) = lines.next() {
            let (action, target) = action.as_object().unwrap().iter().next().unwrap();
            let body = if action == "delete" { Value::Null } else { lines.next().unwrap() };
            let answer = if rejected.contains(&answers.len()) {
                json!({"status": status, "error": {"type": "es_rejected_execution_exception", "reason": "full"}})
            } else {
                store.write(action, target, body)
            };
            answers.push(json!({action: answer}));
        }
        json!({"took": 1, "errors": false, "items": answers}).to_string()
    }
}

impl Store {
    fn get(&self, target: &Value, rejected: bool) -> Value {
        let (index, id) = (target["_index"].as_str().unwrap(), target["_id"].as_str().unwrap());
        if rejected {
            return json!({"_index": index, "_id": id, "error": {"type": "es_rejected_execution_exception"}});
        }
        if index == "missing" {
            return json!({"_index": index, "_id": id, "error": {"type": "index_not_found_exception", "reason": "no"}});
        }
        match self.documents.get(&(index.to_owned(), id.to_owned())) {
            Some((source, version)) => json!({
                "_index": index, "_id": id, "_version": version, "_seq_no": version, "_primary_term": 1,
                "found": true, "_source": source,
            }),
            None => json!({"_index": index, "_id": id, "found": false}),
        }
    }

    fn write(&mut self, action: &str, target: &Value, body: Value) -> Value {
        let index = target["_index"].as_str().unwrap().to_owned();
        if index == "missing" {
            return json!({"status": 404, "error": {"type": "index_not_found_exception", "reason": "no such index"}});
        }
        self.next += 1;
        let id =
            target.get("_id").map_or(format!("chosen-{}", self.next), |id| id.as_str().unwrap().to_owned());
        let key = (index, id.clone());
        let there = self.documents.get(&key).map(|(_, version)| *version);
        let status = match (action, there) {
            ("create", Some(_)) => {
                return json!({"_id": id, "status": 409, "error": {"type": "version_conflict_engine_exception", "reason": "a \"b\" \u{e9}"}});
            }
            ("delete", None) => return json!({"_id": id, "status": 404, "result": "not_found"}),
            ("update", None) => {
                return json!({"_id": id, "status": 404, "error": {"type": "document_missing_exception"}});
            }
            (_, None) => 201,
            _ => 200,
        };
        self.log.push((id.clone(), body.clone()));
        let version = there.unwrap_or(0) + 1;
        if action == "delete" {
            self.documents.remove(&key);
        } else {
            self.documents.insert(key, (body, version));
        }
        json!({"_id": id, "_version": version, "_seq_no": self.next, "_primary_term": 3, "status": status, "result": "created"})
    }
}

impl Transport for Server {
    async fn send(
        &self,
        request: TransportRequest,
        answer: &mut (dyn FnMut(&[u8]) -> ControlFlow<()> + Send),
    ) -> Result<TransportResponse, TransportError> {
        let body = String::from_utf8(request.body.as_ref().to_vec()).unwrap();
        let seen = Seen { path: request.path, body: body.clone(), items: request.items as usize };
        self.seen.lock().unwrap().push(seen);
        let step = self.script.lock().unwrap().pop_front().unwrap_or(Step::Serve);
        let status = |status, retry_after, excerpt: &str| {
            Ok(TransportResponse { status, retry_after, excerpt: excerpt.to_owned() })
        };
        if self.most.is_some_and(|most| body.len() > most) {
            return status(413, None, "too long");
        }
        if self.poison.is_some_and(|poison| body.contains(poison)) {
            return status(400, None, "unknown field");
        }
        let (mut breaks, mut rejected, mut code) = (None, Vec::new(), 0);
        let mut given = None;
        match step {
            Step::Serve => {}
            Step::Hold(held) => drop(held.await),
            Step::Hang => std::future::pending().await,
            Step::Status(code, retry_after) => return status(code, retry_after, "no"),
            Step::NotSent => return Err(TransportError::NotSent("connection refused".to_owned())),
            Step::Broken(bytes) => breaks = Some(bytes),
            Step::Reject(items, status) => (rejected, code) = (items, status),
            Step::Text(text) => given = Some(text),
            Step::HoldText(held, text) => {
                drop(held.await);
                given = Some(text);
            }
            Step::Answer(text) => {
                let _ = answer(text.as_bytes());
                return status(200, None, "");
            }
        }
        let text = given.unwrap_or_else(|| self.serve(&request, &rejected, code));
        drop(request);
        let bytes = &text.as_bytes()[..breaks.unwrap_or(text.len()).min(text.len())];
        let piece = if self.piece == 0 { bytes.len().max(1) } else { self.piece };
        for piece in bytes.chunks(piece) {
            if answer(piece).is_break() {
                break;
            }
            tokio::task::yield_now().await;
        }
        if breaks.is_some() {
            return Err(TransportError::Broken("reset".to_owned()));
        }
        status(200, None, "")
    }

    fn ended(&self, result: Result<usize, RequestFailure>) {
        self.ended.lock().unwrap().push(result);
    }
}
