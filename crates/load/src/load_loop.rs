//! The same request again and again on many connections, several at a time on each: for what refusing costs, where
//! making requests must cost nothing.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// The longest answer that is read, in bytes.
const MAX_ANSWER: usize = 16 * 1024;

/// The request to send.
#[derive(Clone, Debug)]
pub struct LoadLoop {
    /// A whole request: head and body.
    pub request: Vec<u8>,
    /// Connections.
    pub connections: usize,
    /// Requests in flight on each.
    pub depth: usize,
    /// How long to go on.
    pub time: Duration,
}

/// The response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadLoopReport {
    /// Answers, by status.
    pub answers: BTreeMap<u16, u64>,
    /// Connections that broke.
    pub broken: u64,
    /// The time between the first request and the last answer.
    pub elapsed: Duration,
}

/// Sends `load` to `address`. Always ends, a second after its time at last.
pub async fn run(address: SocketAddr, load: &LoadLoop) -> LoadLoopReport {
    let begun = Instant::now();
    let mut connections = JoinSet::new();
    let pipelined = load.request.repeat(load.depth.max(1));
    for _ in 0..load.connections {
        let (pipelined, depth, until) = (pipelined.clone(), load.depth.max(1), begun + load.time);
        connections.spawn(async move {
            let mut answers = BTreeMap::new();
            let running = connection(address, &pipelined, depth, until, &mut answers);
            let ended = timeout_at(until + Duration::from_secs(1), Box::pin(running)).await;
            (answers, matches!(ended, Ok(Ok(()))))
        });
    }
    let mut all = LoadLoopReport::default();
    while let Some(ended) = connections.join_next().await {
        let (answers, whole) = ended.unwrap_or_default();
        all.broken += u64::from(!whole);
        answers.into_iter().for_each(|(status, count)| *all.answers.entry(status).or_default() += count);
    }
    all.elapsed = begun.elapsed();
    all
}

/// [`run`] on a runtime of its own, on this thread.
///
/// # Errors
/// When the system has no means for a runtime.
pub fn run_blocking(address: SocketAddr, load: &LoadLoop) -> io::Result<LoadLoopReport> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(run(address, load)))
}

async fn connection(
    address: SocketAddr,
    pipelined: &[u8],
    depth: usize,
    until: Instant,
    answers: &mut BTreeMap<u16, u64>,
) -> io::Result<()> {
    let mut stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let mut received = Vec::with_capacity(MAX_ANSWER * 2);
    while Instant::now() < until {
        stream.write_all(pipelined).await?;
        let mut left = depth;
        while left > 0 {
            let mut used = 0;
            while let Some((status, len)) = answer(&received[used..])? {
                *answers.entry(status).or_default() += 1;
                used += len;
                left = left.saturating_sub(1);
            }
            received.drain(..used);
            if left > 0 && stream.read_buf(&mut received).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }
    Ok(())
}

/// The status and the length of the answer that `bytes` begin with; nothing when it is not whole yet.
fn answer(bytes: &[u8]) -> io::Result<Option<(u16, usize)>> {
    let broken = || io::Error::from(io::ErrorKind::InvalidData);
    let Some(head) = bytes.windows(4).position(|four| four == b"\r\n\r\n") else {
        return if bytes.len() > MAX_ANSWER { Err(broken()) } else { Ok(None) };
    };
    let text = str::from_utf8(&bytes[..head]).map_err(|_| broken())?;
    let status = text.get(9..12).and_then(|status| status.parse().ok()).ok_or_else(broken)?;
    let length = text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let len = head + 4 + length.unwrap_or(0).min(MAX_ANSWER);
    Ok((bytes.len() >= len).then_some((status, len)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let two =
            b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 3\r\n\r\nno\nHTTP/1.1 204 No Content\r\n\r\n";
        let (status, len) = answer(two).unwrap().unwrap();
        assert_eq!((status, answer(&two[len..]).unwrap()), (429, Some((204, two.len() - len))));
        assert_eq!(answer(&two[..len - 1]).unwrap(), None);
        assert!(answer(b"what is this\r\n\r\n").is_err());
    }
}
