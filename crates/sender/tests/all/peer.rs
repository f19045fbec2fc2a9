//! A peer that behaves as it is told: takes requests, keeps what it acknowledged, and misbehaves on purpose.

#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "a helper of several tests, which use parts of it"
)]

use crate::oracle;
use prost::Message;
use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The reaction to the next request.
#[derive(Clone, Debug)]
pub enum Behaviour {
    /// 200, with nothing
    Take,
    /// This status, head and body.
    Answer(u16, String, Vec<u8>),
    /// Reads so many bytes of the body as they come over the wire, or all of a shorter one, then cuts the connection.
    CutAfter(usize),
    /// Answers after so many bytes of the body, or all of a shorter one, and hangs up.
    AnswerEarly(usize, u16, String),
    /// Reads all, answers half of a head, and hangs up.
    HalfAnAnswer,
    /// Reads all, and then something that is not HTTP.
    Garbage,
    /// Reads very slowly, in small pieces; takes it.
    Slow,
    /// Takes it and closes the connection without saying so.
    TakeAndClose,
    /// Holds the request until released.
    Hold(Arc<std::sync::Barrier>),
}

/// A request that was acknowledged or refused, complete.
#[derive(Clone, Debug)]
pub struct Request {
    pub path: String,
    pub headers: HashMap<String, String>,
    pub body: Vec<u8>,
    pub status: u16,
}

#[derive(Default)]
struct State {
    script: VecDeque<Behaviour>,
    /// The reaction after the script, if not `Take`.
    always: Option<Behaviour>,
    requests: Vec<Request>,
    open: Vec<TcpStream>,
}

pub struct Peer {
    port: u16,
    state: Arc<Mutex<State>>,
}

impl Peer {
    pub fn new() -> Peer {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else { continue };
                let shared = Arc::clone(&shared);
                shared.lock().unwrap().open.push(stream.try_clone().unwrap());
                std::thread::spawn(move || {
                    let (read, write) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
                    serve(&shared, read, write);
                    let _ = stream.shutdown(Shutdown::Both);
                });
            }
        });
        Peer { port, state }
    }

    pub fn scripted(script: impl IntoIterator<Item = Behaviour>) -> Peer {
        let peer = Peer::new();
        peer.next(script);
        peer
    }

    /// To all requests the same.
    pub fn always(behaviour: Behaviour) -> Peer {
        let peer = Peer::new();
        peer.state.lock().unwrap().always = Some(behaviour);
        peer
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn next(&self, script: impl IntoIterator<Item = Behaviour>) {
        self.state.lock().unwrap().script.extend(script);
    }

    /// Cuts all connections, as a peer that restarts does.
    pub fn cut(&self) {
        for stream in self.state.lock().unwrap().open.drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.state.lock().unwrap().requests.clone()
    }

    /// The acknowledged events.
    pub fn taken(&self) -> Vec<Request> {
        self.requests().into_iter().filter(|request| request.status < 300).collect()
    }

    /// All spans that were acknowledged.
    pub fn spans(&self) -> Vec<oracle::Span> {
        let traces = self.taken().into_iter().filter(|request| request.path.ends_with("/traces"));
        let requests = traces.map(|request| oracle::TracesRequest::decode(&*request.body).unwrap());
        let resources = requests.flat_map(|request| request.resources);
        resources.flat_map(|resource| resource.scopes).flat_map(|scope| scope.spans).collect()
    }

    /// All log records that were acknowledged.
    pub fn logs(&self) -> Vec<oracle::LogRecord> {
        let logs = self.taken().into_iter().filter(|request| request.path.ends_with("/logs"));
        let requests = logs.map(|request| oracle::LogsRequest::decode(&*request.body).unwrap());
        let resources = requests.flat_map(|request| request.resources);
        resources.flat_map(|resource| resource.scopes).flat_map(|scope| scope.logs).collect()
    }

    /// All metrics that were acknowledged.
    pub fn metrics(&self) -> Vec<oracle::Metric> {
        let metrics = self.taken().into_iter().filter(|request| request.path.ends_with("/metrics"));
        let requests = metrics.map(|request| oracle::MetricsRequest::decode(&*request.body).unwrap());
        let resources = requests.flat_map(|request| request.resources);
        resources.flat_map(|resource| resource.scopes).flat_map(|scope| scope.metrics).collect()
    }
}

/// Serves a connection until it ends; nothing when it ended in the middle of a request.
pub fn serve_any(state: &Peer, read: impl Read, write: impl Write) -> Option<()> {
    serve(&state.state, read, write)
}

fn serve(state: &Mutex<State>, read: impl Read, mut write: impl Write) -> Option<()> {
    let mut read = BufReader::with_capacity(4096, read);
    loop {
        let mut line = String::new();
        if read.read_line(&mut line).ok()? == 0 {
            return Some(());
        }
        let path = line.split(' ').nth(1)?.to_owned();
        let mut headers = HashMap::new();
        loop {
            let mut line = String::new();
            read.read_line(&mut line).ok()?;
            let Some((name, value)) = line.trim().split_once(": ") else { break };
            headers.insert(name.to_lowercase(), value.to_owned());
        }
        let behaviour = {
            let mut state = state.lock().unwrap();
            let next = state.script.pop_front().or_else(|| state.always.clone());
            next.unwrap_or(Behaviour::Take)
        };
        let body = match &behaviour {
            Behaviour::CutAfter(bytes) => {
                let _cut = chunked(&mut read.by_ref().take(*bytes as u64));
                return None;
            }
            Behaviour::AnswerEarly(bytes, status, head) => {
                let _early = chunked(&mut read.by_ref().take(*bytes as u64));
                write!(write, "HTTP/1.1 {status} So\r\nContent-Length: 0\r\nConnection: close\r\n{head}\r\n")
                    .ok()?;
                write.flush().ok()?;
                return Some(());
            }
            Behaviour::Slow => chunked(&mut Slowly(&mut read))?,
            _ => chunked(&mut read)?,
        };
        let body = match headers.get("content-encoding").map(String::as_str) {
            Some("gzip") => {
                let mut plain = Vec::new();
                #[allow(clippy::disallowed_methods, reason = "a test's own bodies are small")]
                flate2::read::GzDecoder::new(&*body).read_to_end(&mut plain).unwrap();
                plain
            }
            _ => body,
        };
        let (status, head, answer) = match behaviour {
            Behaviour::Answer(status, head, answer) => (status, head, answer),
            Behaviour::HalfAnAnswer => {
                write.write_all(b"HTTP/1.1 200 OK\r\nContent-").ok()?;
                return None;
            }
            Behaviour::Garbage => {
                write.write_all(b"\x00\x01\x02 this is not HTTP\r\n\r\n").ok()?;
                return None;
            }
            Behaviour::Hold(barrier) => {
                barrier.wait();
                (200, String::new(), Vec::new())
            }
            Behaviour::TakeAndClose => {
                state.lock().unwrap().requests.push(Request { path, headers, body, status: 200 });
                write.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").ok()?;
                return Some(());
            }
            _ => (200, String::new(), Vec::new()),
        };
        state.lock().unwrap().requests.push(Request { path, headers, body, status });
        let len = answer.len();
        write!(write, "HTTP/1.1 {status} So\r\nContent-Length: {len}\r\n{head}\r\n").ok()?;
        write.write_all(&answer).ok()?;
        write.flush().ok()?;
    }
}

/// A chunked body, whole.
fn chunked(read: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let mut line = String::new();
        read.read_line(&mut line).ok()?;
        let size = usize::from_str_radix(line.trim(), 16).ok()?;
        let start = body.len();
        body.resize(start + size, 0);
        read.read_exact(&mut body[start..]).ok()?;
        let mut end = String::new();
        read.read_line(&mut end).ok()?;
        if end != "\r\n" {
            return None;
        }
        if size == 0 {
            return Some(body);
        }
    }
}

/// A few hundred bytes at a time, with a pause for the other side's buffers to fill.
struct Slowly<'a, R>(&'a mut R);

impl<R: BufRead> Read for Slowly<'_, R> {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        std::thread::yield_now();
        let len = room.len().min(300);
        self.0.read(&mut room[..len])
    }
}

impl<R: BufRead> BufRead for Slowly<'_, R> {
    fn fill_buf(&mut self) -> std::io::Result<&[u8]> {
        self.0.fill_buf().map(|bytes| &bytes[..bytes.len().min(300)])
    }

    fn consume(&mut self, amount: usize) {
        self.0.consume(amount);
    }
}
