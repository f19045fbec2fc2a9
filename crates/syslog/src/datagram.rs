//! Datagrams: UDP, and Unix sockets such as `/dev/log`.
//!
//! Two buffers: one is filled while the messages of the other are appended. When both wait, the kernel keeps datagrams as long as
//! its buffer suffices. It drops further ones of UDP, which are counted; senders to a Unix socket wait.

use crate::batch::{Messages, deliver, now_ns};
use crate::framing::trimmed;
use crate::kernel_drops::KernelDrops;
use crate::message::ParseSettings;
use crate::record::Origin;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::time::Duration;
use tidegate_ledger::Refusal;
use tidegate_log_intake::LogIntake;
use tokio::net::{UdpSocket, UnixDatagram};
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};

/// The length of a buffer.
const BUFFER: usize = 256 << 10;
/// How long a buffer is filled, at most, from its first datagram on.
const GATHER: Duration = Duration::from_millis(20);
/// How often the kernel's drops are read, while datagrams come.
const LOOK: Duration = Duration::from_secs(1);
/// Before each datagram: its length, the address and the port.
const FRONT: usize = 4 + 16 + 2;

/// A bound socket that does not block.
pub enum DatagramSocket {
    /// UDP.
    Udp(std::net::UdpSocket),
    /// A Unix datagram socket.
    Unix(std::os::unix::net::UnixDatagram),
}

/// Receives the datagrams of one listener.
pub struct DatagramReceiver {
    intake: LogIntake,
    parse: ParseSettings,
    max_message: usize,
}

enum Socket {
    Udp(UdpSocket, KernelDrops),
    Unix(UnixDatagram),
}

/// Datagrams in a buffer.
struct Filled {
    buffer: Box<[u8]>,
    len: usize,
    now_ns: u64,
}

impl DatagramReceiver {
    /// Heap of a listener's buffers, in bytes.
    pub const BUFFER_BYTES: usize = 2 * BUFFER;
    /// The longest message, in bytes.
    pub const MAX_MESSAGE: usize = 64 << 10;

    /// Gives datagrams to `intake`, of which it takes the first `max_message` bytes.
    #[must_use]
    pub fn new(intake: LogIntake, parse: ParseSettings, max_message: usize) -> DatagramReceiver {
        DatagramReceiver { intake, parse, max_message: max_message.clamp(1, Self::MAX_MESSAGE) }
    }

    /// Receives until the intake's shutdown begins, and appends what was received.
    ///
    /// # Errors
    /// When the socket cannot be used.
    pub async fn run(self, socket: DatagramSocket) -> io::Result<()> {
        let (socket, transport) = match socket {
            DatagramSocket::Udp(socket) => {
                let drops = KernelDrops::of(&socket);
                (Socket::Udp(UdpSocket::from_std(socket)?, drops), "udp")
            }
            DatagramSocket::Unix(socket) => (Socket::Unix(UnixDatagram::from_std(socket)?), "unix"),
        };
        let (filled, to_append) = mpsc::channel(1);
        let (empty, free) = mpsc::channel(2);
        for _ in 0..2 {
            // There is room for two.
            let _sent = empty.try_send(vec![0; BUFFER].into_boxed_slice());
        }
        tokio::join!(self.receive(socket, free, filled), self.append(transport, to_append, empty));
        Ok(())
    }

    async fn receive(
        &self,
        mut socket: Socket,
        mut free: mpsc::Receiver<Box<[u8]>>,
        filled: mpsc::Sender<Filled>,
    ) {
        let shutdown = self.intake.shutdown();
        let mut looked = Instant::now();
        let mut is_counted = true;
        loop {
            let waiting = async {
                let buffer = free.recv().await;
                if is_counted {
                    socket.readable().await;
                    return (buffer, true);
                }
                let is_ready = timeout(LOOK, socket.readable()).await.is_ok();
                (buffer, is_ready)
            };
            let (buffer, is_ready) = tokio::select! {
                biased;
                () = shutdown.begun() => break,
                waited = waiting => waited,
            };
            let Some(mut buffer) = buffer else { break };
            let mut len = 0;
            if is_ready {
                let until = Instant::now() + GATHER;
                while self.fill(&socket, &mut buffer, &mut len) {
                    if timeout_at(until, socket.readable()).await.is_err() {
                        break;
                    }
                }
                is_counted = false;
            }
            if looked.elapsed() >= LOOK {
                self.intake.refuse(Refusal::Memory, socket.drops());
                (looked, is_counted) = (Instant::now(), true);
            }
            if filled.send(Filled { buffer, len, now_ns: now_ns() }).await.is_err() {
                break;
            }
        }
        self.intake.refuse(Refusal::Memory, socket.drops());
    }

    /// Receives what is there; says whether there is room for more.
    fn fill(&self, socket: &Socket, buffer: &mut [u8], len: &mut usize) -> bool {
        loop {
            let Some(front) = buffer.get_mut(*len..) else { return false };
            if front.len() < FRONT + self.max_message {
                return false;
            }
            let Some((front, body)) = front.split_at_mut_checked(FRONT) else { return false };
            let Some(body) = body.get_mut(..self.max_message) else { return false };
            match socket.try_receive(body) {
                Ok((received, peer)) => {
                    put_front(front, received, peer);
                    *len += FRONT + received;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
                // Such as an ICMP error for what this socket never sent.
                Err(_) => return false,
            }
        }
    }

    async fn append(
        &self,
        transport: &'static str,
        mut filled: mpsc::Receiver<Filled>,
        empty: mpsc::Sender<Box<[u8]>>,
    ) {
        while let Some(Filled { buffer, len, now_ns }) = filled.recv().await {
            let bytes = buffer.get(..len).unwrap_or_default();
            let origin = Origin { peer: None, transport, now_ns };
            let messages = Datagrams { bytes, at: 0, used: 0, origin };
            // Also when the gateway stops: what is left is counted.
            let _stopping = deliver(&self.intake, &self.parse, messages).await;
            let _nobody_receives = empty.send(buffer).await;
        }
    }
}

impl Socket {
    async fn readable(&self) {
        let ready = match self {
            Socket::Udp(socket, _) => socket.readable().await,
            Socket::Unix(socket) => socket.readable().await,
        };
        // An error comes again, with its reason, where it is received.
        drop(ready);
    }

    fn try_receive(&self, body: &mut [u8]) -> io::Result<(usize, Option<SocketAddr>)> {
        match self {
            Socket::Udp(socket, _) => socket.try_recv_from(body).map(|(len, peer)| (len, Some(peer))),
            Socket::Unix(socket) => socket.try_recv(body).map(|len| (len, None)),
        }
    }

    fn drops(&mut self) -> u64 {
        match self {
            Socket::Udp(_, drops) => drops.take(),
            Socket::Unix(_) => 0,
        }
    }
}

fn put_front(front: &mut [u8], len: usize, peer: Option<SocketAddr>) {
    let (address, port) = match peer.map(|peer| (peer.ip(), peer.port())) {
        Some((IpAddr::V4(address), port)) => (address.to_ipv6_mapped(), port),
        Some((IpAddr::V6(address), port)) => (address, port),
        None => (Ipv6Addr::UNSPECIFIED, 0),
    };
    let len = u32::try_from(len).unwrap_or(0).to_le_bytes();
    let fields = len.into_iter().chain(address.octets()).chain(port.to_le_bytes());
    front.iter_mut().zip(fields).for_each(|(to, from)| *to = from);
}

/// The datagrams in a buffer.
#[derive(Clone)]
struct Datagrams<'a> {
    bytes: &'a [u8],
    at: usize,
    /// The bytes of datagrams, without what is before each.
    used: usize,
    origin: Origin,
}

impl Messages for Datagrams<'_> {
    fn next(&mut self) -> Option<(&[u8], Origin)> {
        loop {
            let rest = self.bytes.get(self.at..)?;
            let (len, rest) = rest.split_first_chunk::<4>()?;
            let (address, rest) = rest.split_first_chunk::<16>()?;
            let (port, rest) = rest.split_first_chunk::<2>()?;
            let len = u32::from_le_bytes(*len) as usize;
            let message = trimmed(rest.get(..len)?);
            self.at += FRONT + len;
            self.used += len;
            let (address, port) = (Ipv6Addr::from(*address), u16::from_le_bytes(*port));
            let peer = SocketAddr::new(IpAddr::V6(address), port);
            let peer = (!address.is_unspecified()).then_some(peer);
            if !message.is_empty() {
                return Some((message, Origin { peer, ..self.origin }));
            }
        }
    }

    fn used(&self) -> usize {
        self.used
    }

    fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }
}
