//! What follows from answers: what is settled, retried, or looked at record by record.

use super::OtlpProtocol;
use super::answer::{Answer, Fault, Reason};
use super::outbound_request::OutboundRequest;
use super::peer::PREFIX;
use crate::delivery::{Next, Pipeline};
use crate::endpoints::{Reservation, Verdict};
use crate::losses::Losses;
use tidegate_journal::{Encoding, Meta, Protocol};
use tidegate_ledger::Dropped;
use tokio::time::Instant;

/// An answer that the endpoint and the pages know of.
pub(super) enum Outcome {
    /// Accepted, except so many items.
    Accepted(u64),
    /// To be sent again.
    Retry,
    /// Refused for good.
    Refused(Reason, Fault),
}

/// Reports an answer to the endpoint and the pages.
pub(super) fn heard(
    pipeline: &mut Pipeline<OtlpProtocol>,
    outbound: &OutboundRequest,
    reservation: Reservation,
    answer: Answer,
) -> Outcome {
    let now = Instant::now();
    match answer {
        Answer::Taken { rejected, words } => {
            pipeline.endpoints.give_back(reservation, Verdict::Alive, now);
            let rejected = rejected.min(outbound.items);
            pipeline.report.accepted(outbound.request.body().len());
            if rejected > 0 || !words.is_empty() {
                pipeline.report.accepted_in_part(rejected, &words);
            }
            Outcome::Accepted(rejected)
        }
        Answer::Later { reason, after } => {
            pipeline.endpoint_failed(reservation, after, outbound.items, &reason.to_string());
            Outcome::Retry
        }
        Answer::Refused { reason, fault } => {
            pipeline.endpoints.give_back(reservation, Verdict::Alive, now);
            if fault == Fault::Size {
                pipeline.found_too_large(outbound.raw_len);
            }
            Outcome::Refused(reason, fault)
        }
    }
}

/// What follows from the answer to a request of whole records.
pub(super) fn answered(
    pipeline: &mut Pipeline<OtlpProtocol>,
    outbound: OutboundRequest,
    reservation: Reservation,
    answer: Answer,
) -> Next<OtlpProtocol> {
    match heard(pipeline, &outbound, reservation, answer) {
        Outcome::Accepted(rejected) => {
            let mut losses = Losses::of(Dropped::Rejected, rejected);
            losses.add(Dropped::Untranslatable, outbound.untranslatable);
            pipeline.settle(outbound.sequences, losses);
            Next::Settled
        }
        Outcome::Retry => Next::Again(outbound),
        Outcome::Refused(reason, fault) => match outbound.sequences.as_slice() {
            // Which record is at fault is found out by sending each alone.
            [_, .., last] if fault != Fault::Other => {
                pipeline.report.refused_in_part(&reason.to_string());
                pipeline.suspect(*last);
                Next::ReadAgain
            }
            // Now that the peer is known to take less, it is cut.
            [only] if fault == Fault::Size && outbound.is_cuttable() => {
                pipeline.report.refused_in_part(&reason.to_string());
                if outbound.original.is_some() {
                    pipeline.suspect_size(*only);
                }
                Next::ReadAgain
            }
            _ => {
                keep(pipeline, &outbound, &reason);
                pipeline.settle(outbound.sequences, Losses::of(fault.reason(), outbound.items));
                Next::Settled
            }
        },
    }
}

/// The peer rejects a request: it is kept, so that somebody can look at it and send it again.
pub(super) fn keep(pipeline: &mut Pipeline<OtlpProtocol>, outbound: &OutboundRequest, reason: &Reason) {
    let reason = reason.to_string();
    pipeline.report.rejected(outbound.items, &reason);
    let body = outbound.request.body();
    // Protobuf is what `tidegate journal resend` sends.
    let (encoding, body, raw_len) = match &outbound.original {
        Some(original) => {
            let message = original.get(PREFIX..).unwrap_or_default();
            (Encoding::Identity, message, message.len())
        }
        None => (outbound.request.encoding, &body[..], outbound.raw_len),
    };
    let meta = Meta {
        protocol: Protocol::Otlp,
        encoding,
        items: u32::try_from(outbound.items).unwrap_or(u32::MAX),
        raw_len: u32::try_from(raw_len).unwrap_or(u32::MAX),
        ..outbound.meta
    };
    pipeline.report.keep(&meta, body, &reason);
}
