//! An HTTP proxy, as companies have them before the internet: it forwards requests and opens tunnels.

use crate::http::Client;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Knows some hosts by names that nobody else knows. It serves until the test's end.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    /// Where the host `name:port` is.
    hosts: BTreeMap<String, SocketAddr>,
    /// `Proxy-Authorization` that requests must have.
    credentials: String,
    seen: Vec<String>,
    refused: usize,
}

/// A request to the proxy: its method, its target, its other header lines.
struct Head {
    method: String,
    target: String,
    lines: Vec<String>,
}

impl Proxy {
    /// One that knows these hosts, `name:port`, and wants these credentials.
    ///
    /// # Panics
    /// When there is no port to be had.
    pub fn start(hosts: &[(&str, SocketAddr)], credentials: &str) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let hosts = hosts.iter().map(|(name, address)| ((*name).to_owned(), *address)).collect();
        let state = State { hosts, credentials: credentials.to_owned(), ..State::default() };
        let state = Arc::new(Mutex::new(state));
        let shared = Arc::clone(&state);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let state = Arc::clone(&shared);
                thread::spawn(move || serve(stream, &state));
            }
        });
        Proxy { address, state }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// From now on it wants these credentials.
    pub fn demand(&self, credentials: &str) {
        lock(&self.state).credentials = credentials.to_owned();
    }

    /// Method and target of each request that it let pass.
    pub fn seen(&self) -> Vec<String> {
        lock(&self.state).seen.clone()
    }

    /// How many requests it answered with 407.
    pub fn refused(&self) -> usize {
        lock(&self.state).refused
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Serves a connection until its end.
fn serve(stream: TcpStream, state: &Mutex<State>) -> io::Result<()> {
    let mut writer = stream.try_clone()?;
    let mut reader = BufReader::new(stream);
    while let Some(head) = read_head(&mut reader)? {
        let length = head.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        if head.header("proxy-authorization") != Some(&lock(state).credentials) {
            lock(state).refused += 1;
            answer(&mut writer, "407 Proxy Authentication Required", b"who are you?")?;
            continue;
        }
        let rest = head.target.trim_start_matches("http://");
        let (host, path) = rest.find('/').map_or((rest, "/"), |slash| rest.split_at(slash));
        let host = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
        let Some(address) = lock(state).hosts.get(&host).copied() else {
            answer(&mut writer, "502 Bad Gateway", b"no such host")?;
            continue;
        };
        let Ok(server) = TcpStream::connect(address) else {
            answer(&mut writer, "502 Bad Gateway", b"nobody is there")?;
            continue;
        };
        lock(state).seen.push(format!("{} {}", head.method, head.target));
        if head.method == "CONNECT" {
            writer.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")?;
            return splice(reader, writer, server);
        }
        let answered = forward(address, &head, path, &body)?;
        answer(&mut writer, &answered.0, &answered.1)?;
    }
    Ok(())
}

impl Head {
    fn header(&self, name: &str) -> Option<&str> {
        let pairs = self.lines.iter().filter_map(|line| line.split_once(':'));
        let mut found = pairs.filter(|(known, _)| known.eq_ignore_ascii_case(name));
        found.next().map(|(_, value)| value.trim())
    }
}

fn read_head(reader: &mut impl BufRead) -> io::Result<Option<Head>> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let first = lines.remove(0);
    let mut words = first.split(' ').map(str::to_owned);
    let (Some(method), Some(target)) = (words.next(), words.next()) else {
        return Err(io::ErrorKind::InvalidData.into());
    };
    Ok(Some(Head { method, target, lines }))
}

/// Sends a request on, without what is meant for the proxy; status and body of the answer.
fn forward(address: SocketAddr, head: &Head, path: &str, body: &[u8]) -> io::Result<(String, Vec<u8>)> {
    let mut text = format!("{} {path} HTTP/1.1\r\n", head.method);
    for line in head.lines.iter().filter(|line| !line.to_ascii_lowercase().starts_with("proxy-")) {
        text.push_str(&format!("{line}\r\n"));
    }
    let mut client = Client::connect(address)?;
    client.send(format!("{text}\r\n").as_bytes())?;
    client.send(body)?;
    let answer = client.answer()?;
    Ok((format!("{} Forwarded", answer.status), answer.body))
}

fn answer(writer: &mut TcpStream, status: &str, body: &[u8]) -> io::Result<()> {
    let mut text = format!("HTTP/1.1 {status}\r\n");
    // A 204 has no body, and so no length.
    if !status.starts_with("204") {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    writer.write_all(format!("{text}\r\n").as_bytes())?;
    writer.write_all(body)
}

/// Carries bytes both ways until one side ends.
fn splice(mut reader: BufReader<TcpStream>, mut writer: TcpStream, server: TcpStream) -> io::Result<()> {
    let mut from_server = server.try_clone()?;
    let back = thread::spawn(move || {
        let _ended = io::copy(&mut from_server, &mut writer);
        writer.shutdown(std::net::Shutdown::Both)
    });
    let mut to_server = server;
    let _ended = io::copy(&mut reader, &mut to_server);
    let _closed = to_server.shutdown(std::net::Shutdown::Both);
    let _joined = back.join();
    Ok(())
}
