//! A connection to a peer, and how long its calls may take.

use crate::config::{Address, Endpoint};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

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
pub(crate) struct Patience<'a> {
    pub(crate) until: Instant,
    pub(crate) called_off: &'a AtomicBool,
}

impl Patience<'_> {
    fn left(&self) -> Result<Duration, Failure> {
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
        #[cfg(feature = "tls")] tls: Option<&super::Tls>,
        patience: Patience<'_>,
    ) -> Result<Connection, Failure> {
        let stream = match &endpoint.address {
            Address::Tcp { host, port } => Stream::Tcp(tcp(host, *port, patience)?),
            #[cfg(unix)]
            Address::Unix(path) => {
                let stream = std::os::unix::net::UnixStream::connect(path).map_err(|_| Failure::Broken)?;
                let set = stream.set_read_timeout(Some(SLICE)).and(stream.set_write_timeout(Some(SLICE)));
                set.map_err(|_| Failure::Broken)?;
                Stream::Unix(stream)
            }
            #[cfg(feature = "tls")]
            Address::Tls { host, port } => {
                let tls = tls.ok_or(Failure::Broken)?.session(host).ok_or(Failure::Broken)?;
                Stream::Tls(Box::new(rustls::StreamOwned::new(tls, tcp(host, *port, patience)?)))
            }
        };
        Ok(Connection { stream, used: false })
    }

    /// Over a socket that is open already.
    #[cfg(all(fuzzing, unix))]
    pub(crate) fn over(stream: std::os::unix::net::UnixStream) -> Connection {
        Connection { stream: Stream::Unix(stream), used: false }
    }

    pub(crate) fn write_all(&mut self, mut bytes: &[u8], patience: Patience<'_>) -> Result<(), Failure> {
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
    pub(crate) fn read(&mut self, room: &mut [u8], patience: Patience<'_>) -> Result<usize, Failure> {
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
fn tcp(host: &str, port: u16, patience: Patience<'_>) -> Result<TcpStream, Failure> {
    for address in (host, port).to_socket_addrs().map_err(|_| Failure::Broken)? {
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
