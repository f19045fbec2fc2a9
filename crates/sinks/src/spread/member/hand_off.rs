//! A request goes to the log of a member.

use super::{Ended, Member, MemberContext};
use crate::spread::protocol::SpreadProtocol;
use crate::spread::request::SealedRequest;
use crate::spread::settlement::Outcome;
use std::sync::Arc;
use std::time::Duration;
use tidegate_handoff::{AppendError, Meta};
use tidegate_ledger::Dropped;

/// A log's answer to a request.
enum Appended {
    /// It has it, or never takes it.
    Settled(Outcome),
    /// It takes nothing now. After the time, or when there is space, it may.
    Refused(String, Option<Duration>),
}

impl<P: SpreadProtocol> Member<P> {
    /// Appends a request to the member's log and settles its items. While the log takes nothing, `event` is waited for too: when it
    /// comes, nothing is appended, and its output is returned.
    pub(super) async fn hand_off_unless<T>(
        &self,
        context: &MemberContext<P>,
        request: &SealedRequest<P::Form>,
        event: &mut (impl Future<Output = T> + Unpin),
    ) -> Result<Option<T>, Ended> {
        let mut came = None;
        while came.is_none() {
            let (why, retry_after) = match self.append(request).await? {
                Appended::Settled(outcome) => {
                    let rerouted = request.is_rerouted.then_some(request.rerouted);
                    context.settlement.settle(&request.parts, rerouted, outcome);
                    break;
                }
                Appended::Refused(why, retry_after) => (why, retry_after),
            };
            self.counters.set_refusal(Some(&why));
            self.note(context, &why);
            tokio::select! {
                biased;
                output = &mut *event => came = Some(output),
                accepts = self.accepts_again(retry_after) => accepts?,
            }
        }
        self.counters.set_refusal(None);
        Ok(came)
    }

    async fn append(&self, request: &SealedRequest<P::Form>) -> Result<Appended, Ended> {
        let note = request.head.note(P::NOTE).and_then(|note| {
            let items = u32::try_from(request.items()).ok()?;
            Some(Meta { items, received_at_ns: request.received_at_ns, note })
        });
        // A tenant's name is shorter than a note may be.
        let Some(meta) = note else { return Ok(Appended::Settled(Outcome::Dropped(Dropped::TooLarge))) };
        match self.log.append(meta, Arc::new(request.body.clone())).await {
            Ok(()) => Ok(Appended::Settled(Outcome::HandedOff)),
            Err(AppendError::Unfit) => Ok(Appended::Settled(Outcome::Dropped(Dropped::TooLarge))),
            Err(AppendError::Quota) => {
                Ok(Appended::Refused("its handoff quota is used up: the sink waits for it".to_owned(), None))
            }
            Err(AppendError::TotalQuota) => Ok(Appended::Refused(
                "the handoff quota of all members is used up: the sink waits for them".to_owned(),
                None,
            )),
            Err(AppendError::Disk { trouble, retry_after }) => Ok(Appended::Refused(
                format!("its handoff log cannot be written: {trouble}"),
                Some(retry_after),
            )),
            Err(AppendError::Closed) => Err(Ended),
        }
    }

    /// Waits until the log may take something again.
    async fn accepts_again(&self, retry_after: Option<Duration>) -> Result<(), Ended> {
        match retry_after {
            Some(wait) => tokio::time::sleep(wait).await,
            None => self.log.space().await.map_err(|_| Ended)?,
        }
        Ok(())
    }
}
