//! A connection to a peer, made in steps that can be told apart.

use super::{Failure, LooksLike, NetworkPath};
use hyper::header::HeaderValue;
use rustls::pki_types::ServerName;
use rustls::{CertificateError, Error as TlsError};
use std::cell::Cell;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tidegate_sinks::{Probe, ProbeProxy};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, lookup_host};
use tokio_rustls::TlsConnector;

/// The longest answer of a proxy to `CONNECT`, in bytes.
const LONGEST_HEAD: usize = 8 << 10;
/// The most addresses of a name that are tried.
const MOST_ADDRESSES: usize = 8;

/// A step on the way to an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Step {
    Resolve,
    Connect,
    Proxy,
    Tls,
    Request,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Step::Resolve => "looking up the name",
            Step::Connect => "connecting",
            Step::Proxy => "asking the proxy for a tunnel",
            Step::Tls => "the TLS handshake",
            Step::Request => "the request",
        })
    }
}

/// A byte stream to a peer.
pub(crate) trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<S: AsyncRead + AsyncWrite + Send + Unpin> Stream for S {}

/// A connection that requests can be sent on.
pub(super) struct Connection {
    pub(super) stream: Box<dyn Stream>,
    pub(super) is_secure: bool,
    /// Whether a proxy reads the requests.
    pub(super) is_forwarded: bool,
    /// Of the proxy that reads the requests.
    pub(super) credentials: Option<HeaderValue>,
}

/// Connects to the peer of `probe`. `step` is what is being done, `path` what is known by then.
pub(super) async fn connect(
    probe: &Probe,
    step: &Cell<Step>,
    path: &mut NetworkPath,
) -> Result<Connection, Failure> {
    let failed = Failure::at;
    let uri = probe.request.uri();
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("https") { 443 } else { 80 });
    // Before anything is sent: files that cannot be used are found without a network. Reading them may take its time.
    step.set(Step::Tls);
    for file in probe.tls_files() {
        let unusable =
            |error: io::Error| failed(Step::Tls, format!("preparing TLS: {}: {error}", file.display()));
        crate::system::bytes(file).map_err(unusable)?;
    }
    let files = probe.clone();
    let read = tokio::task::spawn_blocking(move || files.tls()).await;
    let tls = read.map_err(|error| failed(Step::Tls, error.to_string()))?;
    let tls = tls.map_err(|error| failed(Step::Tls, error.to_string()))?;
    let proxy = probe.proxy().and_then(|proxy| Some((proxy.address.clone()?, proxy)));
    path.proxy = proxy.as_ref().map(|((host, port), proxy)| format!("{host}:{port} (`{}`)", proxy.variable));
    let (to_host, to_port) = proxy.as_ref().map_or((&*host, port), |((host, port), _)| (host, *port));
    step.set(Step::Resolve);
    let found = lookup_host((to_host, to_port)).await;
    let found = found.map_err(|error| failed(Step::Resolve, format!("`{to_host}`: {error}")))?;
    let addresses: Vec<SocketAddr> = found.take(MOST_ADDRESSES).collect();
    step.set(Step::Connect);
    let mut stream = open(&addresses, path).await.map_err(|reason| failed(Step::Connect, reason))?;
    let (mut is_forwarded, mut credentials) = (false, None);
    if let Some((_, proxy)) = proxy {
        is_forwarded = tls.is_none() && !probe.is_http2();
        if is_forwarded {
            credentials = proxy.credentials;
        } else {
            step.set(Step::Proxy);
            let tunnelled = tunnel(&mut stream, &host, port, &proxy).await;
            let refusal = tunnelled.map_err(|error| failed(Step::Proxy, error.to_string()))?;
            if let Some(line) = refusal {
                // The line is of the proxy's own making.
                let said = super::exchange::shortened(&probe.mask(&line));
                return Err(Failure { said, ..failed(Step::Proxy, "the proxy refuses".to_owned()) });
            }
        }
    }
    let Some((config, name)) = tls else {
        return Ok(Connection { stream: Box::new(stream), is_secure: false, is_forwarded, credentials });
    };
    step.set(Step::Tls);
    let name = name.map_or_else(|| ServerName::try_from(host.clone()), Ok);
    let name = name.map_err(|error| failed(Step::Tls, format!("`{host}`: {error}")))?;
    let stream =
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.map_err(|error| Failure {
            looks_like: is_plain(&error).then_some(LooksLike::Plain),
            ..failed(Step::Tls, super::exchange::chain(&error))
        })?;
    let shown = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    path.certificate_until = shown.and_then(|leaf| Some(tidegate_tls::validity(leaf)?.not_after));
    Ok(Connection { stream: Box::new(stream), is_secure: true, is_forwarded, credentials })
}

/// Connects to the first address that accepts.
async fn open(addresses: &[SocketAddr], path: &mut NetworkPath) -> Result<TcpStream, String> {
    let mut reasons = Vec::new();
    for address in addresses {
        path.address = Some(*address);
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => reasons.push(format!("{address}: {error}")),
        }
    }
    Err(if reasons.is_empty() { "the name has no addresses".to_owned() } else { reasons.join("; ") })
}

/// Asks a proxy for a tunnel; the first line of its answer where it refuses.
async fn tunnel(
    stream: &mut TcpStream,
    host: &str,
    port: u16,
    proxy: &ProbeProxy,
) -> io::Result<Option<String>> {
    let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
    let mut head = format!("CONNECT {host}:{port} HTTP/1.1\r\nHost: {host}:{port}\r\n").into_bytes();
    if let Some(credentials) = &proxy.credentials {
        head.extend_from_slice(b"Proxy-Authorization: ");
        head.extend_from_slice(credentials.as_bytes());
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    stream.write_all(&head).await?;
    let mut answer = Vec::new();
    while !answer.ends_with(b"\r\n\r\n") {
        // Byte by byte: what follows the head is the peer's.
        answer.push(stream.read_u8().await?);
        if answer.len() > LONGEST_HEAD {
            return Err(io::Error::other("the proxy's answer has no end"));
        }
    }
    let answer = String::from_utf8_lossy(&answer);
    let line = answer.lines().next().unwrap_or_default();
    match line.split(' ').nth(1) {
        Some(status) if status.starts_with('2') => Ok(None),
        _ => Ok(Some(line.to_owned())),
    }
}

/// The error of TLS in one of a connection.
pub(crate) fn tls_error(error: &io::Error) -> Option<&TlsError> {
    error.get_ref()?.downcast_ref::<TlsError>()
}

/// Whether the peer answered a handshake with something else than TLS.
fn is_plain(error: &io::Error) -> bool {
    matches!(tls_error(error), Some(TlsError::InvalidMessage(_)))
}

/// Whether a peer that was spoken to without TLS speaks it: whether it answers a handshake, whatever its certificate.
pub(super) async fn speaks_tls(address: SocketAddr) -> bool {
    let Ok(stream) = TcpStream::connect(address).await else { return false };
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let Ok(builder) = builder else { return false };
    // Nothing is trusted, so no handshake is completed.
    let config = builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    let name = ServerName::from(address.ip());
    match TlsConnector::from(Arc::new(config)).connect(name, stream).await {
        Ok(_) => true,
        Err(error) => matches!(
            tls_error(&error),
            Some(
                TlsError::InvalidCertificate(CertificateError::UnknownIssuer | _)
                    | TlsError::AlertReceived(_)
                    | TlsError::NoApplicationProtocol
                    | TlsError::PeerIncompatible(_)
            )
        ),
    }
}

/// Whether a peer that was spoken to in HTTP/2 answers HTTP/1.1.
pub(super) async fn speaks_http1(address: SocketAddr) -> bool {
    let Ok(mut stream) = TcpStream::connect(address).await else { return false };
    let request = format!("OPTIONS * HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    let mut begin = [0; 7];
    stream.write_all(request.as_bytes()).await.is_ok()
        && stream.read_exact(&mut begin).await.is_ok()
        && begin == *b"HTTP/1."
}
