//! HTTP as a plain client speaks it: bytes out, an answer in. It shares no code with the gateway.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// How long one read or write may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// The longest answer that is read.
const LONGEST: usize = 256 << 20;

/// An answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// Names, in lower case, and values.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The value of a header, if it is there.
    pub fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        found.map(|(_, value)| &**value)
    }

    /// The body as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    ///
    /// # Panics
    /// When it is not.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error} in {}", self.text()))
    }
}

/// A connection, on which requests follow one another.
#[derive(Debug)]
pub struct Client {
    stream: TcpStream,
    /// Read and not yet used.
    rest: Vec<u8>,
}

impl Client {
    /// Connects.
    ///
    /// # Errors
    /// When nobody listens.
    pub fn connect(address: SocketAddr) -> io::Result<Client> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Client { stream, rest: Vec::new() })
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When the other end is gone.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)
    }

    /// Reads the next final answer; those before it (1xx) are passed over.
    ///
    /// # Errors
    /// When none comes, or something else than HTTP.
    pub fn answer(&mut self) -> io::Result<Answer> {
        loop {
            let answer = self.any_answer()?;
            if answer.status >= 200 {
                return Ok(answer);
            }
        }
    }

    /// Reads the next answer, whichever it is.
    ///
    /// # Errors
    /// When none comes, or something else than HTTP.
    pub fn any_answer(&mut self) -> io::Result<Answer> {
        let head = self.take_until(b"\r\n\r\n")?;
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)?.parse().ok());
        let status = status.ok_or_else(|| invalid("there is no status line"))?;
        let headers = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect();
        let mut answer = Answer { status, headers, body: Vec::new() };
        answer.body = if status < 200 || status == 204 || status == 304 {
            Vec::new()
        } else if answer.header("transfer-encoding").is_some() {
            self.chunks()?
        } else if let Some(length) = answer.header("content-length") {
            let length = length.parse().map_err(|_| invalid("Content-Length is no number"))?;
            self.take(length)?
        } else {
            self.rest_of_connection()?
        };
        Ok(answer)
    }

    /// Whether the other end closes the connection now, with nothing more to say.
    ///
    /// # Errors
    /// When it does nothing of the kind in time.
    pub fn is_closed(&mut self) -> io::Result<bool> {
        if !self.rest.is_empty() {
            return Ok(false);
        }
        match self.more() {
            Ok(()) => Ok(false),
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                Ok(true)
            }
            Err(error) => Err(error),
        }
    }

    fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let line = self.take_until(b"\r\n")?;
            let size = usize::from_str_radix(line.trim(), 16).map_err(|_| invalid("a chunk has no size"))?;
            body.extend_from_slice(&self.take(size)?);
            self.take_until(b"\r\n")?;
            if size == 0 {
                return Ok(body);
            }
        }
    }

    fn rest_of_connection(&mut self) -> io::Result<Vec<u8>> {
        loop {
            match self.more() {
                Ok(()) => {}
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                    return Ok(std::mem::take(&mut self.rest));
                }
                Err(error) => return Err(error),
            }
        }
    }

    fn take_until(&mut self, end: &[u8]) -> io::Result<String> {
        loop {
            if let Some(at) = self.rest.windows(end.len()).position(|bytes| bytes == end) {
                let text = String::from_utf8_lossy(&self.rest[..at]).into_owned();
                self.rest.drain(..at + end.len());
                return Ok(text);
            }
            self.more()?;
        }
    }

    fn take(&mut self, length: usize) -> io::Result<Vec<u8>> {
        while self.rest.len() < length {
            self.more()?;
        }
        Ok(self.rest.drain(..length).collect())
    }

    fn more(&mut self) -> io::Result<()> {
        if self.rest.len() > LONGEST {
            return Err(invalid("it does not end"));
        }
        let mut bytes = vec![0; 64 << 10];
        let read = self.stream.read(&mut bytes)?;
        self.rest.extend_from_slice(&bytes[..read]);
        if read == 0 { Err(ErrorKind::UnexpectedEof.into()) } else { Ok(()) }
    }
}

/// Sends a request on a connection of its own: the head without its last empty line, the lengths added.
///
/// # Errors
/// When no answer comes.
pub fn request(address: SocketAddr, head: &[&str], body: &[u8]) -> io::Result<Answer> {
    let mut client = Client::connect(address)?;
    let mut text = format!("{}\r\nHost: {address}\r\n", head.first().copied().unwrap_or_default());
    head.iter().skip(1).for_each(|line| text.push_str(&format!("{line}\r\n")));
    if !body.is_empty() {
        text.push_str(&format!("Content-Length: {}\r\n", body.len()));
    }
    client.send(format!("{text}\r\n").as_bytes())?;
    // An answer may come, and the connection be closed, before all of the body is sent.
    let sent = client.send(body);
    client.answer().or_else(|error| sent.and(Err(error)))
}

/// Asks for a page.
///
/// # Errors
/// When no answer comes.
pub fn get(address: SocketAddr, path: &str) -> io::Result<Answer> {
    request(address, &[&format!("GET {path} HTTP/1.1"), "Connection: close"], b"")
}

/// `text` as it stands in a query.
pub fn encode(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let piece = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(piece).collect()
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}
