//! Agents of a fleet: each enrols, gets its policy, acknowledges it and waits, on a connection of its own, as Elastic Agents do.

use flate2::read::GzDecoder;
use std::io::{self, Read as _};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::sync::oneshot;
use tokio::time::sleep;

/// Connections from one address of this machine: there are not more ports.
const PER_ADDRESS: usize = 20_000;
/// How long an agent waits before it tries again, where it is not told.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_HEAD: usize = 8 << 10;
/// The longest answer, in bytes.
const LONGEST_BODY: usize = 4 << 20;
/// Of a decompressed answer, the bytes in which the revision is looked for.
const ENVELOPE: usize = 1 << 10;

/// The agents to simulate.
#[derive(Debug, Clone)]
pub struct FleetSettings {
    /// Where they enrol and check in.
    pub address: SocketAddr,
    /// Their token of enrolment.
    pub token: String,
    /// The policy that the token is for.
    pub policy: String,
    /// How many there are.
    pub agents: usize,
    /// They come spread over this time.
    pub spread: Duration,
}

/// Running agents. Dropping it ends them.
pub struct FleetAgents {
    shared: Arc<Shared>,
    /// Each of the threads ends when its sender is gone.
    ends: Vec<oneshot::Sender<()>>,
    threads: Vec<JoinHandle<()>>,
}

/// How far the agents are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FleetProgress {
    /// Agents that have a key.
    pub enrolled: u64,
    /// Agents that have acknowledged a policy and check in again.
    pub checked_in: u64,
    /// Answers that asked them to come later.
    pub refused: u64,
    /// Connections that were closed without an answer, or not made.
    pub lost: u64,
    /// Agents that were told that they are unknown although they had enrolled.
    pub forgotten: u64,
}

struct Shared {
    settings: FleetSettings,
    enrolled: AtomicU64,
    checked_in: AtomicU64,
    refused: AtomicU64,
    lost: AtomicU64,
    forgotten: AtomicU64,
    /// The revision that is waited for, and when each agent has got it since.
    awaited: Mutex<(u64, Instant, Vec<Duration>)>,
}

impl FleetAgents {
    /// Starts them, on threads of their own.
    ///
    /// # Errors
    /// When there are no threads.
    pub fn start(settings: FleetSettings, threads: usize) -> io::Result<FleetAgents> {
        let shared = Arc::new(Shared {
            enrolled: AtomicU64::new(0),
            checked_in: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            forgotten: AtomicU64::new(0),
            awaited: Mutex::new((u64::MAX, Instant::now(), Vec::new())),
            settings,
        });
        let mut running = FleetAgents { shared, ends: Vec::new(), threads: Vec::new() };
        for thread in 0..threads {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            let (end, ended) = oneshot::channel::<()>();
            let shared = Arc::clone(&running.shared);
            let work = move || {
                for number in (thread..shared.settings.agents).step_by(threads) {
                    runtime.spawn(Agent::new(Arc::clone(&shared), number).live());
                }
                // Its sender is dropped and never used.
                let _ended = runtime.block_on(ended);
            };
            running.ends.push(end);
            running.threads.push(std::thread::Builder::new().name("agents".to_owned()).spawn(work)?);
        }
        Ok(running)
    }

    /// How far they are.
    pub fn progress(&self) -> FleetProgress {
        let Shared { enrolled, checked_in, refused, lost, forgotten, .. } = &*self.shared;
        FleetProgress {
            enrolled: enrolled.load(Relaxed),
            checked_in: checked_in.load(Relaxed),
            refused: refused.load(Relaxed),
            lost: lost.load(Relaxed),
            forgotten: forgotten.load(Relaxed),
        }
    }

    /// From now on agents say when they get this revision of their policy.
    pub fn await_revision(&self, revision: u64) {
        let mut awaited = self.shared.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        *awaited = (revision, Instant::now(), Vec::with_capacity(self.shared.settings.agents));
    }

    /// How long each agent that has got that revision took, in order.
    pub fn arrivals(&self) -> Vec<Duration> {
        self.shared.awaited.lock().unwrap_or_else(PoisonError::into_inner).2.clone()
    }
}

impl Drop for FleetAgents {
    fn drop(&mut self) {
        self.ends.clear();
        for thread in self.threads.drain(..) {
            // A panic of an agent was reported where it happened.
            let _ended = thread.join();
        }
    }
}

/// Has agents check in as fast as they are answered, for `time`; how often that was. Each has the newest revision of the policy, so
/// nothing comes for it: its check-in waits until the next, on another connection, takes its place.
///
/// # Errors
/// When an agent cannot enrol, or is not answered.
pub fn check_ins(settings: &FleetSettings, time: Duration) -> io::Result<u64> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut agents = tokio::task::JoinSet::new();
        for _ in 0..settings.agents {
            // The set waits for them.
            agents.spawn(superseding(settings.clone(), time));
        }
        let mut total = 0;
        while let Some(done) = agents.join_next().await {
            total +=
                done.map_err(io::Error::other)?.map_err(|_| io::Error::other("an agent was not answered"))?;
        }
        Ok(total)
    })
}

async fn superseding(settings: FleetSettings, time: Duration) -> Result<u64, Setback> {
    let FleetSettings { address, token, policy, .. } = settings;
    let mut first = TcpStream::connect(address).await?;
    let mut second = TcpStream::connect(address).await?;
    let answer = ask(&mut first, "enroll", &token, "{\"type\":\"PERMANENT\"}").await?;
    let (id, key) = enrolled(&answer).ok_or(Setback::Lost)?;
    let route = format!("{id}/checkin");
    let answer = ask(&mut first, &route, &key, "{\"status\":\"online\"}").await?;
    let newest = revision(&answer, &policy).ok_or(Setback::Lost)?;
    let body = format!(
        "{{\"status\":\"online\",\"agent_policy_id\":\"{policy}\",\"policy_revision_idx\":{newest}}}"
    );
    let (begun, mut answered) = (Instant::now(), 0);
    send(&mut first, &route, &key, &body).await?;
    while begun.elapsed() < time {
        send(&mut second, &route, &key, &body).await?;
        receive(&mut first).await?;
        answered += 1;
        std::mem::swap(&mut first, &mut second);
    }
    Ok(answered)
}

/// An agent.
struct Agent {
    shared: Arc<Shared>,
    number: usize,
    /// Its id and its key.
    enrolled: Option<(String, String)>,
    revision: u64,
    has_checked_in: bool,
}

/// Why an agent has to try again.
enum Setback {
    /// It was told so.
    Refused(Duration),
    Lost,
}

impl From<io::Error> for Setback {
    fn from(_: io::Error) -> Setback {
        Setback::Lost
    }
}

impl Agent {
    fn new(shared: Arc<Shared>, number: usize) -> Agent {
        Agent { shared, number, enrolled: None, revision: 0, has_checked_in: false }
    }

    async fn live(mut self) {
        let FleetSettings { agents, spread, .. } = self.shared.settings;
        sleep(spread.mul_f64(self.number as f64 / agents.max(1) as f64)).await;
        loop {
            match self.work().await {
                Ok(()) => {}
                Err(Setback::Refused(wait)) => {
                    self.shared.refused.fetch_add(1, Relaxed);
                    sleep(wait.mul_f64(1.0 + rand::random::<f64>() / 2.0)).await;
                }
                Err(Setback::Lost) => {
                    self.shared.lost.fetch_add(1, Relaxed);
                    sleep(PAUSE.mul_f64(0.5 + rand::random::<f64>())).await;
                }
            }
        }
    }

    /// Works on one connection.
    async fn work(&mut self) -> Result<(), Setback> {
        let mut stream = self.connect().await?;
        let token = self.shared.settings.token.clone();
        loop {
            let Some((id, key)) = self.enrolled.clone() else {
                let body =
                    "{\"type\":\"PERMANENT\",\"metadata\":{\"local\":{\"host\":{\"hostname\":\"h\"}}}}";
                let answer = ask(&mut stream, "enroll", &token, body).await?;
                self.enrolled = enrolled(&answer);
                if self.enrolled.is_none() {
                    return Err(Setback::Lost);
                }
                self.shared.enrolled.fetch_add(1, Relaxed);
                continue;
            };
            let policy = &self.shared.settings.policy;
            let body = match self.revision {
                0 => "{\"status\":\"online\"}".to_owned(),
                revision => format!(
                    "{{\"status\":\"online\",\"agent_policy_id\":\"{policy}\",\"policy_revision_idx\":{revision}}}"
                ),
            };
            if self.revision > 0 && !self.has_checked_in {
                self.has_checked_in = true;
                self.shared.checked_in.fetch_add(1, Relaxed);
            }
            let answer = match ask(&mut stream, &format!("{id}/checkin"), &key, &body).await {
                Ok(answer) => answer,
                Err(setback) => {
                    if let Setback::Refused(Duration::MAX) = setback {
                        self.shared.forgotten.fetch_add(1, Relaxed);
                        return Err(Setback::Refused(PAUSE));
                    }
                    return Err(setback);
                }
            };
            let Some(revision) = revision(&answer, policy) else { continue };
            self.got(revision);
            let event = format!(
                "{{\"events\":[{{\"action_id\":\"policy:{policy}:{revision}\",\"agent_id\":\"{id}\"}}]}}"
            );
            ask(&mut stream, &format!("{id}/acks"), &key, &event).await?;
            self.revision = revision;
        }
    }

    fn got(&self, revision: u64) {
        let mut awaited = self.shared.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        let (wanted, since, arrivals) = &mut *awaited;
        if revision >= *wanted && self.revision < *wanted {
            arrivals.push(since.elapsed());
        }
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        let third = u8::try_from(1 + self.number / PER_ADDRESS).unwrap_or(u8::MAX);
        socket.bind(SocketAddr::from((Ipv4Addr::new(127, 0, third, 1), 0)))?;
        let stream = socket.connect(self.shared.settings.address).await?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Sends a request and waits for its answer, which is whole.
async fn ask(stream: &mut TcpStream, route: &str, key: &str, body: &str) -> Result<Vec<u8>, Setback> {
    send(stream, route, key, body).await?;
    receive(stream).await
}

async fn send(stream: &mut TcpStream, route: &str, key: &str, body: &str) -> io::Result<()> {
    let request = format!(
        "POST /api/fleet/agents/{route} HTTP/1.1\r\nHost: fleet\r\nAuthorization: ApiKey {key}\r\n\
         User-Agent: Elastic Agent v9.1.0\r\nAccept-Encoding: gzip\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await
}

/// Waits for an answer; what of it is looked at.
async fn receive(stream: &mut TcpStream) -> Result<Vec<u8>, Setback> {
    // An agent that waits has no buffer either, so that many fit.
    stream.readable().await?;
    let mut read = Vec::with_capacity(1 << 10);
    let end = loop {
        if stream.read_buf(&mut read).await? == 0 || read.len() > LONGEST_HEAD + LONGEST_BODY {
            return Err(Setback::Lost);
        }
        if let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
    };
    let head = String::from_utf8_lossy(read.get(..end).unwrap_or_default()).to_ascii_lowercase();
    let number = |name: &str| {
        let value = head.split("\r\n").find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.and_then(|value| value.trim().parse::<usize>().ok())
    };
    let length = number("content-length").filter(|length| *length <= LONGEST_BODY).ok_or(Setback::Lost)?;
    let status = head.get(9..12).and_then(|status| status.parse::<u16>().ok()).unwrap_or(0);
    let is_compressed = head.contains("content-encoding: gzip");
    let wait = number("retry-after").map(|seconds| Duration::from_secs(seconds as u64));
    let mut body = read.split_off(end);
    drop(read);
    body.reserve_exact(length.saturating_sub(body.len()));
    while body.len() < length {
        if stream.read_buf(&mut body).await? == 0 {
            return Err(Setback::Lost);
        }
    }
    match status {
        200 if is_compressed => {
            let mut envelope = Vec::new();
            #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
            GzDecoder::new(&*body).take(ENVELOPE as u64).read_to_end(&mut envelope)?;
            Ok(envelope)
        }
        200 => Ok(body),
        401 => Err(Setback::Refused(Duration::MAX)),
        _ => Err(Setback::Refused(wait.unwrap_or(PAUSE))),
    }
}

/// The id and the key in the answer to an enrolment.
fn enrolled(answer: &[u8]) -> Option<(String, String)> {
    let text = str::from_utf8(answer).ok()?;
    let member = |name: &str| {
        let from = text.find(&format!("\"{name}\":\""))? + name.len() + 4;
        text.get(from..)?.split('"').next().map(str::to_owned)
    };
    Some((member("access_api_key_id")?, member("access_api_key")?))
}

/// The revision of the policy in the answer to a check-in, if there is one.
fn revision(answer: &[u8], policy: &str) -> Option<u64> {
    let text = String::from_utf8_lossy(answer);
    let action = format!("\"policy:{policy}:");
    let from = text.find(&action)? + action.len();
    text.get(from..)?.split('"').next()?.parse().ok()
}
