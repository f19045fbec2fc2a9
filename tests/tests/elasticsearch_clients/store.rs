//! The least that keeps what is sent to `_bulk`: documents by index and `_id`, each created once.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// A node that keeps documents in memory until the test's end.
#[derive(Debug)]
pub(super) struct Store {
    address: SocketAddr,
    kept: Arc<Mutex<StoredDocuments>>,
}

/// Documents by index and `_id`.
type StoredDocuments = BTreeMap<String, BTreeMap<String, Value>>;

/// The longest request that is read.
const LONGEST: usize = 64 << 20;

impl Store {
    pub(super) fn start() -> Store {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let kept = Arc::new(Mutex::new(StoredDocuments::new()));
        let shared = Arc::clone(&kept);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let kept = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &kept));
            }
        });
        Store { address, kept }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The documents of an index, by `_id`.
    pub(super) fn index(&self, name: &str) -> BTreeMap<String, Value> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned().unwrap_or_default()
    }
}

/// Serves a connection until its end, or until something comes that no `_bulk` is.
fn serve(stream: TcpStream, kept: &Mutex<StoredDocuments>) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        while reader.read_line(&mut line).ok()? > 2 {
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().ok().filter(|length| *length <= LONGEST)?;
            }
            line.clear();
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let answer = keep(&body, &mut kept.lock().unwrap_or_else(PoisonError::into_inner))?.to_string();
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
        write!(writer, "{head}Content-Length: {}\r\n\r\n{answer}", answer.len()).ok()?;
    }
}

/// Keeps the documents of a body; nothing when there is something else in it than `create` and `index`.
fn keep(body: &[u8], kept: &mut StoredDocuments) -> Option<Value> {
    let mut lines = body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let (mut items, mut errors) = (Vec::new(), false);
    while let Some(line) = lines.next() {
        let action: Value = serde_json::from_slice(line).ok()?;
        let document: Value = serde_json::from_slice(lines.next()?).ok()?;
        let (kind, fields) = action.as_object()?.iter().next()?;
        // As Elasticsearch 8 and 9, which know no types any more.
        let known = ["_index", "_id", "pipeline", "routing", "require_alias", "require_data_stream"];
        let has_unknown = fields.as_object()?.keys().any(|name| !known.contains(&name.as_str()));
        if has_unknown || !matches!(kind.as_str(), "create" | "index") {
            return None;
        }
        let index = kept.entry(fields["_index"].as_str()?.to_owned()).or_default();
        let id = fields["_id"].as_str()?.to_owned();
        let status = if kind == "create" && index.contains_key(&id) { 409 } else { 201 };
        errors |= status == 409;
        items.push(json!({kind: {"status": status, "error": {"type": "version_conflict_engine_exception"}}}));
        if status == 201 {
            index.insert(id, document);
            items.pop();
            items.push(json!({kind: {"status": status}}));
        }
    }
    Some(json!({"errors": errors, "items": items}))
}
