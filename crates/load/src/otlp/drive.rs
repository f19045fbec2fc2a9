//! Driving a receiver of OTLP: connections that send numbered items and know which were acknowledged.

use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::{ContentCoding, ExportRequest, OtlpClient, Signal, Transport, now_ns};
use crate::drive::OnRefused;
use crate::numbers::NumberSet;
use crate::target::Target;

/// How to drive a receiver.
#[derive(Clone, Debug)]
pub struct OtlpProfile {
    /// How requests travel.
    pub transport: Transport,
    /// Their contents.
    pub signal: Signal,
    /// How they are compressed.
    pub coding: ContentCoding,
    /// Connections, each with one request in flight.
    pub connections: u64,
    /// Items in a request.
    pub items: u64,
    /// Requests of each connection.
    pub requests: u64,
    /// The number of the first item: where an earlier run ended.
    pub first: u64,
    /// The reaction to a refused or unanswered request.
    pub on_refused: OnRefused,
    /// How long an answer may take.
    pub answer_within: Duration,
    /// When to end in any case.
    pub deadline: Duration,
    /// Encode this many bodies per connection before starting, and send them again and again: for benches.
    pub prebuilt: Option<u64>,
}

impl Default for OtlpProfile {
    fn default() -> Self {
        Self {
            transport: Transport::Http,
            signal: Signal::Traces,
            coding: ContentCoding::Identity,
            connections: 4,
            items: 200,
            requests: 10,
            first: 0,
            on_refused: OnRefused::Retry { at_most: Duration::from_secs(1) },
            answer_within: Duration::from_secs(30),
            deadline: Duration::from_secs(60),
            prebuilt: None,
        }
    }
}

impl OtlpProfile {
    /// The number behind the last item that a whole run sends.
    pub fn end(&self) -> u64 {
        self.first + self.connections * self.requests * self.items
    }
}

/// The results of a run's requests.
#[derive(Clone, Debug, Default)]
pub struct OtlpReport {
    /// Answers, by status over HTTP or code over gRPC.
    pub answers: BTreeMap<u16, u64>,
    /// Requests that were taken.
    pub accepted: u64,
    /// Requests that were answered otherwise.
    pub refused: u64,
    /// Refusals to be sent again that said when.
    pub with_delay: u64,
    /// Requests without an answer.
    pub failed: u64,
    /// Items of requests that were taken.
    pub items: u64,
    /// Bytes of their bodies, as sent.
    pub bytes: u64,
    /// The numbers of acknowledged items; empty when bodies are prebuilt.
    pub acked: NumberSet,
    /// How long the run took.
    pub elapsed: Duration,
    /// The first reasons that came with refusals.
    pub reasons: Vec<String>,
}

const MAX_REASONS: usize = 5;
/// The wait before trying again when the answer names none.
const DEFAULT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// Sends as `profile` says. Always ends, at the profile's deadline at last.
pub async fn drive(target: &Target, profile: &OtlpProfile) -> OtlpReport {
    let started = Instant::now();
    let mut senders = JoinSet::new();
    for connection in 0..profile.connections {
        let (target, profile) = (target.clone(), profile.clone());
        senders.spawn(async move {
            let mut report = OtlpReport::default();
            let sending = Box::pin(send(&target, &profile, connection, &mut report));
            // The report contains all requests sent so far, whether the sender ended or was ended.
            let _ended = timeout(profile.deadline, sending).await;
            report
        });
    }
    let mut report = OtlpReport::default();
    while let Some(sent) = senders.join_next().await {
        match sent {
            Ok(sent) => report.merge(sent),
            Err(_panicked) => report.failed += 1,
        }
    }
    report.elapsed = started.elapsed();
    report
}

/// [`drive`] on a runtime of its own, on this thread.
///
/// # Errors
/// When the system has no means for a runtime.
pub fn drive_blocking(target: &Target, profile: &OtlpProfile) -> io::Result<OtlpReport> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    Ok(runtime.block_on(drive(target, profile)))
}

async fn send(target: &Target, profile: &OtlpProfile, connection: u64, report: &mut OtlpReport) {
    let body = |number: u64| {
        let first = profile.first + (connection * profile.requests + number) * profile.items;
        let request =
            ExportRequest { signal: profile.signal, items: profile.items, first, time_ns: now_ns() };
        // Compressing in memory does not fail; an empty body would show at once.
        (first, profile.coding.encode(&request.encode()).unwrap_or_default())
    };
    let ring: Vec<_> = (0..profile.prebuilt.unwrap_or(0)).map(body).collect();
    let mut client = None;
    for number in 0..profile.requests {
        let made;
        let (first, body) = match ring.get(usize::try_from(number).unwrap_or(0) % ring.len().max(1)) {
            Some(ready) => ready,
            None => {
                made = body(number);
                &made
            }
        };
        if until_settled(target, profile, &mut client, body, report).await && ring.is_empty() {
            report.acked.insert(*first, *first + profile.items);
        }
    }
}

/// Sends a body, again and again if the profile says so; says whether it was taken.
async fn until_settled(
    target: &Target,
    profile: &OtlpProfile,
    client: &mut Option<OtlpClient>,
    body: &[u8],
    report: &mut OtlpReport,
) -> bool {
    loop {
        let wait = match attempt(target, profile, client, body).await {
            Ok(answer) => {
                *report.answers.entry(answer.code).or_default() += 1;
                if answer.taken {
                    report.accepted += 1;
                    report.items += profile.items;
                    report.bytes += body.len() as u64;
                    return true;
                }
                report.refused += 1;
                report.with_delay += u64::from(answer.retryable && answer.retry_after.is_some());
                report.reason(answer.reason);
                if !answer.retryable {
                    return false;
                }
                answer.retry_after.unwrap_or(DEFAULT_RETRY_DELAY)
            }
            Err(failure) => {
                report.failed += 1;
                report.reason(failure.to_string());
                DEFAULT_RETRY_DELAY
            }
        };
        match profile.on_refused {
            OnRefused::Count => return false,
            OnRefused::Retry { at_most } => sleep(wait.min(at_most)).await,
        }
    }
}

async fn attempt(
    target: &Target,
    profile: &OtlpProfile,
    client: &mut Option<OtlpClient>,
    body: &[u8],
) -> Result<super::OtlpResponse, crate::http::RequestError> {
    let mut open = match client.take().filter(OtlpClient::is_reusable) {
        Some(open) => open,
        None => OtlpClient::open(profile.transport, target, profile.answer_within).await?,
    };
    let answer = open.send(profile.signal, profile.coding, body, profile.answer_within).await?;
    *client = Some(open);
    Ok(answer)
}

impl OtlpReport {
    fn reason(&mut self, reason: String) {
        if self.reasons.len() < MAX_REASONS && !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }

    fn merge(&mut self, other: OtlpReport) {
        for (code, count) in other.answers {
            *self.answers.entry(code).or_default() += count;
        }
        self.accepted += other.accepted;
        self.refused += other.refused;
        self.with_delay += other.with_delay;
        self.failed += other.failed;
        self.items += other.items;
        self.bytes += other.bytes;
        self.acked.merge(&other.acked);
        other.reasons.into_iter().for_each(|reason| self.reason(reason));
    }
}
