//! Traffic that means no good: bodies that lie, and clients that hold on to what they get.

use crate::protobuf::varint;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, MissedTickBehavior, interval, timeout_at};

/// `body`, a Snappy block, with a preamble that claims `claimed` bytes.
pub fn with_preamble(body: &[u8], claimed: u64) -> Vec<u8> {
    let preamble = body.iter().position(|byte| *byte < 0x80).map_or(0, |last| last + 1);
    let mut lying = Vec::with_capacity(body.len() + 10);
    varint(&mut lying, claimed);
    lying.extend_from_slice(&body[preamble..]);
    lying
}

/// A small block that claims to be gigabytes and cannot be: 330 bytes expand to some 7,000.
pub fn bomb() -> Vec<u8> {
    let mut block = vec![0, b'a'];
    while block.len() + 3 <= 325 {
        block.extend_from_slice(&COPY_64);
    }
    with_preamble(&prefixed(&block), 3 << 30)
}

/// A block of `decoded_len` bytes of `a` that is as small as Snappy can make it, and quite valid.
pub fn most_compressed(decoded_len: u32) -> Vec<u8> {
    let mut block = Vec::new();
    let mut left = decoded_len;
    if left > 0 {
        block.extend_from_slice(&[0, b'a']);
        left -= 1;
    }
    while left >= 64 {
        block.extend_from_slice(&COPY_64);
        left -= 64;
    }
    if left > 0 {
        block.extend_from_slice(&[((left - 1) as u8) << 2 | 2, 1, 0]);
    }
    with_preamble(&prefixed(&block), u64::from(decoded_len))
}

/// A block with a copy that reaches back before its beginning.
pub fn copy_out_of_range() -> Vec<u8> {
    // Four literal bytes, then 64 bytes from 1,000 bytes ago.
    vec![68, 3 << 2, b'a', b'b', b'c', b'd', 63 << 2 | 2, 0xe8, 0x03]
}

/// A copy of 64 bytes from one byte ago.
const COPY_64: [u8; 3] = [63 << 2 | 2, 1, 0];

fn prefixed(block: &[u8]) -> Vec<u8> {
    let mut whole = vec![0];
    whole.extend_from_slice(block);
    whole
}

/// `count` connections that send nothing.
///
/// # Errors
/// When one could not be made.
pub async fn idle(address: SocketAddr, count: usize) -> io::Result<Vec<TcpStream>> {
    let mut connections = Vec::with_capacity(count.min(100_000));
    for _ in 0..count {
        connections.push(TcpStream::connect(address).await?);
    }
    Ok(connections)
}

/// The results of hostile connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostileReport {
    /// Connections made.
    pub connected: u64,
    /// Connections that could not be made.
    pub not_connected: u64,
    /// Connections that were answered something.
    pub answered: u64,
    /// Connections that were closed by the other end, answered or not.
    pub closed: u64,
}

/// `count` connections that send `request` one byte per `pause`, until `limit`.
pub async fn slow_loris(
    address: SocketAddr,
    count: usize,
    request: &[u8],
    pause: Duration,
    limit: Duration,
) -> HostileReport {
    let until = Instant::now() + limit;
    let mut outcome = HostileReport::default();
    let mut connections = Vec::with_capacity(count.min(100_000));
    for _ in 0..count {
        match timeout_at(until, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => connections.push(stream),
            _ => outcome.not_connected += 1,
        }
    }
    outcome.connected = connections.len() as u64;
    let mut beat = interval(pause);
    beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for byte in request {
        if connections.is_empty() || timeout_at(until, beat.tick()).await.is_err() {
            break;
        }
        connections.retain_mut(|stream| match look(stream) {
            Some(ConnectionOutcome { answered, closed }) => {
                outcome.answered += u64::from(answered);
                outcome.closed += u64::from(closed);
                false
            }
            None => stream.try_write(std::slice::from_ref(byte)).is_ok(),
        });
    }
    outcome
}

struct ConnectionOutcome {
    answered: bool,
    closed: bool,
}

/// Bytes or an end that the peer sent unprompted; `None` if nothing.
fn look(stream: &TcpStream) -> Option<ConnectionOutcome> {
    let mut answer = [0; 512];
    match stream.try_read(&mut answer) {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => None,
        Ok(0) | Err(_) => Some(ConnectionOutcome { answered: false, closed: true }),
        Ok(_) => {
            let after = stream.try_read(&mut answer);
            let open = matches!(&after, Err(error) if error.kind() == io::ErrorKind::WouldBlock);
            Some(ConnectionOutcome { answered: true, closed: !open })
        }
    }
}

/// `per_second` connections a second, each of which sends `request` (which may be nothing) and goes away
/// without waiting for an answer, until `limit`.
pub async fn churn(address: SocketAddr, per_second: u32, request: &[u8], limit: Duration) -> HostileReport {
    let until = Instant::now() + limit;
    let mut outcome = HostileReport::default();
    let mut beat = interval(Duration::from_secs(1) / per_second.max(1));
    while timeout_at(until, beat.tick()).await.is_ok() {
        match timeout_at(until, TcpStream::connect(address)).await {
            Ok(Ok(mut stream)) => {
                outcome.connected += 1;
                let _gone = timeout_at(until, stream.write_all(request)).await;
            }
            Ok(Err(_refused)) => outcome.not_connected += 1,
            Err(_over) => break,
        }
    }
    outcome
}

/// Sends `bytes` as they are and reads what comes back, at most 64 KiB, until the other end closes or
/// `limit`.
///
/// # Errors
/// When no connection could be made.
pub async fn exchange(address: SocketAddr, bytes: &[u8], limit: Duration) -> io::Result<Vec<u8>> {
    let until = Instant::now() + limit;
    let mut stream = TcpStream::connect(address).await?;
    let (mut reader, mut writer) = stream.split();
    let mut answer = Vec::new();
    let mut limited = (&mut reader).take(64 * 1024);
    let both = async {
        let send = async {
            // It may be refused before it is sent.
            let _refused = writer.write_all(bytes).await;
        };
        let receive = async { while limited.read_buf(&mut answer).await.is_ok_and(|read| read > 0) {} };
        tokio::join!(send, receive);
    };
    let _timed_out = timeout_at(until, both).await;
    Ok(answer)
}
