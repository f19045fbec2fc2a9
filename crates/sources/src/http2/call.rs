//! One gRPC call: its message into a window, and the answer.

use super::answer;
use super::flow::{Body, Flow};
use super::receive::BodyReceiver;
use super::server::Inner;
use crate::clock::Timestamp;
use crate::grpc::CallError;
use crate::otlp::{BodyFormat, LeftOut, Otlp};
use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use tidegate_admission::{Permit, Rejection, note_body_length};
use tidegate_arena::Charge;
use tidegate_ledger::{OpenRequest, Refusal};
use tokio::time::Instant;

/// The charge of a call besides its window: its task, its stream in the codec, its answer.
pub(super) const BYTES: u64 = 4 << 10;

/// A call that was let in.
pub(super) struct Start {
    pub(super) open: OpenRequest,
    pub(super) form: BodyFormat,
    /// Whether its head announces the length of its body.
    pub(super) announces_length: bool,
    pub(super) deadline: Option<Instant>,
    /// Whether it was waited for something before it was let in: its body began to come through the codec then.
    pub(super) has_waited: bool,
    /// The charge of the call's state.
    pub(super) charge: Charge,
    /// Its claims on the limits, until it is answered.
    pub(super) passage: Permit,
}

impl Start {
    /// Whether its message goes past the codec. The codec would miss it where a length is announced.
    pub(super) fn goes_past(&self) -> bool {
        !self.announces_length && !self.has_waited
    }
}

/// Serves one call to its answer.
pub(super) async fn serve(
    server: &Inner,
    otlp: Arc<Otlp>,
    flow: &Flow,
    start: Start,
    way: Body<'_>,
    mut body: RecvStream,
    mut respond: SendResponse<Bytes>,
) {
    let (outcome, charge) = outcome(server, &otlp, flow, start, &way, &mut body).await;
    answer::grpc(&mut respond, outcome.as_ref());
    flow.keep(charge);
}

/// The result of a call, and the charge to keep until its answer is sent.
async fn outcome(
    server: &Inner,
    otlp: &Otlp,
    flow: &Flow,
    start: Start,
    way: &Body<'_>,
    body: &mut RecvStream,
) -> (Result<LeftOut, CallError>, Charge) {
    let past = start.goes_past();
    let Start { open, form, deadline, charge, passage, .. } = start;
    let intake = BodyReceiver { server, flow, way, most: otlp.max_received(), passage: &passage };
    let mut exchange = pin!(exchange(otlp, &intake, open, (form, past), body));
    let outcome = poll_fn(|context| {
        if let Poll::Ready(outcome) = exchange.as_mut().poll(context) {
            return Poll::Ready(outcome);
        }
        let Some(deadline) = deadline else { return Poll::Pending };
        way.poll_until(context, deadline).map(|()| {
            let words = "the call's deadline has passed\n";
            Err(Rejection::new(Refusal::Timeout, words).into())
        })
    })
    .await;
    (outcome, charge)
}

async fn exchange(
    otlp: &Otlp,
    intake: &BodyReceiver<'_>,
    open: OpenRequest,
    (form, past): (BodyFormat, bool),
    body: &mut RecvStream,
) -> Result<LeftOut, CallError> {
    let (form, received) = match intake.message(body, form, past).await {
        Ok(received) => received,
        Err(error) => {
            error.refused.close(open);
            return Err(error);
        }
    };
    let arrived = Timestamp::now();
    note_body_length(received.range.len());
    let BodyReceiver { server, passage, .. } = *intake;
    let outcome = otlp.receive(server.http.gate(), passage, open, form, received).await;
    server.http.durations().observe(arrived.elapsed_ns());
    Ok(outcome?)
}
