//! `tidegate tap`: asks a running gateway for what passes, and prints it.

use super::check::config;
use super::token::authorization;
use crate::cli::TapArgs;
use crate::{Failure, Outcome, output};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant};
use tidegate_tap::Look;

/// How long the gateway waits for something to show before it answers that there was nothing.
const WAIT: Duration = Duration::from_secs(1);
/// How long connecting and answering may take beyond that.
const PATIENCE: Duration = Duration::from_secs(15);
/// How long to wait when the gateway has no answer now.
const PAUSE: Duration = Duration::from_secs(1);
/// No answer is longer; the gateway's own bound is below it.
const LONGEST_ANSWER: u64 = 1 << 20;
const LONGEST_HEAD: usize = 16 << 10;

/// `tidegate tap`
pub(crate) fn tap(args: &TapArgs) -> Outcome {
    let mut look = look(args)?;
    let admin = address(args)?;
    let authorization = authorization(args.admin_token_file.as_deref(), args.admin_token.as_deref())?;
    let deadline = deadline(args)?;
    let mut left = args.count;
    let mut missed = Missed::default();
    let mut out = io::stdout().lock();
    let outcome = loop {
        let time = deadline.map_or(WAIT, |deadline| deadline.saturating_duration_since(Instant::now()));
        if time.is_zero() || left == Some(0) {
            break Ok(());
        }
        look.wait = time.min(WAIT);
        match ask(admin, &look, &authorization) {
            Ok(Answer::Lines(lines)) => match print(&mut out, &lines, &mut left, &mut missed) {
                Ok(()) => {}
                // The reader of a pipe has seen enough.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => break Ok(()),
                Err(error) => break Err(Failure(format!("printing what was seen: {error}"))),
            },
            Ok(Answer::Later(words)) => {
                output::error(&words);
                std::thread::sleep(PAUSE.min(time));
            }
            Ok(Answer::No(words)) => break Err(Failure(words)),
            Err(error) => {
                break Err(Failure(format!(
                    "asking the gateway at {admin} for a look: {error}; is it running, and is that its \
                     `listen.admin`? Name another with --admin, or the configuration with --config"
                )));
            }
        }
    };
    missed.say(true);
    outcome
}

/// What was not shown, for standard error.
#[derive(Default)]
struct Missed {
    records: u64,
    lines: u64,
    /// As far as it was said, and when.
    said: (u64, u64),
    last: Option<Instant>,
}

impl Missed {
    /// Says what was missed since the last time: once in a while, and at the end.
    fn say(&mut self, end: bool) {
        let now = (self.records, self.lines);
        let lately = self.last.is_some_and(|last| last.elapsed() < Duration::from_secs(5));
        if now == self.said || (lately && !end) {
            return;
        }
        (self.said, self.last) = (now, Some(Instant::now()));
        let words = format!(
            "so far {} records passed that were not caught, and {} items had no room in an answer; \
             --every N, --signal and --source show fewer",
            self.records, self.lines
        );
        output::error(&words);
    }
}

/// An answer of the gateway.
enum Answer {
    /// What was caught, and the line about what was not.
    Lines(String),
    /// Not now.
    Later(String),
    /// Not so.
    No(String),
}

fn print(out: &mut impl Write, lines: &str, left: &mut Option<u64>, missed: &mut Missed) -> io::Result<()> {
    for line in lines.lines() {
        if line.starts_with("{\"missed_records\":") {
            let last: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
            let count = |name: &str| last.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
            missed.records += count("missed_records");
            missed.lines += count("lines_without_room");
        } else if *left != Some(0) {
            writeln!(out, "{line}")?;
            *left = left.map(|left| left - 1);
        }
    }
    out.flush()?;
    missed.say(false);
    Ok(())
}

fn look(args: &TapArgs) -> Result<Look, Failure> {
    // Through the same words as in a request, so that mistakes are told before anything is asked.
    let id = format!("{}-{}", std::process::id(), jiff::Timestamp::now().as_millisecond());
    let look = Look {
        id,
        source: args.source.clone(),
        sink: args.sink.clone(),
        service: args.service.clone(),
        name: args.name.clone(),
        contains: args.contains.clone(),
        every: args.every,
        ..Look::default()
    };
    let mut query = look.to_query();
    if let Some(signal) = &args.signal {
        if !signal.bytes().all(|byte| byte.is_ascii_lowercase()) {
            return Err(Failure(format!(
                "--signal {signal}: the signals are metrics, logs, traces and profiles"
            )));
        }
        query.push_str("&signal=");
        query.push_str(signal);
    }
    Ok(Look::from_query(&query)?)
}

fn deadline(args: &TapArgs) -> Result<Option<Instant>, Failure> {
    let Some(duration) = &args.duration else { return Ok(None) };
    let parsed: tidegate_config::Duration = duration.parse().map_err(|error: tidegate_config::Invalid| {
        format!("--for {duration}: {}; {}", error.message, error.help)
    })?;
    Ok(Instant::now().checked_add(parsed.get()))
}

fn address(args: &TapArgs) -> Result<SocketAddr, Failure> {
    let Some(admin) = &args.admin else { return Ok(reachable(config(&args.config)?.listen.admin)) };
    let found = admin.to_socket_addrs().ok().and_then(|mut found| found.next());
    found
        .ok_or_else(|| Failure(format!("--admin {admin}: write an address and a port, as in 127.0.0.1:4319")))
}

/// Who listens on every address is reached on loopback.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        let ip = if address.is_ipv4() { [127, 0, 0, 1].into() } else { std::net::Ipv6Addr::LOCALHOST.into() };
        address.set_ip(ip);
    }
    address
}

/// One request on a connection of its own.
fn ask(admin: SocketAddr, look: &Look, authorization: &str) -> io::Result<Answer> {
    let mut stream = TcpStream::connect_timeout(&admin, PATIENCE)?;
    stream.set_read_timeout(Some(WAIT + PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let query = look.to_query();
    stream.write_all(
        format!("GET /tap?{query} HTTP/1.1\r\nHost: {admin}\r\n{authorization}Connection: close\r\n\r\n")
            .as_bytes(),
    )?;
    let mut answer = BufReader::new(stream.take(LONGEST_ANSWER));
    let (status, length) = head(&mut answer)?;
    let mut body = vec![0; length];
    answer.read_exact(&mut body)?;
    let body = String::from_utf8(body).map_err(|_| invalid("the answer is not text"))?;
    Ok(match status {
        200 => Answer::Lines(body),
        401 => Answer::No(format!("{}: name the file with a token in --admin-token-file", body.trim_end())),
        409 | 429 | 503 => Answer::Later(body),
        404 if body.starts_with("nothing is served") => {
            return Err(invalid("it has no /tap, so it is another program or an older version"));
        }
        _ => Answer::No(body),
    })
}

/// The status of an answer, and the length of its content.
fn head(answer: &mut impl BufRead) -> io::Result<(u16, usize)> {
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
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    });
    let length = length.filter(|length| *length as u64 <= LONGEST_ANSWER);
    Ok((status, length.ok_or_else(|| invalid("the answer does not say how long it is"))?))
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
