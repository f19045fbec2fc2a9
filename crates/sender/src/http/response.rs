//! The answer: its status, what it says about trying again, and the beginning of its body.

use super::connection::{Connection, Deadline, Failure};
use std::time::{Duration, SystemTime};

/// A head and, after it, what is kept of the body.
const BUFFER: usize = 8 << 10;
/// A peer that answers more than that is cut off (OTLP: clients must limit the size of responses).
const LONGEST_BODY: u64 = 4 << 20;
const HEADERS: usize = 64;
/// Interim answers (100, 103) before the one that counts.
const INTERIM: usize = 8;

/// A buffer for answers, used again for each.
pub(crate) struct Response {
    buffer: Box<[u8]>,
    /// The kept part of the body.
    kept: std::ops::Range<usize>,
    pub(crate) status: u16,
    /// The delay that the endpoint requested before a retry.
    pub(crate) retry_after: Option<Duration>,
    /// Another request can go over the same connection.
    pub(crate) reusable: bool,
}

/// How the body ends.
#[derive(Clone, Copy)]
enum Length {
    Bytes(u64),
    Chunked,
    UntilClosed,
}

impl Response {
    pub(crate) fn new() -> Response {
        Response {
            buffer: vec![0; BUFFER].into_boxed_slice(),
            kept: 0..0,
            status: 0,
            retry_after: None,
            reusable: false,
        }
    }

    pub(crate) const MEMORY: usize = BUFFER;

    /// The beginning of the body.
    pub(crate) fn body(&self) -> &[u8] {
        self.buffer.get(self.kept.clone()).unwrap_or_default()
    }
}

/// Reads an answer whole, keeping what there is room for.
pub(crate) fn read_response(
    connection: &mut Connection,
    response: &mut Response,
    patience: Deadline<'_>,
) -> Result<(), Failure> {
    let mut filled = 0;
    for _ in 0..INTERIM {
        let (head, length) = loop {
            if let Some(found) = parse_head(response, filled)? {
                break found;
            }
            let room = response.buffer.get_mut(filled..).unwrap_or_default();
            if room.is_empty() {
                return Err(Failure::Garbled);
            }
            match connection.read(room, patience)? {
                0 => return Err(Failure::Broken),
                read => filled += read,
            }
        };
        if response.status >= 200 {
            return read_body(connection, response, head, filled, length, patience);
        }
        response.buffer.copy_within(head..filled, 0);
        filled -= head;
    }
    Err(Failure::Garbled)
}

/// The length of the head, once it is complete.
fn parse_head(response: &mut Response, filled: usize) -> Result<Option<(usize, Length)>, Failure> {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut head = httparse::Response::new(&mut headers);
    let bytes = response.buffer.get(..filled).unwrap_or_default();
    let httparse::Status::Complete(end) = head.parse(bytes).map_err(|_| Failure::Garbled)? else {
        return Ok(None);
    };
    let status = head.code.unwrap_or(0);
    let mut length = Length::UntilClosed;
    let mut reusable = head.version == Some(1);
    let mut retry_after = None;
    for header in head.headers.iter() {
        let value = header.value.trim_ascii();
        if header.name.eq_ignore_ascii_case("content-length") && !matches!(length, Length::Chunked) {
            let number = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
            length = Length::Bytes(number.ok_or(Failure::Garbled)?);
        } else if header.name.eq_ignore_ascii_case("transfer-encoding") {
            length = Length::Chunked;
        } else if header.name.eq_ignore_ascii_case("connection") {
            reusable &= !value.eq_ignore_ascii_case(b"close");
        } else if header.name.eq_ignore_ascii_case("retry-after") {
            retry_after = delay(value);
        }
    }
    if status == 204 || status == 304 || status < 200 {
        length = Length::Bytes(0);
    }
    response.status = status;
    response.reusable = reusable && !matches!(length, Length::UntilClosed);
    response.retry_after = retry_after;
    Ok(Some((end, length)))
}

/// `Retry-After`: seconds, or a date.
fn delay(value: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(value).ok()?;
    match text.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => {
            let date = httpdate::parse_http_date(text).ok()?;
            Some(date.duration_since(SystemTime::now()).unwrap_or(Duration::ZERO))
        }
    }
}

fn read_body(
    connection: &mut Connection,
    response: &mut Response,
    head: usize,
    mut filled: usize,
    length: Length,
    patience: Deadline<'_>,
) -> Result<(), Failure> {
    let mut decoder = Decoder::new(length);
    // The body moves to the front, decoded; the space behind it receives. When no space is left, what comes
    // is received over the last part again, and not kept.
    let (mut kept, mut raw) = (0, head);
    let mut total = 0;
    loop {
        let all = response.buffer.get_mut(..filled).unwrap_or_default();
        while raw < all.len() && !decoder.done {
            let step = decoder.step(all.get(raw..).unwrap_or_default())?;
            if step.content {
                all.copy_within(raw..raw + step.len, kept);
                kept += step.len;
                total += step.len as u64;
            }
            raw += step.len;
        }
        if decoder.done || total > LONGEST_BODY {
            break;
        }
        // Half of the buffer is the answer's, the other half receives.
        kept = kept.min(BUFFER / 2);
        let room = response.buffer.get_mut(kept.max(BUFFER / 2)..).unwrap_or_default();
        raw = BUFFER - room.len();
        match connection.read(room, patience)? {
            0 if matches!(length, Length::UntilClosed) => break,
            0 => return Err(Failure::Broken),
            read => filled = raw + read,
        }
    }
    response.reusable &= decoder.done;
    response.kept = 0..kept;
    Ok(())
}

/// Finds the content in a body as it comes.
struct Decoder {
    state: State,
    done: bool,
}

enum State {
    /// Bytes of content to come.
    Content(u64),
    /// The size of a chunk, so far.
    Size(u64),
    /// The rest of a size's line; then the chunk.
    Extension(u64),
    Chunk(u64),
    /// The line end after a chunk.
    ChunkEnd,
    /// Lines after the last chunk; true at the start of one.
    Trailer(bool),
    Rest,
}

struct Step {
    len: usize,
    content: bool,
}

impl Decoder {
    fn new(length: Length) -> Decoder {
        let state = match length {
            Length::Bytes(bytes) => State::Content(bytes),
            Length::Chunked => State::Size(0),
            Length::UntilClosed => State::Rest,
        };
        Decoder { done: matches!(state, State::Content(0)), state }
    }

    /// Takes some bytes off the front of `bytes`, which is not empty.
    fn step(&mut self, bytes: &[u8]) -> Result<Step, Failure> {
        let first = bytes.first().copied().unwrap_or_default();
        let up_to = |left: u64| usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
        let (state, step) = match self.state {
            State::Rest => (State::Rest, Step { len: bytes.len(), content: true }),
            State::Content(left) => {
                let len = up_to(left);
                (State::Content(left - len as u64), Step { len, content: true })
            }
            State::Chunk(left) => {
                let len = up_to(left);
                let left = left - len as u64;
                let next = if left == 0 { State::ChunkEnd } else { State::Chunk(left) };
                (next, Step { len, content: true })
            }
            State::Size(size) => {
                let next = match (first as char).to_digit(16) {
                    Some(digit) if size >> 32 == 0 => State::Size(size << 4 | u64::from(digit)),
                    Some(_) => return Err(Failure::Garbled),
                    None => after_line(size, first),
                };
                (next, Step { len: 1, content: false })
            }
            State::Extension(size) => (after_line(size, first), Step { len: 1, content: false }),
            State::ChunkEnd if first == b'\r' => (State::ChunkEnd, Step { len: 1, content: false }),
            State::ChunkEnd if first == b'\n' => (State::Size(0), Step { len: 1, content: false }),
            State::ChunkEnd => return Err(Failure::Garbled),
            State::Trailer(start) => {
                self.done = start && first == b'\n';
                let next = State::Trailer(first == b'\n' || start && first == b'\r');
                (next, Step { len: 1, content: false })
            }
        };
        self.done |= matches!(state, State::Content(0));
        self.state = state;
        Ok(step)
    }
}

fn after_line(size: u64, byte: u8) -> State {
    match (byte, size) {
        (b'\n', 0) => State::Trailer(true),
        (b'\n', size) => State::Chunk(size),
        (_, size) => State::Extension(size),
    }
}
