//! Agents that speak OpAMP over WebSocket: each connects, says what it is, and then sends heartbeats, as the Collector's extension does.

use crate::protobuf::{field, varint};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::time::sleep;

/// Connections from one address of this machine: there are not more ports.
const PER_ADDRESS: usize = 20_000;
/// How long an agent waits before it connects again.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest head of an answer, and the longest message, in bytes.
const LONGEST: usize = 1 << 20;
/// Reports its status, and takes remote configurations.
const CAPABILITIES: u64 = 1 | 2 | 4096;
/// Attributes of an agent beside its name.
const ATTRIBUTES: usize = 11;
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];
/// Opcodes of frames (RFC 6455, section 5.2).
const BINARY: u8 = 2;
const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

/// The agents to simulate.
#[derive(Debug, Clone, Copy)]
pub struct OpampSettings {
    /// Where they connect, without a token.
    pub address: SocketAddr,
    /// How many there are.
    pub agents: usize,
    /// They come spread over this time.
    pub spread: Duration,
    /// Between two heartbeats of an agent.
    pub heartbeat: Duration,
}

/// Running agents. Dropping it ends them.
pub struct OpampAgents {
    shared: Arc<Shared>,
    /// Each of the threads ends when its sender is gone.
    ends: Vec<oneshot::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

/// How far the agents are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpampProgress {
    /// Agents whose first message was answered.
    pub connected: u64,
    /// Heartbeats that were answered.
    pub heartbeats: u64,
    /// Connections that ended, or were not made.
    pub lost: u64,
}

struct Shared {
    settings: OpampSettings,
    connected: AtomicU64,
    heartbeats: AtomicU64,
    lost: AtomicU64,
}

impl OpampAgents {
    /// Starts them, on threads of their own.
    ///
    /// # Errors
    /// When there are no threads.
    pub fn start(settings: OpampSettings, threads: usize) -> io::Result<OpampAgents> {
        let (connected, heartbeats, lost) = Default::default();
        let shared = Arc::new(Shared { settings, connected, heartbeats, lost });
        let mut running = OpampAgents { shared, ends: Vec::new(), threads: Vec::new() };
        for thread in 0..threads {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (end, ended) = oneshot::channel::<()>();
            let shared = Arc::clone(&running.shared);
            let work = move || {
                for number in (thread..settings.agents).step_by(threads) {
                    runtime.spawn(live(Arc::clone(&shared), number));
                }
                // Its sender is dropped and never used.
                let _ended = runtime.block_on(ended);
            };
            running.ends.push(end);
            running.threads.push(std::thread::Builder::new().name("opamp".to_owned()).spawn(work)?);
        }
        Ok(running)
    }

    /// How far they are.
    pub fn progress(&self) -> OpampProgress {
        let Shared { connected, heartbeats, lost, .. } = &*self.shared;
        OpampProgress {
            connected: connected.load(Relaxed),
            heartbeats: heartbeats.load(Relaxed),
            lost: lost.load(Relaxed),
        }
    }
}

impl Drop for OpampAgents {
    fn drop(&mut self) {
        self.ends.clear();
        for thread in self.threads.drain(..) {
            // A panic of an agent was reported where it happened.
            let _ended = thread.join();
        }
    }
}

/// An agent, which connects again when its connection ends.
async fn live(shared: Arc<Shared>, number: usize) {
    let OpampSettings { agents, spread, .. } = shared.settings;
    let uid: [u8; 16] = rand::random();
    sleep(spread.mul_f64(number as f64 / agents.max(1) as f64)).await;
    loop {
        if work(&shared, number, &uid).await.is_err() {
            shared.lost.fetch_add(1, Relaxed);
        }
        sleep(PAUSE.mul_f64(0.5 + rand::random::<f64>())).await;
    }
}

/// Works on one connection until it ends.
async fn work(shared: &Shared, number: usize, uid: &[u8; 16]) -> io::Result<()> {
    let OpampSettings { address, heartbeat, .. } = shared.settings;
    let mut stream = connect(address, number).await?;
    let mut sequence = 1;
    send(&mut stream, BINARY, &message(uid, sequence, &description(number))).await?;
    answer(&mut stream).await?;
    shared.connected.fetch_add(1, Relaxed);
    // Not all in the same moment.
    sleep(heartbeat.mul_f64(rand::random())).await;
    loop {
        sequence += 1;
        send(&mut stream, BINARY, &message(uid, sequence, &[])).await?;
        answer(&mut stream).await?;
        shared.heartbeats.fetch_add(1, Relaxed);
        sleep(heartbeat).await;
    }
}

/// Connects, and changes the protocol to WebSocket.
async fn connect(address: SocketAddr, number: usize) -> io::Result<TcpStream> {
    let socket = TcpSocket::new_v4()?;
    let third = u8::try_from(1 + number / PER_ADDRESS).unwrap_or(u8::MAX);
    socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, third, 1), 0)))?;
    let mut stream = socket.connect(address).await?;
    stream.set_nodelay(true)?;
    let request = format!(
        "GET /v1/opamp HTTP/1.1\r\nHost: {address}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    let mut head = Vec::new();
    // One at a time: what is behind the head belongs to the next.
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await?);
        if head.len() > LONGEST {
            return Err(io::Error::other("the head of the answer is too long"));
        }
    }
    match head.starts_with(b"HTTP/1.1 101 ") {
        true => Ok(stream),
        false => Err(io::Error::other(String::from_utf8_lossy(&head).into_owned())),
    }
}

/// `AgentToServer` with more fields behind the ones that all have.
fn message(uid: &[u8; 16], sequence: u64, more: &[u8]) -> Vec<u8> {
    // The header of OpAMP's messages over WebSocket.
    let mut out = vec![0];
    out.extend_from_slice(&field(1, uid));
    out.push(2 << 3);
    varint(&mut out, sequence);
    out.push(4 << 3);
    varint(&mut out, CAPABILITIES);
    out.extend_from_slice(more);
    out
}

/// The field `agent_description`.
fn description(number: usize) -> Vec<u8> {
    let attribute = |list: u8, name: &str, value: &str| {
        let value = field(2, &field(1, value.as_bytes()));
        field(list, &[field(1, name.as_bytes()), value].concat())
    };
    let mut attributes = attribute(1, "service.name", "otelcol");
    for at in 0..ATTRIBUTES {
        attributes.extend(attribute(2, &format!("host.attribute.{at}"), &format!("value-{number}-{at}")));
    }
    field(3, &attributes)
}

/// Sends a frame, masked as those of clients are.
async fn send(stream: &mut TcpStream, opcode: u8, payload: &[u8]) -> io::Result<()> {
    let mut frame = vec![0x80 | opcode];
    match u8::try_from(payload.len()).ok().filter(|len| *len < 126) {
        Some(len) => frame.push(0x80 | len),
        None => {
            frame.push(0x80 | 126);
            let len = u16::try_from(payload.len()).map_err(io::Error::other)?;
            frame.extend_from_slice(&len.to_be_bytes());
        }
    }
    frame.extend_from_slice(&MASK);
    frame.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    stream.write_all(&frame).await
}

/// Waits for a message, and answers pings meanwhile.
async fn answer(stream: &mut TcpStream) -> io::Result<()> {
    loop {
        let opcode = stream.read_u8().await? & 0xf;
        let len = match stream.read_u8().await? & 0x7f {
            126 => usize::from(stream.read_u16().await?),
            127 => usize::try_from(stream.read_u64().await?).unwrap_or(usize::MAX),
            len => usize::from(len),
        };
        if len > LONGEST {
            return Err(io::Error::other("a message is too long"));
        }
        let mut payload = vec![0; len];
        stream.read_exact(&mut payload).await?;
        match opcode {
            BINARY => return Ok(()),
            PING => send(stream, PONG, &payload).await?,
            CLOSE => return Err(io::Error::other("the server closed the connection")),
            _ => {}
        }
    }
}
