//! A member that takes what comes.

use super::{Ended, Member, MemberContext};
use crate::backoff::Backoff;
use crate::spread::protocol::SpreadProtocol;
use crate::spread::request::SealedRequest;
use crate::spread::verdict::Verdict;
use futures_util::future::BoxFuture;
use tidegate_handoff::Record;
use tokio::time::Instant;

/// The first record of a log, which is on its way to the member already, or is to be sent at a time.
pub(super) enum HeadOfLog<'m> {
    /// Its answer is awaited. There is no record where its log never takes it.
    InFlight(BoxFuture<'m, Verdict>, Option<Box<Record>>),
    /// The member failed, and is left alone until then.
    At(Instant),
}

impl<P: SpreadProtocol> Member<P> {
    /// Sends a request. When the member does not take it, or does not answer in time, and its log takes it, the request is in its
    /// log when this returns; the member is behind then.
    pub(super) async fn send_live<'m>(
        &'m self,
        context: &'m MemberContext<P>,
        request: SealedRequest<P::Form>,
        backoff: &mut Backoff,
    ) -> Result<Option<HeadOfLog<'m>>, Ended> {
        let copies = u64::from(request.head.copies);
        self.counters.delays.sent(request.received_at_ns);
        loop {
            let mut sending = self.sending(context, &request);
            let verdict = tokio::select! {
                biased;
                verdict = &mut sending => verdict,
                () = self.stalls(context) => match self.hand_off_unless(context, &request, &mut sending).await? {
                    Some(verdict) => verdict,
                    None => {
                        // The log was empty, so this is the record. Later it may be another one: the quota may drop the oldest.
                        let record = self.log.next().await.unwrap_or_default().map(Box::new);
                        self.counters.failed("it does not answer in time: what it is to get goes to disk");
                        return Ok(Some(HeadOfLog::InFlight(sending, record)));
                    }
                }
            };
            if let Verdict::Later { words, after } = &verdict {
                let at = Instant::now() + self.failed(context, backoff, (words, *after));
                context.health.resent(copies);
                let mut pause = Box::pin(tokio::time::sleep_until(at));
                match self.hand_off_unless(context, &request, &mut pause).await? {
                    // Its log takes nothing, but the member may.
                    Some(()) => continue,
                    None => return Ok(Some(HeadOfLog::At(at))),
                }
            }
            backoff.reset();
            context.health.succeeded(request.body.len() as u64);
            if let Some(outcome) = self.conclude(context, verdict, request.items(), request.head.copies) {
                let rerouted = request.is_rerouted.then_some(request.rerouted);
                context.settlement.settle(&request.parts, rerouted, outcome);
            }
            return Ok(None);
        }
    }

    /// Sends a request once.
    fn sending<'m>(
        &'m self,
        context: &'m MemberContext<P>,
        request: &SealedRequest<P::Form>,
    ) -> BoxFuture<'m, Verdict> {
        let (head, body) = (request.head, request.body.clone());
        let guard = self.counters.under_way();
        let under_way = context.health.under_way(1);
        Box::pin(async move {
            let verdict = self.send(context, &head, body).await;
            drop((guard, under_way));
            verdict
        })
    }

    /// Ends when a request was in flight for too long, or its memory is needed.
    async fn stalls(&self, context: &MemberContext<P>) {
        tokio::select! {
            () = tokio::time::sleep(context.settings.patience) => {}
            () = self.pressed.notified() => {}
        }
    }
}
