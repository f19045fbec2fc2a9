//! Just enough HTTP/1.1 for both ends: one connection, one request at a time, bounded heads and bodies.

use std::io;
use std::net::IpAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, lookup_host};
use tokio::time::timeout;

use crate::remote_write::Version;
use crate::target::Target;

/// The longest head that is read.
const MAX_HEAD: usize = 16 * 1024;

/// The most of an answer's body that is kept.
const MAX_ANSWER: usize = 64 * 1024;

/// A request got no answer; whether the other end has it is not known.
#[derive(Debug, thiserror::Error)]
pub enum RequestError {
    /// No connection could be made, or it broke.
    #[error("the connection failed: {0}")]
    Connection(#[from] io::Error),
    /// There was no answer in time.
    #[error("there was no answer within {0:?}")]
    Timeout(Duration),
    /// The response is not HTTP.
    #[error("the answer is not HTTP: {0}")]
    Protocol(&'static str),
}

/// A stream that is read while it is written.
pub trait Duplex {
    /// Its two directions.
    fn halves(&mut self) -> (impl AsyncRead + Unpin, impl AsyncWrite + Unpin);
}

impl Duplex for TcpStream {
    fn halves(&mut self) -> (impl AsyncRead + Unpin, impl AsyncWrite + Unpin) {
        self.split()
    }
}

/// A keep-alive connection to a target.
#[derive(Debug)]
pub struct Connection<S = TcpStream> {
    stream: S,
    /// The bytes read after the last message.
    rest: Vec<u8>,
    reusable: bool,
}

/// An answer to a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// The status.
    pub status: u16,
    /// `Retry-After`, in seconds.
    pub retry_after: Option<u64>,
    /// The three `Written` headers: samples, histograms, exemplars.
    pub written: [Option<u64>; 3],
    /// The beginning of the body; of a `google.rpc.Status`, as receivers of OTLP answer, its message.
    pub body: String,
}

/// Connects to a target, and sends nothing yet.
///
/// # Errors
/// When there is nobody, or not within `deadline`.
pub async fn connect(target: &Target, deadline: Duration) -> Result<TcpStream, RequestError> {
    let connecting = timeout(deadline, TcpStream::connect(target.address()));
    let stream = connecting.await.map_err(|_| RequestError::Timeout(deadline))??;
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// When there is nobody, or not within `deadline`.
    pub async fn open(target: &Target, deadline: Duration) -> Result<Self, RequestError> {
        Ok(Connection::over(connect(target, deadline).await?))
    }

    /// Connects from this address of the machine, as one of many clients.
    ///
    /// # Errors
    /// When there is nobody, or not within `deadline`; when the address is not the machine's.
    pub async fn open_from(from: IpAddr, target: &Target, deadline: Duration) -> Result<Self, RequestError> {
        let connecting = async {
            let address =
                lookup_host(target.address()).await?.find(|address| address.is_ipv4() == from.is_ipv4());
            let address = address.ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))?;
            let socket = if from.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
            socket.bind((from, 0).into())?;
            let stream = socket.connect(address).await?;
            stream.set_nodelay(true)?;
            Ok(Connection::over(stream))
        };
        timeout(deadline, connecting).await.map_err(|_| RequestError::Timeout(deadline))?
    }
}

impl<S: Duplex> Connection<S> {
    /// Over a stream that is connected, with TLS perhaps.
    pub fn over(stream: S) -> Connection<S> {
        Connection { stream, rest: Vec::new(), reusable: true }
    }

    /// Whether another request can follow on this connection.
    pub fn is_reusable(&self) -> bool {
        self.reusable
    }

    /// Sends a remote-write body and reads the answer.
    ///
    /// # Errors
    /// When no answer came. The connection is not reusable then.
    pub async fn write(
        &mut self,
        target: &Target,
        version: Version,
        body: &[u8],
        deadline: Duration,
    ) -> Result<Response, RequestError> {
        let Target { authority, path } = target;
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {authority}\r\nUser-Agent: tidegate-load\r\n\
             Content-Type: {}\r\nContent-Encoding: snappy\r\nX-Prometheus-Remote-Write-Version: {}\r\n\
             Content-Length: {}\r\n\r\n",
            version.content_type(),
            version.header(),
            body.len()
        );
        self.send(head.as_bytes(), body, deadline).await
    }

    /// Sends any head and body and reads the answer.
    ///
    /// # Errors
    /// When no answer came. The connection is not reusable then.
    pub async fn send(
        &mut self,
        head: &[u8],
        body: &[u8],
        deadline: Duration,
    ) -> Result<Response, RequestError> {
        let answered = timeout(deadline, self.exchange(head, body)).await;
        let outcome = answered.unwrap_or(Err(RequestError::Timeout(deadline)));
        self.reusable &= outcome.is_ok();
        outcome
    }

    async fn exchange(&mut self, head: &[u8], body: &[u8]) -> Result<Response, RequestError> {
        let (mut reader, mut writer) = self.stream.halves();
        let sent = async {
            writer.write_all(head).await?;
            writer.write_all(body).await?;
            // TLS keeps the end of it otherwise.
            writer.flush().await
        };
        let answer = read_answer(&mut reader, &mut self.rest);
        tokio::pin!(sent, answer);
        // A refusal may come before the body is sent: both at once, or both sides wait for ever.
        let (response, complete, keep) = tokio::select! {
            biased;
            _sent_or_broken = &mut sent => {
                let (response, keep) = answer.await?;
                (response, true, keep)
            }
            answered = &mut answer => {
                let (response, keep) = answered?;
                (response, false, keep)
            }
        };
        self.reusable &= complete && keep;
        Ok(response)
    }
}

/// Reads one final answer; says as well whether the connection stays open.
async fn read_answer(
    from: &mut (impl AsyncRead + Unpin),
    rest: &mut Vec<u8>,
) -> Result<(Response, bool), RequestError> {
    loop {
        let head =
            read_head(from, rest).await?.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))?;
        let status = head.start.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status: u16 = status.ok_or(RequestError::Protocol("its first line has no status"))?;
        if status < 200 {
            continue;
        }
        let mut body = Vec::new();
        if status != 204 && status != 304 {
            read_body(from, rest, &head, &mut body, MAX_ANSWER, None).await?;
        }
        let number = |name: &str| head.header(name).and_then(|value| value.parse().ok());
        let written = |what: &str| number(&format!("x-prometheus-remote-write-{what}-written"));
        let is_status = status >= 400 && head.header("content-type") == Some("application/x-protobuf");
        let message = if is_status { status_message(&body) } else { None };
        let response = Response {
            status,
            retry_after: number("retry-after"),
            written: ["samples", "histograms", "exemplars"].map(written),
            body: message.unwrap_or_else(|| String::from_utf8_lossy(&body).into_owned()),
        };
        return Ok((response, !head.closes()));
    }
}

/// The message in a `google.rpc.Status`; `None` of one that was cut, or is something else.
fn status_message(body: &[u8]) -> Option<String> {
    const CODE: u8 = 0x08;
    const MESSAGE: u8 = 0x12;
    let mut rest = body;
    while let Some((&key, after)) = rest.split_first() {
        let end = after.iter().position(|byte| *byte < 0x80)?;
        let (number, after) = after.split_at(end + 1);
        match key {
            CODE => rest = after,
            MESSAGE => {
                let len = number.iter().rev().fold(0, |len: usize, byte| len << 7 | usize::from(byte & 0x7f));
                return String::from_utf8(after.get(..len)?.to_vec()).ok();
            }
            _ => return None,
        }
    }
    None
}

/// A message's first line and headers.
pub(crate) struct MessageHead {
    pub(crate) start: String,
    headers: Vec<(String, String)>,
}

impl MessageHead {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| &**value)
    }

    pub(crate) fn closes(&self) -> bool {
        self.header("connection").is_some_and(|value| value.eq_ignore_ascii_case("close"))
    }
}

/// Reads a head; `None` when the other end closed before it began one.
pub(crate) async fn read_head(
    from: &mut (impl AsyncRead + Unpin),
    rest: &mut Vec<u8>,
) -> Result<Option<MessageHead>, RequestError> {
    let mut searched = 0;
    let end = loop {
        let found = rest[searched..].windows(4).position(|four| four == b"\r\n\r\n");
        if let Some(at) = found {
            break searched + at;
        }
        if rest.len() > MAX_HEAD {
            return Err(RequestError::Protocol("its head is too long"));
        }
        searched = rest.len().saturating_sub(3);
        if from.read_buf(rest).await? == 0 {
            let begun = !rest.is_empty();
            return if begun { Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()) } else { Ok(None) };
        }
    };
    let text = String::from_utf8_lossy(&rest[..end]).into_owned();
    rest.drain(..end + 4);
    let mut lines = text.split("\r\n");
    let start = lines.next().unwrap_or_default().to_owned();
    let headers = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .collect();
    Ok(Some(MessageHead { start, headers }))
}

/// Reads the body that `head` announces, at most `limit` bytes, at most `bytes_per_second`.
pub(crate) async fn read_body(
    from: &mut (impl AsyncRead + Unpin),
    rest: &mut Vec<u8>,
    head: &MessageHead,
    body: &mut Vec<u8>,
    limit: usize,
    bytes_per_second: Option<u64>,
) -> Result<(), RequestError> {
    let mut source = PacedReader { from, rest, bytes_per_second };
    if head.header("transfer-encoding").is_some_and(|coding| coding.eq_ignore_ascii_case("chunked")) {
        loop {
            let line = source.line().await?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(digits, 16)
                .map_err(|_| RequestError::Protocol("a chunk has no size"))?;
            if size > limit.saturating_sub(body.len()) {
                return Err(RequestError::Protocol("its body is too long"));
            }
            source.take(size, body).await?;
            source.line().await?;
            if size == 0 {
                return Ok(());
            }
        }
    }
    let len = head.header("content-length").map_or(Ok(0), str::parse::<usize>);
    let len = len.map_err(|_| RequestError::Protocol("its length is not a number"))?;
    if len > limit {
        return Err(RequestError::Protocol("its body is too long"));
    }
    source.take(len, body).await
}

struct PacedReader<'a, R> {
    from: &'a mut R,
    rest: &'a mut Vec<u8>,
    bytes_per_second: Option<u64>,
}

impl<R: AsyncRead + Unpin> PacedReader<'_, R> {
    async fn more(&mut self) -> Result<(), RequestError> {
        if let Some(rate) = self.bytes_per_second {
            // Ten small reads a second; the socket's buffer holds back the rest.
            tokio::time::sleep(Duration::from_millis(100)).await;
            let mut slice = vec![0; usize::try_from(rate / 10).unwrap_or(MAX_HEAD).clamp(1, MAX_HEAD)];
            let read = self.from.read(&mut slice).await?;
            self.rest.extend_from_slice(&slice[..read]);
            return if read == 0 { Err(closed()) } else { Ok(()) };
        }
        self.rest.reserve(16 * 1024);
        if self.from.read_buf(self.rest).await? == 0 { Err(closed()) } else { Ok(()) }
    }

    async fn line(&mut self) -> Result<String, RequestError> {
        loop {
            if let Some(end) = self.rest.windows(2).position(|two| two == b"\r\n") {
                let line = String::from_utf8_lossy(&self.rest[..end]).into_owned();
                self.rest.drain(..end + 2);
                return Ok(line);
            }
            if self.rest.len() > MAX_HEAD {
                return Err(RequestError::Protocol("a line is too long"));
            }
            self.more().await?;
        }
    }

    async fn take(&mut self, len: usize, into: &mut Vec<u8>) -> Result<(), RequestError> {
        let mut missing = len;
        loop {
            let here = missing.min(self.rest.len());
            into.extend_from_slice(&self.rest[..here]);
            self.rest.drain(..here);
            missing -= here;
            if missing == 0 {
                return Ok(());
            }
            self.more().await?;
        }
    }
}

fn closed() -> RequestError {
    RequestError::Connection(io::ErrorKind::UnexpectedEof.into())
}

/// Writes an answer without a body.
pub(crate) async fn answer(to: &mut (impl AsyncWrite + Unpin), status: u16, headers: &str) -> io::Result<()> {
    let length = if status == 204 { "" } else { "Content-Length: 0\r\n" };
    to.write_all(format!("HTTP/1.1 {status} \r\n{headers}{length}\r\n").as_bytes()).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_of_a_status_is_found() {
        let long = "x".repeat(200);
        let status = [&[0x08, 0x07, 0x12, 0xc8, 0x01][..], long.as_bytes()].concat();
        assert_eq!(status_message(&status), Some(long));
        assert_eq!(status_message(&status[..100]), None, "it was cut");
        assert_eq!(status_message(b"plain words"), None);
        assert_eq!(status_message(&[0x08, 0x07]), None);
    }
}
