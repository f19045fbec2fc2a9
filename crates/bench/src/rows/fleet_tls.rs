//! Resident memory of agents that wait behind TLS.

use super::connections::{allow_files, settled};
use super::fleet::{MOST_AGENTS, POLICY, member, operate, put_policy};
use super::tls::{client, self_signed};
use crate::Failure;
use crate::figure::{Bar, Bench, Figure, Row};
use crate::subject::{Folder, Subject, free_address};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

pub(super) const ROW: Row = Row {
    name: "fleet-tls",
    what: "resident memory of agents that wait behind TLS 1.3, each after a policy of 200 KB",
    measure,
};

const AGENTS: usize = 5_000;
/// Agents that come first: what is made once is made for them.
const FIRST: usize = 500;

fn measure(bench: &Bench) -> Result<Vec<Figure>, Failure> {
    allow_files((AGENTS + FIRST) as u64 + 256)?;
    let folder = Folder::new(bench)?;
    let (certificate, key) = self_signed(folder.path())?;
    let address = free_address()?;
    let listen = format!(
        "fleet: {{ address: {address}, long_poll: 1h }}, tls: {{ fleet: {{ cert_file: {certificate:?}, key_file: {key:?} }} }}"
    );
    let settings = format!(
        "memory: 256MiB\nlimits: {{ connections: {0}, connections_per_peer: {0} }}\nsinks: {{ out: {{ type: blackhole }} }}",
        AGENTS + FIRST + 100
    );
    let subject = Subject::start_listening(&folder, &listen, &settings)?;
    put_policy(&subject, 1)?;
    let order = format!("{{\"policy_id\":\"{POLICY}\"}}");
    let token = member(&operate(&subject, "POST", "/fleet/tokens", order.as_bytes())?, "token")?;
    let client = Arc::new(client(&certificate)?);
    let come = |count: usize| -> Result<Vec<TcpStream>, Failure> {
        (0..count).map(|_| waiting(address, &client, &token)).collect()
    };
    let _first = come(FIRST)?;
    let before = settled(&subject)?;
    let _agents = come(AGENTS)?;
    let after = settled(&subject)?;
    let (each, mib) = ((after - before) / AGENTS as f64, f64::from(1 << 20));
    Ok(vec![Figure {
        name: ROW.name,
        what: "resident memory with 100,000 agents that wait behind TLS, from what each of these takes, MiB"
            .to_owned(),
        bar: Bar::AtMost(900.0),
        measured: (before + each * (MOST_AGENTS as f64 - FIRST as f64)) / mib,
        details: vec![("agents", AGENTS as f64), ("bytes each", each), ("MiB with all", after / mib)],
    }])
}

/// An agent that has enrolled, has its policy and waits. Of the client only the socket is kept: its secrets are not needed any more.
fn waiting(address: SocketAddr, client: &Arc<ClientConfig>, token: &str) -> Result<TcpStream, Failure> {
    let socket = TcpStream::connect(address)?;
    socket.set_nodelay(true)?;
    socket.set_read_timeout(Some(Duration::from_secs(30)))?;
    let name = ServerName::from(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let mut stream = StreamOwned::new(ClientConnection::new(Arc::clone(client), name)?, socket);
    send(&mut stream, "enroll", token, "{\"type\":\"PERMANENT\"}")?;
    let answer = answer(&mut stream)?;
    let (id, key) = (member(&answer, "access_api_key_id")?, member(&answer, "access_api_key")?);
    let route = format!("{id}/checkin");
    send(&mut stream, &route, &key, "{\"status\":\"online\"}")?;
    self::answer(&mut stream)?;
    let has = format!("{{\"status\":\"online\",\"agent_policy_id\":\"{POLICY}\",\"policy_revision_idx\":1}}");
    send(&mut stream, &route, &key, &has)?;
    Ok(stream.sock)
}

type Tls = StreamOwned<ClientConnection, TcpStream>;

fn send(stream: &mut Tls, route: &str, key: &str, body: &str) -> Result<(), Failure> {
    let request = format!(
        "POST /api/fleet/agents/{route} HTTP/1.1\r\nHost: fleet\r\nAuthorization: ApiKey {key}\r\n\
         User-Agent: Elastic Agent v9.1.0\r\nAccept-Encoding: gzip\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    Ok(stream.write_all(request.as_bytes())?)
}

/// The whole of an answer, which must be a 200.
fn answer(stream: &mut Tls) -> Result<String, Failure> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    // One at a time costs little: the connection has a buffer.
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.extend_from_slice(&byte);
    }
    let head = String::from_utf8_lossy(&head).to_ascii_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body)?;
    let body = String::from_utf8_lossy(&body).into_owned();
    match head.starts_with("http/1.1 200 ") {
        true => Ok(body),
        false => Err(Failure(format!("an agent was refused: {head}{body}"))),
    }
}
