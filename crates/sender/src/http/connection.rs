//! A connection to a peer, and how long its calls may take.

use super::Resolver;
use crate::config::{Address, Endpoint};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tidegate_sender_fork::Inherited;

/// Sockets wake up this often to look whether they should give up.
const SLICE: Duration = Duration::from_millis(100);

/// Why a request has no answer. All of these are worth another try.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// no connection, or it broke
    Broken,
    /// its time was up
    Late,
    /// the peer does not speak HTTP
    Garbled,
}

/// How long one request may take, and who may call it off.
#[derive(Clone, Copy)]
pub(crate) struct Deadline<'a> {
    pub(crate) until: Instant,
    pub(crate) called_off: &'a AtomicBool,
}

impl Deadline<'_> {
    pub(super) fn left(&self) -> Result<Duration, Failure> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() || self.called_off.load(Ordering::Relaxed) { Err(Failure::Late) } else { Ok(left) }
    }

    fn after(&self, error: &io::Error) -> Result<(), Failure> {
        match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => self.left().map(drop),
            _ => Err(Failure::Broken),
        }
    }
}

pub(crate) struct Connection {
    /// A forked child does not keep it. Dropped before the stream, so that the number is not another's yet.
    _not_inherited: Option<Inherited>,
    stream: Stream,
    /// It carried an answered request before, so the peer may have closed it in the meantime.
    pub(crate) used: bool,
}

enum Stream {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
    #[cfg(feature = "tls")]
    Tls(Box<rustls::StreamOwned<rustls::ClientConnection, TcpStream>>),
}

impl Connection {
    pub(crate) fn open(
        endpoint: &Endpoint,
        names: &mut Resolver,
        #[cfg(feature = "tls")] tls: Option<&super::TlsClient>,
        patience: Deadline<'_>,
    ) -> Result<Connection, Failure> {
        let (stream, guard) = match &endpoint.address {
            Address::Tcp { host, port } => {
                let stream = tcp(names.addresses(host, *port, patience), patience)?;
                let guard = guarded(&stream);
                (Stream::Tcp(stream), guard)
            }
            #[cfg(unix)]
            Address::Unix(path) => {
                let stream = std::os::unix::net::UnixStream::connect(path).map_err(|_| Failure::Broken)?;
                let guard = guarded(&stream);
                let set = stream.set_read_timeout(Some(SLICE)).and(stream.set_write_timeout(Some(SLICE)));
                set.map_err(|_| Failure::Broken)?;
                (Stream::Unix(stream), guard)
            }
            #[cfg(feature = "tls")]
            Address::Tls { host, port } => {
                let session = tls.ok_or(Failure::Broken)?.session(host).ok_or(Failure::Broken)?;
                let stream = tcp(names.addresses(host, *port, patience), patience)?;
                let guard = guarded(&stream);
                (Stream::Tls(Box::new(rustls::StreamOwned::new(session, stream))), guard)
            }
        };
        Ok(Connection { _not_inherited: guard, stream, used: false })
    }

    /// Over a socket that is open already.
    #[cfg(all(fuzzing, unix))]
    pub(crate) fn over(stream: std::os::unix::net::UnixStream) -> Connection {
        Connection { _not_inherited: None, stream: Stream::Unix(stream), used: false }
    }

    pub(crate) fn write_all(&mut self, mut bytes: &[u8], patience: Deadline<'_>) -> Result<(), Failure> {
        while !bytes.is_empty() {
            match self.stream.as_write().write(bytes) {
                Ok(0) => return Err(Failure::Broken),
                Ok(written) => bytes = bytes.get(written..).unwrap_or_default(),
                Err(error) => patience.after(&error)?,
            }
            patience.left()?;
        }
        loop {
            // Only TLS keeps something back.
            match self.stream.as_write().flush() {
                Ok(()) => return Ok(()),
                Err(error) => patience.after(&error)?,
            }
        }
    }

    /// Reads something; 0 is the end.
    pub(crate) fn read(&mut self, room: &mut [u8], patience: Deadline<'_>) -> Result<usize, Failure> {
        loop {
            match self.stream.as_read().read(room) {
                Ok(read) => return Ok(read),
                // Peers that end TLS without saying goodbye.
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(0),
                Err(error) => patience.after(&error)?,
            }
        }
    }
}

impl Stream {
    fn as_write(&mut self) -> &mut dyn Write {
        match self {
            Stream::Tcp(stream) => stream,
            #[cfg(unix)]
            Stream::Unix(stream) => stream,
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream,
        }
    }

    fn as_read(&mut self) -> &mut dyn Read {
        match self {
            Stream::Tcp(stream) => stream,
            #[cfg(unix)]
            Stream::Unix(stream) => stream,
            #[cfg(feature = "tls")]
            Stream::Tls(stream) => stream,
        }
    }
}

/// Tries the addresses of a name one after the other.
fn tcp(addresses: impl Iterator<Item = SocketAddr>, patience: Deadline<'_>) -> Result<TcpStream, Failure> {
    for address in addresses {
        let Ok(stream) = TcpStream::connect_timeout(&address, patience.left()?) else { continue };
        let set = stream
            .set_nodelay(true)
            .and(stream.set_read_timeout(Some(SLICE)))
            .and(stream.set_write_timeout(Some(SLICE)));
        if set.is_ok() {
            return Ok(stream);
        }
    }
    Err(Failure::Broken)
}

#[cfg(unix)]
fn guarded(stream: &impl std::os::fd::AsRawFd) -> Option<Inherited> {
    Some(Inherited::guard(stream))
}

#[cfg(not(unix))]
fn guarded<T>(_stream: &T) -> Option<Inherited> {
    None
}
