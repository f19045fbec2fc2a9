//! A cluster that takes `_bulk` and nothing else: it answers each item with 201, or stalls, or answers as it is told.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex};

/// A cluster. Its threads end with their connections.
pub(crate) struct Cluster {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    stalls: Mutex<bool>,
    changed: Condvar,
    /// The status line and the body of every response.
    response: Mutex<Option<(&'static str, &'static str)>>,
    ended: AtomicBool,
    requests: AtomicU64,
    items: AtomicU64,
}

impl Cluster {
    pub(crate) fn start() -> Cluster {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (address, state) = (listener.local_addr().unwrap(), Arc::new(State::default()));
        let its = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if its.ended.load(SeqCst) {
                    return;
                }
                let its = Arc::clone(&its);
                std::thread::spawn(move || serve(&its, stream));
            }
        });
        Cluster { address, state }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Whether requests are read and not answered.
    pub(crate) fn stall(&self, stalls: bool) {
        *self.state.stalls.lock().unwrap() = stalls;
        self.state.changed.notify_all();
    }

    /// Responds to every request with this status line and body, instead of carrying it out.
    #[allow(dead_code, reason = "not every test has a cluster that fails")]
    pub(crate) fn respond(&self, response: Option<(&'static str, &'static str)>) {
        *self.state.response.lock().unwrap() = response;
    }

    /// Requests and items that arrived.
    pub(crate) fn arrived(&self) -> (u64, u64) {
        (self.state.requests.load(SeqCst), self.state.items.load(SeqCst))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.state.ended.store(true, SeqCst);
        self.stall(false);
        // So that the listener looks.
        drop(TcpStream::connect(self.address));
    }
}

fn serve(state: &State, stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let (mut length, mut line) = (0, String::new());
        loop {
            line.clear();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            let lower = line.trim().to_ascii_lowercase();
            if lower.is_empty() {
                break;
            }
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let items = body.iter().filter(|byte| **byte == b'\n').count() as u64 / 2;
        state.requests.fetch_add(1, SeqCst);
        let mut stalls = state.stalls.lock().unwrap();
        while *stalls {
            stalls = state.changed.wait(stalls).unwrap();
        }
        drop(stalls);
        let response = *state.response.lock().unwrap();
        if let Some((status, body)) = response {
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n{body}", body.len()).ok()?;
            continue;
        }
        state.items.fetch_add(items, SeqCst);
        let item = r#"{"index":{"_index":"i","_id":"made","_version":1,"result":"created","_shards":{"total":1,"successful":1,"failed":0},"_seq_no":1,"_primary_term":1,"status":201}}"#;
        let items = vec![item; usize::try_from(items).unwrap()].join(",");
        let text = format!("{{\"took\":1,\"errors\":false,\"items\":[{items}]}}");
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n";
        write!(stream, "{head}Content-Length: {}\r\n\r\n{text}", text.len()).ok()?;
    }
}
