//! Requests and answers: what is sent again, what is not, and what the peer thinks of 2.0.

use super::rotation::{Rotation, RotationTurn};
use crate::egress_budget::EgressBudget;
use crate::health::Health;
use crate::http_peer::{HttpAnswer, HttpPeer, NoAnswer};
use crate::secrets::Shown;
use crate::stop::StopSignal;
use crate::tenant;
use bytes::Bytes;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT};
use hyper::{StatusCode, Uri};
use std::time::{Duration, SystemTime};
use tidegate_journal::dead_letters::{DeadLetter, DeadLetters};
use tidegate_journal::{Encoding, Meta, Protocol, Tenant};
use tidegate_wire::remote_write::Version;
use tokio::time::Instant;

const VERSION: HeaderName = HeaderName::from_static("x-prometheus-remote-write-version");
/// The headers by which a receiver of 2.0 says what it took: the first shows that it is one.
const WRITTEN: [&str; 3] = [
    "x-prometheus-remote-write-samples-written",
    "x-prometheus-remote-write-histograms-written",
    "x-prometheus-remote-write-exemplars-written",
];
/// Prometheus's message, with status 500, if native histograms are not enabled; since 2.40.
const NO_HISTOGRAMS: &str = "native histograms are disabled";
/// How often a rejection is logged; all of them are counted and kept.
const LOG_EVERY: Duration = Duration::from_secs(10);
/// How long a peer that refused 2.0, or native histograms, is spared them before it is asked again: it may have been
/// upgraded.
const ASK_AGAIN: Duration = Duration::from_secs(600);

/// How long a peer that has answered a request may take to read the rest of it, unless it has less for all of it.
const PATIENCE: Duration = Duration::from_secs(1);

/// A request to be sent.
#[derive(Debug, Clone)]
pub(super) struct Request {
    /// Snappy-compressed; holds the memory it lives in.
    pub(super) body: Bytes,
    pub(super) version: Version,
    /// Whether native histograms were left in it, if there were any.
    pub(super) histograms: bool,
    /// Whether its items are points of OTLP, each of which may be many entries.
    pub(super) points: bool,
    /// As the books count them.
    pub(super) items: u64,
    /// As the peer counts them.
    pub(super) entries: ResendRange,
}

/// The samples, histograms and exemplars of a request.
#[derive(Debug, Clone, Copy)]
pub(super) enum ResendRange {
    /// So many of each.
    Each([u64; 3]),
    /// So many of all, and of metadata.
    All(u64),
}

impl ResendRange {
    pub(super) fn sum(self) -> u64 {
        match self {
            ResendRange::Each(each) => each.iter().sum(),
            ResendRange::All(all) => all,
        }
    }

    /// How many of them there are when the peer says that it wrote so many; what it does not say was written.
    fn written(self, said: [Option<u64>; 3], unsaid: bool) -> u64 {
        match self {
            ResendRange::Each(each) => {
                let least = |(sent, said): (u64, Option<u64>)| match said {
                    Some(said) => sent.min(said),
                    None if unsaid => sent,
                    None => 0,
                };
                each.into_iter().zip(said).map(least).sum()
            }
            ResendRange::All(all) => said.into_iter().flatten().fold(0, u64::saturating_add).min(all),
        }
    }
}

impl Request {
    /// Items that are lost when the peer took only so many entries. Of OTLP, where a point may be many entries, that
    /// is their share; metadata goes with any series that was taken.
    pub(super) fn lost(&self, written: u64) -> u64 {
        let entries = self.entries.sum();
        if !self.points {
            let lost = entries.saturating_sub(written);
            return if written == 0 { self.items.max(lost) } else { lost.min(self.items) };
        }
        let (items, entries) = (u128::from(self.items), u128::from(entries));
        let taken = (items * u128::from(written).min(entries)).checked_div(entries).unwrap_or(0);
        self.items.saturating_sub(u64::try_from(taken).unwrap_or(u64::MAX))
    }
}

/// The result of a request.
#[derive(Debug, Clone)]
pub(super) enum RequestVerdict {
    Delivered,
    /// The peer said for good that it does not want it.
    Rejected(Rejection),
    /// The peer takes 1.0 only.
    NotThisVersion,
    /// The peer takes no native histograms, and nothing that comes with one.
    NoHistograms,
    /// It failed, and is worth another try after so long.
    Later(Duration),
    Stopped,
}

/// How the peer said no.
#[derive(Debug, Clone)]
pub(super) struct Rejection {
    status: StatusCode,
    text: String,
    /// Entries that it took all the same.
    pub(super) written: u64,
    /// Whether it may not be asked again, record by record: it said that all is well.
    settled: bool,
}

/// The combined verdict on several requests.
pub(super) enum Sum {
    /// Nothing of it is to be sent again; whether something was rejected whole.
    Final { rejected: bool },
    /// It is to be sent again after so long.
    Later(Duration),
    /// It is to be sent again as 1.0.
    OtherVersion,
    /// It is to be sent again without native histograms.
    WithoutHistograms,
    /// The order to stop came first.
    Stopped,
}

impl Sum {
    pub(super) fn of(verdicts: &[RequestVerdict]) -> Sum {
        let mut sum = Sum::Final { rejected: false };
        for verdict in verdicts {
            sum = match (verdict, sum) {
                (RequestVerdict::Stopped, _) => return Sum::Stopped,
                (RequestVerdict::NotThisVersion, _) | (_, Sum::OtherVersion) => Sum::OtherVersion,
                (RequestVerdict::NoHistograms, _) | (_, Sum::WithoutHistograms) => Sum::WithoutHistograms,
                (RequestVerdict::Later(wait), Sum::Later(longest)) => Sum::Later(longest.max(*wait)),
                (RequestVerdict::Later(wait), _) => Sum::Later(*wait),
                (
                    RequestVerdict::Rejected(Rejection { written: 0, settled: false, .. }),
                    Sum::Final { .. },
                ) => Sum::Final { rejected: true },
                (_, sum) => sum,
            };
        }
        sum
    }
}

/// The conversation with one receiver.
pub(super) struct Exchange {
    sink: String,
    endpoints: Rotation,
    /// The header that says whose data a request carries.
    tenant_header: Option<HeaderName>,
    health: Health,
    dead_letters: DeadLetters,
    stop: StopSignal,
    /// How long a peer that has answered may take to read the rest of the request.
    patience: Duration,
    /// Until when the peer is taken for one that knows 1.0 only.
    v1_until: Option<Instant>,
    /// Until when it is taken for one without native histograms.
    floats_until: Option<Instant>,
    /// When a rejection was logged last.
    logged: Option<Instant>,
}

impl Exchange {
    pub(super) fn new(
        sink: &str,
        (endpoints, tenant_header): (Rotation, Option<HeaderName>),
        health: Health,
        dead_letters: DeadLetters,
        stop: StopSignal,
        timeout: Duration,
    ) -> Exchange {
        Exchange {
            sink: sink.to_owned(),
            endpoints,
            tenant_header,
            health,
            dead_letters,
            stop,
            patience: PATIENCE.min(timeout),
            v1_until: None,
            floats_until: None,
            logged: None,
        }
    }

    pub(super) fn stop(&self) -> &StopSignal {
        &self.stop
    }

    /// Waits until `room` holds no more than `own` bytes. Somebody else still holds more when the peer answered
    /// before it had read all of a request: the connection keeps what is left of the body to send it. The peer
    /// has a while to read it; then the connection is closed, which it may be after such an answer (RFC 9112,
    /// section 9.5).
    pub(super) async fn let_go(&self, room: &EgressBudget, own: usize) {
        if tokio::time::timeout(self.patience, room.falls_to(own)).await.is_err() {
            tracing::debug!(
                sink = self.sink,
                "the peer answers requests and does not read them; closing the connection"
            );
            self.endpoints.peers().for_each(HttpPeer::hang_up);
            room.falls_to(own).await;
        }
    }

    /// Whether the peer is known to take 1.0 only.
    pub(super) fn peer_is_v1(&self) -> bool {
        self.v1_until.is_some_and(|until| Instant::now() < until)
    }

    /// Whether the peer is known to take no native histograms.
    pub(super) fn peer_has_no_histograms(&self) -> bool {
        self.floats_until.is_some_and(|until| Instant::now() < until)
    }

    /// Sends all of `requests`, which are of one `tenant`, at once, each until there is a verdict, and waits for all.
    /// With `patient` false a failure is a verdict too.
    pub(super) async fn deliver(
        &mut self,
        requests: &[Request],
        tenant: Tenant,
        patient: bool,
    ) -> Vec<RequestVerdict> {
        let mut verdicts: Vec<Option<RequestVerdict>> = requests.iter().map(|_| None).collect();
        loop {
            let turn = self.endpoints.turn(Instant::now());
            let open = requests.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_none());
            let attempts = open.map(|(request, _)| self.attempt(turn, request, &tenant));
            let mut answers = futures_util::future::join_all(attempts).await.into_iter();
            let mut again: Option<Duration> = None;
            let open = requests.iter().zip(&mut verdicts).filter(|(_, verdict)| verdict.is_none());
            for (request, verdict) in open {
                *verdict = match answers.next().flatten() {
                    None => Some(RequestVerdict::Stopped),
                    Some(answer) => match self.judge(turn, request, answer) {
                        AnswerVerdict::Final(verdict) => Some(verdict),
                        AnswerVerdict::Again { error, retry_after } => {
                            let first = again.is_none();
                            let wait = self.failed(turn, &error, (first, retry_after), request.items);
                            again = Some(wait);
                            (!patient).then_some(RequestVerdict::Later(wait))
                        }
                    },
                };
            }
            let waited = match again {
                Some(wait) if patient => self.stop.or(tokio::time::sleep(wait)).await,
                _ => None,
            };
            if waited.is_none() {
                return verdicts
                    .into_iter()
                    .map(|verdict| verdict.unwrap_or(RequestVerdict::Stopped))
                    .collect();
            }
        }
    }

    /// Keeps what the peer rejected, so that somebody can look at it and send it again.
    pub(super) fn bury(&mut self, request: &Request, rejection: &Rejection, meta: &Meta) {
        let Rejection { status, text, .. } = rejection;
        if self.logged.is_none_or(|logged| logged.elapsed() >= LOG_EVERY) {
            self.logged = Some(Instant::now());
            tracing::warn!(
                sink = self.sink,
                %status,
                items = request.items,
                answer = text,
                "the peer rejects a request, or a part of it; it becomes a dead letter, see `tidegate journal dead-letters`"
            );
        }
        let protocol = match request.version {
            Version::V1 => Protocol::RemoteWrite1,
            Version::V2 => Protocol::RemoteWrite2,
        };
        let items = u32::try_from(request.items).unwrap_or(u32::MAX);
        let meta = Meta { protocol, items, encoding: Encoding::Snappy, ..*meta };
        let reason = format!("{status}: {text}");
        let letter = DeadLetter { sink: &self.sink, reason: &reason, meta: &meta, body: &request.body };
        if let Err(error) = self.dead_letters.add(letter) {
            tracing::error!(sink = self.sink, %error, "a rejected request could not be written to the dead letters");
        }
    }

    async fn attempt(
        &self,
        turn: RotationTurn,
        request: &Request,
        tenant: &Tenant,
    ) -> Option<Result<HttpAnswer, NoAnswer>> {
        let peer = self.endpoints.peer(turn)?;
        let (content_type, version) = match request.version {
            Version::V1 => ("application/x-protobuf", "0.1.0"),
            Version::V2 => ("application/x-protobuf;proto=io.prometheus.write.v2.Request", "2.0.0"),
        };
        let protocol = [
            (CONTENT_TYPE, HeaderValue::from_static(content_type)),
            (CONTENT_ENCODING, HeaderValue::from_static("snappy")),
            (VERSION, HeaderValue::from_static(version)),
            (USER_AGENT, HeaderValue::from_static(concat!("tidegate/", env!("CARGO_PKG_VERSION")))),
        ];
        let mut headers = HeaderMap::new();
        tenant::put(self.tenant_header.as_ref(), tenant, &mut headers);
        headers.extend(protocol);
        let _under_way = self.health.under_way();
        self.stop.or(peer.post(&headers, request.body.clone())).await
    }

    fn judge(
        &mut self,
        turn: RotationTurn,
        request: &Request,
        answer: Result<HttpAnswer, NoAnswer>,
    ) -> AnswerVerdict {
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return AnswerVerdict::Again { error: error.to_string(), retry_after: None },
        };
        let status = answer.status;
        let v2 = request.version == Version::V2;
        // A 2xx from a receiver that does not know 2.0 means that it read an empty request of 1.0.
        let oblivious = status.is_success() && v2 && !answer.headers.contains_key(WRITTEN[0]);
        if oblivious || (status == StatusCode::UNSUPPORTED_MEDIA_TYPE && v2) {
            tracing::info!(sink = self.sink, url = %Shown(&self.uri(turn)), "the peer does not take Remote-Write 2.0; sending 1.0");
            self.v1_until = Some(Instant::now() + ASK_AGAIN);
            return AnswerVerdict::Final(RequestVerdict::NotThisVersion);
        }
        if status.is_success() {
            self.endpoints.works(turn);
            self.health.succeeded(request.body.len() as u64);
            let sent = request.entries.sum();
            let written = if v2 { request.entries.written(written(&answer.headers), true) } else { sent };
            if written >= sent {
                return AnswerVerdict::Final(RequestVerdict::Delivered);
            }
            // It must not say that by the specification, and those who do mean it.
            let text = format!("the peer wrote {written} of {sent} samples, histograms and exemplars");
            return AnswerVerdict::Final(RequestVerdict::Rejected(Rejection {
                status,
                text,
                written,
                settled: true,
            }));
        }
        let text = answer.excerpt;
        // Not a failure that time mends, though its status says so.
        if status == StatusCode::INTERNAL_SERVER_ERROR && text.contains(NO_HISTOGRAMS) && request.histograms {
            tracing::warn!(
                sink = self.sink,
                url = %Shown(&self.uri(turn)),
                "the peer does not accept native histograms; they are dropped. To enable them, start it with --enable-feature=native-histograms"
            );
            self.floats_until = Some(Instant::now() + ASK_AGAIN);
            return AnswerVerdict::Final(RequestVerdict::NoHistograms);
        }
        if status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS {
            self.health.failed(&format!("{status}: {text}"), None);
            let written = request.entries.written(written(&answer.headers), false);
            return AnswerVerdict::Final(RequestVerdict::Rejected(Rejection {
                status,
                text,
                written,
                settled: false,
            }));
        }
        AnswerVerdict::Again { error: format!("{status}: {text}"), retry_after: answer.retry_after }
    }

    /// Notes a failure, the first of a round or not; how long to wait before the next attempt.
    fn failed(
        &mut self,
        turn: RotationTurn,
        error: &str,
        (first, asked): (bool, Option<Duration>),
        items: u64,
    ) -> Duration {
        let wait = self.endpoints.failed(turn, first, asked, Instant::now());
        if !first {
            return wait;
        }
        if self.health.trouble().retry_at.is_none() {
            tracing::warn!(sink = self.sink, url = %Shown(&self.uri(turn)), error, "the peer does not take requests now; trying again");
        }
        self.health.failed(error, SystemTime::now().checked_add(wait));
        self.health.resent(items);
        wait
    }

    fn uri(&self, turn: RotationTurn) -> Uri {
        self.endpoints.peer(turn).map(|peer| peer.uri().clone()).unwrap_or_default()
    }
}

/// The numbers that the peer reports as written.
fn written(headers: &HeaderMap) -> [Option<u64>; 3] {
    WRITTEN.map(|name| headers.get(name)?.to_str().ok()?.parse().ok())
}

enum AnswerVerdict {
    Final(RequestVerdict),
    Again { error: String, retry_after: Option<Duration> },
}
