//! Asking a running gateway on its admin address.

use super::check::config;
use super::token::authorization;
use crate::Failure;
use crate::cli::{AdminArgs, ConfigArgs};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};
use tidegate_wire::gzip::Encoder;

/// How long connecting may take, and the whole of an answer beyond the time that it is asked to wait.
const PATIENCE: Duration = Duration::from_secs(15);
/// No answer is longer; the gateway's own bound is below it.
const LONGEST_ANSWER: u64 = 1 << 20;
const LONGEST_HEAD: usize = 16 << 10;
/// The compression of what is sent.
const LEVEL: i32 = 6;

/// The admin address of a running gateway, and a connection to it that is used again and again.
pub(crate) struct Admin {
    address: SocketAddr,
    authorization: String,
    patience: Duration,
    stream: Option<BufReader<Timed>>,
}

/// A connection on which nothing is waited for beyond a moment, however slowly it comes.
struct Timed {
    stream: TcpStream,
    until: Instant,
}

impl Timed {
    /// The time that is left, which is never none: a socket takes that for no limit.
    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::Error::new(io::ErrorKind::TimedOut, "there is no whole answer in time"));
        }
        Ok(left)
    }
}

impl Read for Timed {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(into)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

impl Admin {
    /// The gateway that the arguments name, or else the configuration. Nothing is asked yet.
    pub(crate) fn named(args: &AdminArgs, by_config: &ConfigArgs) -> Result<Admin, Failure> {
        let address = match &args.admin {
            Some(admin) => {
                let found = admin.to_socket_addrs().ok().and_then(|mut found| found.next());
                found.ok_or_else(|| {
                    Failure(format!("--admin {admin}: write an address and a port, as in 127.0.0.1:4319"))
                })?
            }
            None => reachable(config(by_config)?.listen.admin),
        };
        let authorization = authorization(args.admin_token_file.as_deref(), args.admin_token.as_deref())?;
        Ok(Admin { address, authorization, patience: PATIENCE, stream: None })
    }

    /// The same, which waits for so long for a whole answer.
    pub(crate) fn with_patience(self, patience: Duration) -> Admin {
        Admin { patience, ..self }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// The same gateway, on a connection of its own.
    pub(crate) fn another(&self) -> Admin {
        let authorization = self.authorization.clone();
        Admin { address: self.address, authorization, patience: self.patience, stream: None }
    }

    /// Sends a request without content, which may wait for so long; the answer's status and its text.
    ///
    /// # Errors
    /// When there is no answer, or none that can be understood.
    pub(crate) fn ask(&mut self, method: &str, target: &str, wait: Duration) -> io::Result<(u16, String)> {
        self.send(method, target, None, wait)
    }

    /// As [`ask`](Self::ask), with JSON as its content.
    ///
    /// # Errors
    /// When there is no answer, or none that can be understood.
    pub(crate) fn send(
        &mut self,
        method: &str,
        target: &str,
        content: Option<&[u8]>,
        wait: Duration,
    ) -> io::Result<(u16, String)> {
        let until = Instant::now() + wait + self.patience;
        if let Some(mut stream) = self.stream.take() {
            stream.get_mut().until = until;
            match self.ask_on(stream, (method, target), content) {
                Err(error) if Instant::now() >= until => return Err(error),
                // The gateway may have closed the connection meanwhile.
                Err(_) => {}
                answer => return answer,
            }
        }
        let left = until.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
        let stream = TcpStream::connect_timeout(&self.address, left.min(self.patience))?;
        self.ask_on(BufReader::new(Timed { stream, until }), (method, target), content)
    }

    /// Fetches content of any length, which it hands on as it comes.
    ///
    /// # Errors
    /// When there is no answer, or it ends too early, or cannot be written.
    pub(crate) fn download(
        &mut self,
        target: &str,
        into: &mut dyn Write,
        wait: Duration,
    ) -> io::Result<Download> {
        let stream = TcpStream::connect_timeout(&self.address, PATIENCE)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_read_timeout(Some(wait + PATIENCE))?;
        let Admin { address, authorization, .. } = self;
        let mut stream = BufReader::new(stream);
        let request = format!("GET {target} HTTP/1.1\r\nHost: {address}\r\n{authorization}\r\n");
        stream.get_mut().write_all(request.as_bytes())?;
        let (status, length, _) = head(&mut stream)?;
        if status != 200 {
            let body = text_of(&mut stream, length)?;
            return Ok(Download::Refusal(status, body));
        }
        let copied = io::copy(&mut stream.take(length), into)?;
        match copied == length {
            true => Ok(Download::Content(copied)),
            false => Err(invalid("the answer ends before its end")),
        }
    }

    fn ask_on(
        &mut self,
        mut stream: BufReader<Timed>,
        (method, target): (&str, &str),
        content: Option<&[u8]>,
    ) -> io::Result<(u16, String)> {
        let Admin { address, authorization, .. } = self;
        let mut request =
            format!("{method} {target} HTTP/1.1\r\nHost: {address}\r\n{authorization}").into_bytes();
        match content {
            Some(content) => put_content(content, &mut request),
            None => request.extend_from_slice(b"\r\n"),
        }
        stream.get_mut().write_all(&request)?;
        let (status, length, stays) = head(&mut stream)?;
        let body = text_of(&mut stream, length)?;
        self.stream = stays.then_some(stream);
        Ok((status, body))
    }
}

/// The outcome of a download.
pub(crate) enum Download {
    /// So many bytes, all of which were handed on.
    Content(u64),
    /// The status of another answer, and its text.
    Refusal(u16, String),
}

/// The text of an answer of this length.
fn text_of(stream: &mut impl Read, length: u64) -> io::Result<String> {
    let length = usize::try_from(length).ok().filter(|length| *length as u64 <= LONGEST_ANSWER);
    let mut body = vec![0; length.ok_or_else(|| invalid("the answer is too long"))?];
    stream.read_exact(&mut body)?;
    String::from_utf8(body).map_err(|_| invalid("the answer is not text"))
}

/// Appends the rest of a head and the content, compressed: the gateway takes no long ones on this address.
fn put_content(content: &[u8], request: &mut Vec<u8>) {
    let mut encoder = Encoder::new(LEVEL).unwrap_or_else(|_| unreachable!("a level"));
    let mut compressed = vec![0; Encoder::max_len(content.len())];
    let (_, written) = encoder.step(content, &mut compressed);
    let (rest, _) = encoder.finish(compressed.get_mut(written..).unwrap_or_default());
    compressed.truncate(written + rest);
    let head = format!(
        "Content-Type: application/json\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        compressed.len()
    );
    request.extend_from_slice(head.as_bytes());
    request.extend_from_slice(&compressed);
}

/// A listener on every address is reached on loopback.
pub(super) fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        let ip = if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() };
        address.set_ip(ip);
    }
    address
}

/// The status of an answer, the length of its content, and whether the connection stays open behind it.
fn head(answer: &mut impl BufRead) -> io::Result<(u16, u64, bool)> {
    let mut head = String::new();
    let mut limited = answer.take(LONGEST_HEAD as u64);
    while !head.ends_with("\r\n\r\n") {
        if limited.read_line(&mut head)? == 0 {
            return Err(invalid("the answer ends in its head"));
        }
    }
    let mut lines = head.split("\r\n");
    let status = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok());
    let status = status.ok_or_else(|| invalid("the answer is not HTTP/1.1"))?;
    let (mut length, mut stays) = (None, true);
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse::<u64>().ok();
        } else if name.eq_ignore_ascii_case("connection") {
            stays = !value.trim().eq_ignore_ascii_case("close");
        }
    }
    Ok((status, length.ok_or_else(|| invalid("the answer does not say how long it is"))?, stays))
}

pub(crate) fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// A gateway, or what is taken for one, that sends a byte now and then keeps nobody waiting.
    #[test]
    fn a_slow_answer_has_an_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
            while stream.write_all(b"x").is_ok() {
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let patience = Duration::from_millis(300);
        let admin = Admin { address, authorization: String::new(), patience: PATIENCE, stream: None };
        let begun = Instant::now();
        let error = admin.with_patience(patience).ask("GET", "/status.json", Duration::ZERO).unwrap_err();
        assert!(matches!(error.kind(), io::ErrorKind::TimedOut | io::ErrorKind::WouldBlock), "{error}");
        assert!(begun.elapsed() >= patience);
    }
}
