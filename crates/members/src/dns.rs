//! A DNS client for names with several addresses: stub resolver over UDP, and TCP for what does not fit a datagram.
//!
//! The system's own resolver (`getaddrinfo`) knows no SRV records, blocks a thread, and gives no sign of whether an answer is whole.

mod config;
mod message;

pub(crate) use config::{ResolverConfig, in_hosts};
pub(crate) use message::{Record, RecordType, is_name};

use message::{Answer, NoAnswer};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

/// The longest datagram that is read; what is longer comes over TCP. Without EDNS servers send 512 bytes at most, and some more.
const DATAGRAM: usize = 4 << 10;
/// The most bytes that one look-up holds beyond its records: a message over TCP of the greatest length.
pub(crate) const LOOKUP_BYTES: usize = 64 << 10;

/// A name could not be looked up.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LookupError {
    /// No server answered in time.
    #[error("no answer from {0}")]
    Silence(SocketAddr),
    /// A server answered that it failed, with this response code (RFC 1035, section 4.1.1).
    #[error("{0} answered with code {1} ({name})", name = code_name(*.1))]
    Code(SocketAddr, u8),
    /// A server cannot be reached.
    #[error("asking {0}: {1}")]
    Connection(SocketAddr, String),
    /// An answer cannot be read.
    #[error("the answer of {0} is malformed")]
    Malformed(SocketAddr),
}

fn code_name(code: u8) -> &'static str {
    match code {
        1 => "FORMERR",
        2 => "SERVFAIL",
        4 => "NOTIMP",
        5 => "REFUSED",
        _ => "unknown",
    }
}

/// A question that is put to servers.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lookup<'a> {
    pub(crate) config: &'a ResolverConfig,
    pub(crate) kind: RecordType,
    /// Records beyond one more than this are ignored.
    pub(crate) most: usize,
}

impl Lookup<'_> {
    /// The records that `name` has: none where it has none, or does not exist.
    ///
    /// Candidates of the search list are tried in their order, until one has records. One that could not be looked up does not
    /// keep the next from being tried; it is an error where none has records.
    ///
    /// # Errors
    /// [`LookupError`].
    pub(crate) async fn records_of(self, name: &str) -> Result<Vec<Record>, LookupError> {
        let mut failure = None;
        for name in self.config.candidates(name) {
            match self.ask_all(&name).await {
                Ok(records) if records.is_empty() => {}
                Ok(records) => return Ok(records),
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(Vec::new()), Err)
    }

    /// Asks one server after the other until one answers.
    async fn ask_all(self, name: &str) -> Result<Vec<Record>, LookupError> {
        let mut failure = None;
        for _ in 0..self.config.attempts {
            for server in &self.config.servers {
                match self.ask(*server, name).await {
                    Ok(records) => return Ok(records),
                    Err(error) => failure = Some(error),
                }
            }
        }
        failure.map_or(Ok(Vec::new()), Err)
    }

    async fn ask(self, server: SocketAddr, name: &str) -> Result<Vec<Record>, LookupError> {
        let question = message::question(rand::random(), name, self.kind);
        let patience = self.config.timeout;
        let silence = |_| LookupError::Silence(server);
        let mut answer = timeout(patience, self.over_udp(server, &question)).await.map_err(silence)??;
        if answer == Answer::Truncated {
            answer = timeout(patience, self.over_tcp(server, &question)).await.map_err(silence)??;
        }
        match answer {
            Answer::Records(records) => Ok(records),
            Answer::Failed(code) => Err(LookupError::Code(server, code)),
            // A part of the addresses would look as if the others had left.
            Answer::Truncated => Err(LookupError::Malformed(server)),
        }
    }

    async fn over_udp(self, server: SocketAddr, question: &[u8]) -> Result<Answer, LookupError> {
        let failed = |error: std::io::Error| LookupError::Connection(server, error.to_string());
        let any: IpAddr =
            if server.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        // A socket for each question: its port is as hard to guess as the id. Connected, it gets nobody else's datagrams.
        let socket = UdpSocket::bind((any, 0)).await.map_err(failed)?;
        socket.connect(server).await.map_err(failed)?;
        socket.send(question).await.map_err(failed)?;
        let mut datagram = vec![0; DATAGRAM];
        loop {
            let length = socket.recv(&mut datagram).await.map_err(failed)?;
            let message = datagram.get(..length).unwrap_or_default();
            match message::answer(message, question, self.kind, self.most) {
                Ok(answer) => return Ok(answer),
                Err(NoAnswer::Foreign) => {}
                Err(NoAnswer::Malformed) if length == DATAGRAM => return Ok(Answer::Truncated),
                Err(NoAnswer::Malformed) => return Err(LookupError::Malformed(server)),
            }
        }
    }

    /// RFC 7766: the same messages, each after its length.
    async fn over_tcp(self, server: SocketAddr, question: &[u8]) -> Result<Answer, LookupError> {
        let failed = |error: std::io::Error| LookupError::Connection(server, error.to_string());
        let mut stream = TcpStream::connect(server).await.map_err(failed)?;
        let length = u16::try_from(question.len()).unwrap_or(0);
        let framed = [&length.to_be_bytes()[..], question].concat();
        stream.write_all(&framed).await.map_err(failed)?;
        let length = stream.read_u16().await.map_err(failed)?;
        let mut message = vec![0; usize::from(length)];
        stream.read_exact(&mut message).await.map_err(failed)?;
        message::answer(&message, question, self.kind, self.most).map_err(|_| LookupError::Malformed(server))
    }
}

/// Reads `message` as the answer to a question for `name`. For fuzzing.
#[cfg(fuzzing)]
pub fn fuzz(message: &[u8], name: &str) {
    if !is_name(name) {
        return;
    }
    for kind in [RecordType::A, RecordType::Aaaa, RecordType::Srv] {
        let mut question = message::question(0, name, kind);
        // Every input is an answer to the question asked.
        if let Some(id) = message.first_chunk::<2>() {
            question.splice(..2, *id);
        }
        if let Ok(Answer::Records(records)) = message::answer(message, &question, kind, 8) {
            assert!(records.len() <= 9);
            for record in records {
                assert!(!matches!(record, Record::Service(target, _) if !is_name(&target)));
            }
        }
    }
}
