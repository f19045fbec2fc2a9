//! Acts on answers: settles, sends again, in another version, apart or in halves; remembers what the peer does not take.

use super::RemoteWriteProtocol;
use super::outbound_request::{Lane, OutboundRequest, Recoding, Records, Request};
use super::recode::RecodeProgress;
use crate::delivery::{MIN_REQUEST_SIZE, NextStep, Pipeline};
use crate::endpoints::{AttemptResult, Reservation};
use crate::http_peer::{HttpAnswer, NoAnswer};
use crate::secrets::Shown;
use hyper::header::HeaderMap;
use hyper::{StatusCode, Uri};
use std::time::Duration;
use tidegate_journal::{Encoding, Meta, Protocol};
use tidegate_ledger::Dropped;
use tidegate_wire::remote_write::Version;
use tokio::time::Instant;

/// The headers by which a receiver of 2.0 says what it took: the first shows that it is one.
const WRITTEN: [&str; 3] = [
    "x-prometheus-remote-write-samples-written",
    "x-prometheus-remote-write-histograms-written",
    "x-prometheus-remote-write-exemplars-written",
];
/// Prometheus's message, with status 500, if native histograms are not enabled; since 2.40.
pub(super) const NO_HISTOGRAMS: &str = "native histograms are disabled";
/// How long a peer that refused 2.0, or native histograms, is spared them before it is asked again: it may have been
/// upgraded.
const ASK_AGAIN: Duration = Duration::from_secs(600);

/// The features that the peer is known to reject.
#[derive(Debug, Default)]
pub(super) struct KnownPeer {
    /// Until then it gets 1.0 only.
    v1_until: Option<Instant>,
    /// Until then it gets no native histograms.
    floats_until: Option<Instant>,
}

/// The peer's verdict on a request.
#[derive(Debug)]
pub(super) enum Verdict {
    Delivered,
    /// It said for good that it does not want it.
    Rejected(Rejection),
    /// It takes 1.0 only.
    NotThisVersion,
    /// It takes no native histograms, and nothing that comes with one.
    NoHistograms,
}

/// How the peer said no.
#[derive(Debug)]
pub(super) struct Rejection {
    status: StatusCode,
    text: String,
    /// Entries that it took all the same.
    written: u64,
}

/// A request that is worth another attempt.
struct Failure {
    error: String,
    after: Option<Duration>,
    items: u64,
}

impl KnownPeer {
    /// The version that it takes where `wanted` would be sent.
    pub(super) fn version(&self, wanted: Version) -> Version {
        if self.v1_until.is_some_and(|until| Instant::now() < until) { Version::V1 } else { wanted }
    }

    /// Whether it takes native histograms, as far as is known.
    pub(super) fn takes_histograms(&self) -> bool {
        self.floats_until.is_none_or(|until| Instant::now() >= until)
    }

    /// Judges an answer to a request, which names a tenant if `has_tenant`.
    fn judge(
        &mut self,
        (request, uri): (&Request, &Uri),
        has_tenant: bool,
        answer: Result<HttpAnswer, NoAnswer>,
    ) -> Result<Verdict, Failure> {
        let items = request.items;
        let answer = match answer {
            Ok(answer) => answer,
            Err(error) => return Err(Failure { error: error.to_string(), after: None, items }),
        };
        let HttpAnswer { status, headers, excerpt: text, retry_after } = answer;
        let v2 = request.version == Version::V2;
        // A 2xx from a receiver that does not know 2.0 means that it read an empty request of 1.0.
        let oblivious = status.is_success() && v2 && !headers.contains_key(WRITTEN[0]);
        if oblivious || (status == StatusCode::UNSUPPORTED_MEDIA_TYPE && v2) {
            tracing::info!(url = %Shown(uri), "the peer does not take Remote-Write 2.0; sending 1.0");
            self.v1_until = Some(Instant::now() + ASK_AGAIN);
            return Ok(Verdict::NotThisVersion);
        }
        if status.is_success() {
            let sent = request.entries.sum();
            let written = if v2 { request.entries.written(written(&headers), true) } else { sent };
            // Less it must not say by the specification, and those who do mean it.
            let text = format!("the peer wrote {written} of {sent} samples, histograms and exemplars");
            let rejection = Rejection { status, text, written };
            return Ok(if written >= sent { Verdict::Delivered } else { Verdict::Rejected(rejection) });
        }
        // Not a failure that time mends, though its status says so.
        if status == StatusCode::INTERNAL_SERVER_ERROR && text.contains(NO_HISTOGRAMS) && request.histograms {
            tracing::warn!(
                url = %Shown(uri),
                "the peer does not accept native histograms; they are dropped. To enable them, start it with --enable-feature=native-histograms"
            );
            self.floats_until = Some(Instant::now() + ASK_AGAIN);
            return Ok(Verdict::NoHistograms);
        }
        // An unknown sender says nothing about the data, and somebody can mend the credentials. One tenant's may not hold up the others.
        let is_unknown =
            matches!(status, StatusCode::UNAUTHORIZED | StatusCode::PROXY_AUTHENTICATION_REQUIRED);
        let is_final = status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS;
        if is_final && (has_tenant || !is_unknown) {
            let written = request.entries.written(written(&headers), false);
            return Ok(Verdict::Rejected(Rejection { status, text, written }));
        }
        Err(Failure { error: format!("{status}: {text}"), after: retry_after, items })
    }
}

impl Lane {
    /// The rejection of a request of which the peer took nothing.
    fn refused(&self) -> Option<&Rejection> {
        match &self.verdict {
            Some(Verdict::Rejected(rejection)) => {
                Some(rejection).filter(|no| no.written == 0 && !no.status.is_success())
            }
            _ => None,
        }
    }
}

impl RemoteWriteProtocol {
    /// The step after the answers to the open lanes of a request.
    pub(super) fn heard(
        &mut self,
        pipeline: &mut Pipeline<Self>,
        mut outbound: OutboundRequest,
        reservation: Reservation,
        answers: Vec<Result<HttpAnswer, NoAnswer>>,
    ) -> NextStep<Self> {
        let uri = pipeline.endpoints.uri(&reservation);
        let mut failed: Option<Failure> = None;
        let open = outbound.lanes.iter_mut().filter(|lane| lane.verdict.is_none());
        let has_tenant = self.settings.tenant_header.is_some();
        for (lane, answer) in open.zip(answers) {
            match self.known.judge((&lane.request, &uri), has_tenant, answer) {
                Ok(verdict) => {
                    let is_taken = match &verdict {
                        Verdict::Rejected(rejection) => rejection.status.is_success(),
                        verdict => matches!(verdict, Verdict::Delivered),
                    };
                    if is_taken {
                        pipeline.report.accepted(lane.request.body.len());
                    }
                    lane.verdict = Some(verdict);
                }
                Err(failure) => match &mut failed {
                    Some(first) => first.after = first.after.max(failure.after),
                    None => failed = Some(failure),
                },
            }
        }
        match failed {
            Some(Failure { error, after, items }) => {
                pipeline.endpoint_failed(reservation, after, items, &error);
                // A borrow must not be held over a wait.
                if outbound.turn.is_some() {
                    again(outbound, RecodeProgress::again)
                } else {
                    NextStep::Again(outbound)
                }
            }
            None => {
                pipeline.endpoints.give_back(reservation, AttemptResult::Alive, Instant::now());
                self.decided(pipeline, outbound)
            }
        }
    }

    /// The step when there is a verdict on every lane.
    fn decided(&mut self, pipeline: &mut Pipeline<Self>, mut outbound: OutboundRequest) -> NextStep<Self> {
        let has = |wanted: fn(&Verdict) -> bool| {
            outbound.lanes.iter().filter_map(|lane| lane.verdict.as_ref()).any(wanted)
        };
        if has(|verdict| matches!(verdict, Verdict::NotThisVersion)) {
            return again(outbound, |progress| progress.again_as(Version::V1));
        }
        if has(|verdict| matches!(verdict, Verdict::NoHistograms)) {
            return again(outbound, RecodeProgress::again_without_histograms);
        }
        let too_large = outbound
            .lanes
            .iter()
            .filter(|lane| lane.refused().is_some_and(|no| no.status == StatusCode::PAYLOAD_TOO_LARGE));
        let too_large =
            too_large.map(|lane| lane.request.raw_len).max().filter(|len| *len > MIN_REQUEST_SIZE);
        if let Some(bytes) = too_large {
            pipeline.found_too_large(bytes);
        }
        let refused = outbound.lanes.iter().find_map(Lane::refused).map(Rejection::to_string);
        let Some(reason) = refused else { return self.concluded(pipeline, outbound) };
        // Which record is at fault is found out by sending each alone.
        let is_sent_again = match (&mut outbound.progress, outbound.records.sequences.as_slice()) {
            (Some(progress), _) => progress.again_apart() || (too_large.is_some() && progress.again_halved()),
            (None, [_, .., last]) => {
                pipeline.suspect(*last);
                true
            }
            // Now that the peer is known to take less, it is cut.
            (None, _) => too_large.is_some(),
        };
        if !is_sent_again {
            return self.concluded(pipeline, outbound);
        }
        pipeline.report.refused_in_part(&reason);
        again(outbound, |_| ())
    }

    /// Takes in what became of a request that is not sent again.
    fn concluded(&mut self, pipeline: &mut Pipeline<Self>, outbound: OutboundRequest) -> NextStep<Self> {
        let OutboundRequest { mut records, lanes, items, mut losses, progress, turn: _turn } = outbound;
        if let (Some(_), Some(recoder)) = (&progress, &mut pipeline.tools) {
            recoder.keep();
        }
        for Lane { request, verdict } in lanes {
            let Some(Verdict::Rejected(rejection)) = verdict else { continue };
            let lost = request.lost(rejection.written);
            if rejection.status.is_success() {
                pipeline.report.accepted_in_part(lost, &rejection.text);
            } else {
                pipeline.report.rejected(lost, &rejection.to_string());
            }
            keep(pipeline, &request, &rejection, &records.meta);
            losses.add(Dropped::Rejected, lost);
        }
        records.conclude(items, losses);
        match progress {
            Some(progress) if !progress.is_finished() => NextStep::Prepare(Recoding { records, progress }),
            _ => {
                self.settle(pipeline, records);
                NextStep::Settled
            }
        }
    }

    /// Enters what became of records in the books.
    pub(super) fn settle(&mut self, pipeline: &mut Pipeline<Self>, records: Records) {
        let meta = records.meta;
        let (sequences, losses) = records.settled();
        let too_large = losses.entries().find(|(why, _)| *why == Dropped::TooLarge);
        if let (Some((_, items)), Some(first)) = (too_large, sequences.first()) {
            pipeline.report.too_large(*first, &meta, items, meta.raw_len as usize);
        }
        pipeline.settle(sequences, losses);
    }
}

/// Prepares the rest of a request again; one that went out as it came is read again.
fn again(
    outbound: OutboundRequest,
    change: impl FnOnce(&mut RecodeProgress),
) -> NextStep<RemoteWriteProtocol> {
    let OutboundRequest { records, progress, .. } = outbound;
    let Some(mut progress) = progress else { return NextStep::ReadAgain };
    change(&mut progress);
    NextStep::Prepare(Recoding { records, progress })
}

/// Keeps what the peer rejected, so that somebody can look at it and send it again.
fn keep(pipeline: &Pipeline<RemoteWriteProtocol>, request: &Request, rejection: &Rejection, meta: &Meta) {
    let protocol = match request.version {
        Version::V1 => Protocol::RemoteWrite1,
        Version::V2 => Protocol::RemoteWrite2,
    };
    let items = u32::try_from(request.items).unwrap_or(u32::MAX);
    let meta = Meta { protocol, items, encoding: Encoding::Snappy, ..*meta };
    pipeline.report.keep(&meta, &request.body, &rejection.to_string());
}

impl std::fmt::Display for Rejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.status, self.text)
    }
}

/// The numbers that the peer reports as written.
fn written(headers: &HeaderMap) -> [Option<u64>; 3] {
    WRITTEN.map(|name| headers.get(name)?.to_str().ok()?.parse().ok())
}
