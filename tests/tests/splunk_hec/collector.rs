//! A stand-in for Splunk's HTTP Event Collector with indexer acknowledgment: it numbers the requests of a channel, indexes them
//! when it is told to, and forgets what is not indexed when it restarts.

use serde_json::{Deserializer, Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

pub(crate) const TOKEN: &str = "2b4f7c1e-6a3d-4f0e-9c51-0d6f5d1c2e88";

/// The collector, which serves on loopback until the test's end.
pub(crate) struct Splunk {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
pub(crate) struct State {
    /// Whether requests need a channel, and are numbered.
    acknowledges: bool,
    /// Whether what waits is indexed when somebody asks.
    pub(crate) indexes: bool,
    /// So many requests are taken and never indexed.
    pub(crate) loses: usize,
    /// The answer to events, where that is not success.
    pub(crate) refuses: Option<(&'static str, Value)>,
    /// The number of the next request, by channel.
    next: BTreeMap<String, u64>,
    waiting: BTreeMap<(String, u64), Vec<Value>>,
    /// The events that are indexed.
    pub(crate) events: Vec<Value>,
    pub(crate) requests: usize,
    /// The most requests that were asked for at once.
    pub(crate) most_asked: usize,
    connections: Vec<TcpStream>,
}

impl Splunk {
    pub(crate) fn start(acknowledges: bool) -> Splunk {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(Mutex::new(State { acknowledges, indexes: true, ..State::default() }));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                shared.lock().unwrap().connections.push(stream.try_clone().unwrap());
                let state = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &state));
            }
        });
        Splunk { address, state }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Ends all connections, and forgets channels and what is not indexed.
    pub(crate) fn restart(&self) {
        let mut state = self.state();
        state.connections.drain(..).for_each(|stream| drop(stream.shutdown(Shutdown::Both)));
        state.next.clear();
        state.waiting.clear();
    }
}

impl State {
    /// Requests that wait for the index.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    fn event(&mut self, head: &Head, body: &[u8]) -> (&'static str, Value) {
        self.requests += 1;
        if let Some((status, answer)) = &self.refuses {
            return (status, answer.clone());
        }
        match head.value("authorization") {
            Some(value) if value == format!("splunk {TOKEN}") => {}
            Some(_) => return ("403 Forbidden", json!({"text": "Invalid token", "code": 4})),
            None => return ("401 Unauthorized", json!({"text": "Token is required", "code": 2})),
        }
        let events: Result<Vec<Value>, _> = Deserializer::from_slice(body).into_iter::<Value>().collect();
        let Ok(events) = events else {
            return ("400 Bad Request", json!({"text": "Invalid data format", "code": 6}));
        };
        let is_bad = |event: &Value| event["event"].as_str().is_some_and(|text| text.contains("refuse me"));
        if let Some(number) = events.iter().position(is_bad) {
            let answer = json!({"text": "Invalid data format", "code": 6, "invalid-event-number": number});
            return ("400 Bad Request", answer);
        }
        if !self.acknowledges {
            self.events.extend(events);
            return ("200 OK", json!({"text": "Success", "code": 0}));
        }
        let Some(channel) = head.value("x-splunk-request-channel") else {
            return ("400 Bad Request", json!({"text": "Data channel is missing", "code": 10}));
        };
        let id = self.next.entry(channel.to_owned()).or_default();
        let number = *id;
        *id += 1;
        if self.loses > 0 {
            self.loses -= 1;
        } else {
            self.waiting.insert((channel.to_owned(), number), events);
        }
        ("200 OK", json!({"text": "Success", "code": 0, "ackId": number}))
    }

    fn ack(&mut self, head: &Head, body: &[u8]) -> (&'static str, Value) {
        let channel = head.value("x-splunk-request-channel").unwrap().to_owned();
        let body: Value = serde_json::from_slice(body).unwrap();
        let ids: Vec<u64> = body["acks"].as_array().unwrap().iter().map(|id| id.as_u64().unwrap()).collect();
        self.most_asked = self.most_asked.max(ids.len());
        let mut acks = json!({});
        for id in ids {
            let events = if self.indexes { self.waiting.remove(&(channel.clone(), id)) } else { None };
            acks[id.to_string()] = json!(events.is_some());
            self.events.extend(events.into_iter().flatten());
        }
        ("200 OK", json!({"acks": acks}))
    }
}

/// The head of a request, in lower case.
struct Head(Vec<String>);

impl Head {
    fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

/// Serves a connection until its end.
fn serve(stream: TcpStream, state: &Mutex<State>) -> Option<()> {
    let mut writer = stream.try_clone().ok()?;
    let mut reader = BufReader::new(stream);
    loop {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? <= 2 {
                break;
            }
            lines.push(line.trim().to_ascii_lowercase());
        }
        let head = Head(lines);
        let mut body = vec![0; head.value("content-length")?.parse().ok()?];
        reader.read_exact(&mut body).ok()?;
        if head.value("content-encoding") == Some("gzip") {
            let mut plain = Vec::new();
            std::io::copy(&mut flate2::read::GzDecoder::new(&body[..]), &mut plain).unwrap();
            body = plain;
        }
        let path = head.0.first()?.split(' ').nth(1)?.to_owned();
        let (status, answer) = match path.as_str() {
            "/services/collector/event" => state.lock().unwrap().event(&head, &body),
            "/services/collector/ack" => state.lock().unwrap().ack(&head, &body),
            other => panic!("{other}"),
        };
        let answer = answer.to_string();
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            answer.len()
        );
        writer.write_all(format!("{head}{answer}").as_bytes()).ok()?;
    }
}
