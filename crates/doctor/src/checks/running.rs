//! The gateway that runs: whether its admin address answers, its state, its sinks, what it refuses, its memory.

use crate::examination::READ_LIMIT;
use crate::finding::Finding;
use crate::probe;
use crate::subject::Setup;
use crate::system::{processes, sockets, within};
use bytes::Bytes as Body;
use http_body_util::Full;
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use hyper::{Request, Uri};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_arena::Bytes;
use tidegate_ledger::{Dropped, Refusal};
use tokio::net::TcpStream;

/// How long a page may take.
const LIMIT: Duration = Duration::from_secs(5);
/// The most bytes of a page.
const LONGEST: usize = 8 << 20;
/// The most characters of words from outside, and of a name.
const LONGEST_WORDS: usize = 300;
const LONGEST_NAME: usize = 64;
/// The most sinks that are judged, and the most different reasons that are told.
const MOST_SINKS: usize = 256;
const MOST_REASONS: usize = 16;
/// Losses are of now if the sink's last error is no older, in seconds.
const LATELY: f64 = 3600.0;
/// Of the budget, that much resident memory is near it.
const NEAR: f64 = 0.95;

/// The answers of the admin address.
#[derive(Debug, Clone, Default)]
pub(crate) struct Running {
    /// Where it was asked.
    pub(crate) admin: Option<SocketAddr>,
    /// `/status.json`.
    pub(crate) status: Option<Value>,
    /// `/metrics`.
    pub(crate) metrics: Option<String>,
    /// Why nothing takes data, in the words of `/ready`.
    unready: Option<String>,
    /// Why there is no status.
    failure: Option<String>,
    /// The beginning of the answer of something else, in its own words.
    said: String,
    /// Whether something answered.
    is_answered: bool,
    /// Whether it is the gateway of the data folder that is examined.
    pub(crate) is_ours: bool,
}

impl Running {
    /// Whether it says that it is the gateway of this data folder. Its paths may be relative to `cwd`.
    fn is_of(&self, data: &Path, cwd: Option<&Path>) -> bool {
        let folder = self.status.as_ref().and_then(|status| status.pointer("/journal/dir")?.as_str());
        let folder: Option<PathBuf> =
            folder.map(|folder| cwd.map_or_else(|| folder.into(), |cwd| cwd.join(folder)));
        let own = data.join("journal");
        folder.is_some_and(|folder| within(READ_LIMIT, move || is_same(&folder, &own)) == Some(true))
    }
}

/// Whether two paths are one folder.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

/// Asks whoever is at the admin address. It is the gateway of the folder `data` if it is the process `owner`, which has the
/// folder, or if it says so.
pub(crate) fn ask_for(
    root: &Path,
    admin: SocketAddr,
    data: &Path,
    owner: Option<u32>,
    authorization: &str,
) -> Running {
    let running = ask(admin, authorization);
    let pid = sockets::holder(root, admin, false).and_then(|holder| holder.pid);
    let cwd =
        pid.and_then(|pid| std::fs::read_link(root.join("proc").join(pid.to_string()).join("cwd")).ok());
    let is_owner = owner.is_some() && owner == pid;
    let is_ours = running.status.is_some() && (is_owner || running.is_of(data, cwd.as_deref()));
    Running { is_ours, ..running }
}

fn ask(admin: SocketAddr, authorization: &str) -> Running {
    let admin = reachable(admin);
    let mut running = Running { admin: Some(admin), ..Running::default() };
    let Ok(runtime) = probe::runtime() else { return running };
    match runtime.block_on(page(admin, "/status.json", authorization)) {
        Err(error) => running.failure = Some(error),
        Ok((200, text)) => {
            running.is_answered = true;
            running.status = serde_json::from_str(&text).ok().filter(Value::is_object);
            if running.status.is_none() {
                running.failure = Some("what answers there is not a gateway".to_owned());
            }
        }
        Ok((status, text)) => {
            running.is_answered = true;
            running.failure = Some(format!("it answered with status {status}"));
            running.said = brief(text.lines().next().unwrap_or_default());
        }
    }
    if running.status.is_some() {
        let metrics = runtime.block_on(page(admin, "/metrics", authorization));
        running.metrics = metrics.ok().filter(|(status, _)| *status == 200).map(|(_, text)| text);
        let ready = runtime.block_on(page(admin, "/ready", authorization));
        running.unready = ready.ok().filter(|(status, _)| *status == 503).map(|(_, text)| brief(text.trim()));
    }
    runtime.shutdown_background();
    running
}

/// The beginning of words from outside.
fn brief(words: &str) -> String {
    match words.char_indices().nth(LONGEST_WORDS) {
        Some((end, _)) => format!("{}…", words.get(..end).unwrap_or_default()),
        None => words.to_owned(),
    }
}

/// A listener on every address is reached on loopback.
fn reachable(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        let (v4, v6) = (IpAddr::from(Ipv4Addr::LOCALHOST), IpAddr::from(Ipv6Addr::LOCALHOST));
        address.set_ip(if address.is_ipv4() { v4 } else { v6 });
    }
    address
}

/// The status and the text of a page.
async fn page(admin: SocketAddr, path: &'static str, authorization: &str) -> Result<(u16, String), String> {
    let exchange = async {
        let stream = TcpStream::connect(admin).await.map_err(|error| error.to_string())?;
        let mut request = Request::new(Full::new(Body::new()));
        *request.uri_mut() = Uri::from_static(path);
        let header = |text: &str| HeaderValue::from_str(text).map_err(|error| error.to_string());
        request.headers_mut().insert(HOST, header(&admin.to_string())?);
        if !authorization.is_empty() {
            request.headers_mut().insert(AUTHORIZATION, header(authorization)?);
        }
        let answer = probe::ask_http1_keeping(Box::new(stream), request, LONGEST).await;
        answer.map_err(|error| probe::chain(&*error))
    };
    match tokio::time::timeout(LIMIT, Box::pin(exchange)).await {
        Ok(Ok(answer)) => Ok((answer.status, String::from_utf8_lossy(&answer.body).into_owned())),
        Ok(Err(error)) => Err(error),
        Err(_) => Err(format!("no answer within {} s", LIMIT.as_secs())),
    }
}

/// Judges the answers; `owner` is the process that has the data folder.
pub(crate) fn check(running: &Running, setup: &Setup, root: &Path, owner: Option<u32>) -> Vec<Finding> {
    let admin = running.admin.unwrap_or(setup.admin);
    let failure = running.failure.clone().unwrap_or_default();
    let Some(status) = &running.status else {
        let finding = match owner {
            Some(pid) if running.is_answered => {
                Finding::note(format!("the running gateway does not show its state at {admin}"), failure)
                    .remedy(format!("name the file with an admin token in --admin-token-file, if process {pid} wants one"))
            }
            Some(pid) => {
                let what = format!("a gateway runs, process {}, and its admin address {admin} does not answer", processes::shown(root, pid));
                let remedy = "if it was started with another `listen.admin` or in another network, ask it there; if not, it hangs: look \
                              at its log, then restart it";
                Finding::broken(what, failure).remedy(remedy)
            }
            None => Finding::note(format!("no gateway answers at the admin address {admin}"), failure)
                .remedy("if it should be running, its log says why it is not: `journalctl -u tidegate`, `docker logs`, or start it here with `tidegate run`"),
        };
        return vec![finding.quoting(&*running.said)];
    };
    if !running.is_ours {
        let folder = status.pointer("/journal/dir").and_then(Value::as_str).unwrap_or_default();
        let own = setup.data.path.join("journal");
        let evidence = format!("/status.json: its journal is not this one's, which is {}", own.display());
        let remedy = "set another `listen.admin`, or examine the configuration of that gateway";
        let what = format!("another gateway answers at the admin address {admin}");
        let words = format!("its journal is {}", brief(folder));
        return vec![Finding::at_risk(what, evidence).quoting(words).remedy(remedy)];
    }
    let mut findings = Vec::new();
    findings.push(state(status, running.unready.as_deref()));
    findings.extend(sinks(status));
    findings.extend(memory(status));
    findings.extend(refusals(status));
    findings
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn number(value: &Value, pointer: &str) -> u64 {
    value.pointer(pointer).and_then(Value::as_u64).unwrap_or(0)
}

fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn state(status: &Value, unready: Option<&str>) -> Finding {
    let (state, reason) = (text(status, "state").replace('_', " "), brief(text(status, "reason")));
    let uptime = status.get("uptime_seconds").and_then(Value::as_f64).unwrap_or(0.0);
    let evidence = format!(
        "/status.json, of version {}, which has run for {uptime:.0} s",
        named(text(status, "version"))
    );
    if let Some(unready) = unready {
        return Finding::broken("the gateway takes no data", format!("/ready: status 503; {evidence}"))
            .quoting(unready)
            .remedy("the reason is often the disk: see the findings on disk and journal");
    }
    // The reason names sinks, and may quote a peer.
    match state.as_str() {
        "flowing" => Finding::fine("the gateway takes data, and its sinks keep up", evidence).quoting(reason),
        "draining" => Finding::note("the gateway takes data, and its sinks catch up", evidence).quoting(reason),
        "spilling" => Finding::at_risk("the gateway takes data, and it piles up on disk because a sink is slow or fails", evidence)
            .quoting(reason)
            .remedy("see the findings on sinks and peers"),
        "pushing back" => Finding::at_risk("the gateway refuses or delays new data", evidence)
            .quoting(reason)
            .remedy("the reason says what is used up: memory (`memory`), the disk (`journal.quota`), connections (`limits.connections`), or a cluster that fails"),
        other => Finding::at_risk(format!("the gateway is {}", named(other)), evidence).quoting(reason),
    }
}

/// A name that is short and has nothing but what names have; otherwise its length.
fn named(name: &str) -> String {
    let is_name = |c: char| c.is_alphanumeric() || " ._-+()".contains(c);
    match !name.is_empty() && name.chars().count() <= LONGEST_NAME && name.chars().all(is_name) {
        true => name.to_owned(),
        false => format!("(a text of {} bytes)", name.len()),
    }
}

fn sinks(status: &Value) -> Vec<Finding> {
    let judge = |sink: &Value| {
        let name = named(text(sink, "name"));
        let lag = sink.pointer("/lag/age_seconds").and_then(Value::as_f64).unwrap_or(0.0);
        let usual = sink.get("usual_lag_seconds").and_then(Value::as_f64).unwrap_or(1.0);
        let items = number(sink, "/lag/items");
        let last = sink.get("last_error").filter(|error| error.is_object());
        let message = brief(last.map_or("", |error| text(error, "message")));
        let at = last.and_then(|error| text(error, "at").parse::<jiff::Timestamp>().ok());
        let failures = number(sink, "/failures");
        let evidence = format!(
            "/status.json: {items} items behind, the oldest {lag:.0} s old (usual: {usual:.0} s); {failures} failed requests, the last error at {}",
            at.map_or_else(|| "no time".to_owned(), |at| at.to_string())
        );
        let remedy = "see what the peer answered; the finding on this sink in `peers` tries it again";
        if sink.get("broken").and_then(Value::as_bool) == Some(true) {
            return Some(
                Finding::broken(
                    format!("the sink `{name}` has failed and is started again and again"),
                    evidence,
                )
                .quoting(message)
                .remedy(remedy),
            );
        }
        if items > 0 && lag > usual + 30.0 {
            return Some(
                Finding::at_risk(format!("the sink `{name}` is {lag:.0} s behind"), evidence)
                    .quoting(message)
                    .remedy(remedy),
            );
        }
        losses(&name, sink, age(status, at))
    };
    list(status, "/sinks").iter().take(MOST_SINKS).filter_map(judge).collect()
}

/// How old a moment was when the status was made, in seconds.
fn age(status: &Value, at: Option<jiff::Timestamp>) -> Option<f64> {
    let now: jiff::Timestamp = text(status, "at").parse().ok()?;
    Some(now.duration_since(at?).as_secs_f64())
}

/// Judges what a sink has dropped although nobody asked for it. The counts are of all the time since the sink was set up, so that only
/// an error of now says that it still does.
fn losses(name: &str, sink: &Value, age_of_error: Option<f64>) -> Option<Finding> {
    let count = |reason: Dropped| sink.get("dropped")?.get(reason.name())?.as_u64();
    let unintended = Dropped::ALL.iter().filter(|reason| !reason.is_intended());
    let counted: Vec<(&str, u64)> = unintended
        .filter_map(|reason| Some((reason.name(), count(*reason).filter(|count| *count > 0)?)))
        .collect();
    let sum = counted.iter().fold(0_u64, |sum, (_, count)| sum.saturating_add(*count));
    if sum == 0 {
        return None;
    }
    let what = format!("the sink `{name}` has dropped {sum} items since it was set up");
    let words: Vec<String> = counted.iter().map(|(reason, count)| format!("{reason} {count}")).collect();
    let evidence = format!("/status.json: dropped {}", words.join(", "));
    let remedy = "`tidegate journal dead-letters` lists what peers rejected, with their reasons";
    Some(match age_of_error {
        Some(age) if age <= LATELY => {
            let evidence = format!("{evidence}; its last error was {age:.0} s ago");
            Finding::at_risk(what, evidence).remedy(remedy)
        }
        _ => Finding::note(what, format!("{evidence}; it has had no error in the last hour")).remedy(remedy),
    })
}

fn memory(status: &Value) -> Vec<Finding> {
    let (limit, resident) = (number(status, "/memory/limit"), number(status, "/memory/resident/now"));
    if limit == 0 || resident == 0 {
        return Vec::new();
    }
    let evidence = format!("/status.json: resident {}, limit {}", Bytes(resident), Bytes(limit));
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let share = resident as f64 / limit as f64;
    let shares = list(status, "/memory/payload/shares").iter();
    let waiting = shares.fold(0_u64, |sum, share| sum.saturating_add(number(share, "/waiting")));
    vec![if waiting > 0 {
        Finding::at_risk(format!("{waiting} requests wait for memory"), evidence)
            .remedy("raise `memory`, or have clients send smaller requests")
    } else if share > NEAR {
        Finding::note("the gateway's memory is near its limit, which it does not exceed", evidence)
    } else {
        Finding::fine("the gateway has memory left", evidence)
    }]
}

/// Refused requests of sources, by reason.
fn refusals(status: &Value) -> Option<Finding> {
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    for source in list(status, "/books/sources") {
        let refused = source.get("refused").and_then(Value::as_object).into_iter().flatten();
        for (reason, count) in refused {
            // What this version does not know is one.
            let known = Refusal::ALL.iter().map(|known| known.name()).find(|known| known == reason);
            let sum = reasons.entry(known.unwrap_or("other reasons")).or_default();
            *sum = sum.saturating_add(count.as_u64().unwrap_or(0));
        }
    }
    let mut reasons: Vec<_> = reasons.into_iter().filter(|(_, count)| *count > 0).collect();
    reasons.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let words: Vec<String> =
        reasons.iter().take(MOST_REASONS).map(|(reason, count)| format!("{reason} {count}")).collect();
    (!words.is_empty()).then(|| {
        let lately = list(status, "/refused_lately");
        let evidence = format!("/status.json, since the start: {}", words.join(", "));
        match lately.is_empty() {
            true => Finding::note("clients were refused since the gateway was started", evidence),
            false => Finding::at_risk("clients are being refused", evidence)
                .remedy("the reasons are explained on the gateway's /status page"),
        }
    })
}

#[cfg(test)]
mod tests;
