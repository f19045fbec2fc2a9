//! Acts on answers: settles, retries, or examines record by record.

use super::OtlpProtocol;
use super::answer::{OtlpAnswer, RejectionCause, RejectionReason};
use super::outbound_request::OutboundRequest;
use super::peer::PREFIX;
use crate::delivery::{NextStep, Pipeline};
use crate::endpoints::{AttemptResult, Reservation};
use crate::losses::Losses;
use tidegate_journal::{Encoding, Meta, Protocol};
use tidegate_ledger::Dropped;
use tokio::time::Instant;

/// An answer that the endpoint and the pages know of.
pub(super) enum RequestOutcome {
    /// Accepted, except so many items.
    Accepted(u64),
    /// To be sent again.
    Retry,
    /// Refused for good.
    Refused(RejectionReason, RejectionCause),
}

/// Reports an answer to the endpoint and the pages.
pub(super) fn heard(
    pipeline: &mut Pipeline<OtlpProtocol>,
    outbound: &OutboundRequest,
    reservation: Reservation,
    answer: OtlpAnswer,
) -> RequestOutcome {
    let now = Instant::now();
    match answer {
        OtlpAnswer::Taken { rejected, words, delayed } => {
            pipeline.endpoints.give_back(reservation.delayed(delayed), AttemptResult::Alive, now);
            let rejected = rejected.min(outbound.items);
            pipeline.report.accepted(outbound.request.body().len());
            if rejected > 0 || !words.is_empty() {
                pipeline.report.accepted_in_part(rejected, &words);
            }
            RequestOutcome::Accepted(rejected)
        }
        OtlpAnswer::Later { reason, after } => {
            pipeline.endpoint_failed(reservation, after, outbound.items, &reason.to_string());
            RequestOutcome::Retry
        }
        OtlpAnswer::Refused { reason, fault } => {
            pipeline.endpoints.give_back(reservation, AttemptResult::Alive, now);
            if fault == RejectionCause::Size {
                pipeline.found_too_large(outbound.raw_len);
            }
            RequestOutcome::Refused(reason, fault)
        }
    }
}

/// The step after the answer to a request of whole records.
pub(super) fn answered(
    pipeline: &mut Pipeline<OtlpProtocol>,
    outbound: OutboundRequest,
    reservation: Reservation,
    answer: OtlpAnswer,
) -> NextStep<OtlpProtocol> {
    match heard(pipeline, &outbound, reservation, answer) {
        RequestOutcome::Accepted(rejected) => {
            let mut losses = Losses::of(Dropped::Rejected, rejected);
            losses.add(Dropped::Untranslatable, outbound.untranslatable);
            pipeline.settle(outbound.sequences, losses);
            NextStep::Settled
        }
        RequestOutcome::Retry => NextStep::Again(outbound),
        RequestOutcome::Refused(reason, fault) => match outbound.sequences.as_slice() {
            // Which record is at fault is found out by sending each alone.
            [_, .., last] if fault != RejectionCause::Other => {
                pipeline.report.refused_in_part(&reason.to_string());
                pipeline.suspect(*last);
                NextStep::ReadAgain
            }
            // It is cut: the peer is known to take less, or the item at fault is found by halves.
            [only]
                if fault == RejectionCause::Size && outbound.is_cuttable()
                    || fault == RejectionCause::Item && outbound.items > 1 =>
            {
                pipeline.report.refused_in_part(&reason.to_string());
                if outbound.original.is_some() {
                    pipeline.suspect_size(*only);
                }
                NextStep::ReadAgain
            }
            _ => {
                keep(pipeline, &outbound, &reason);
                pipeline.settle(outbound.sequences, Losses::of(fault.reason(), outbound.items));
                NextStep::Settled
            }
        },
    }
}

/// The peer rejects a request: it is kept, so that somebody can look at it and send it again.
pub(super) fn keep(
    pipeline: &mut Pipeline<OtlpProtocol>,
    outbound: &OutboundRequest,
    reason: &RejectionReason,
) {
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
