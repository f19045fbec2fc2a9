//! From answers to the books: what is settled, sent again, looked at more closely.

use super::answer::{Answer, Fault, Reason};
use super::parcel::{Parcel, Unfit};
use super::{GRACE, Landed, Otlp, Packed, SMALLER_FOR, SMALLEST};
use crate::batch::Why;
use crate::endpoints::{Place, Verdict};
use crate::losses::Losses;
use futures_util::stream::StreamExt;
use std::time::SystemTime;
use tidegate_ledger::Dropped;
use tokio::time::Instant;

/// An answer that the endpoint and the pages know of.
pub(super) enum Heard {
    /// Taken, but for so many items.
    Taken(u64),
    /// To be sent again.
    Later,
    /// Not wanted.
    Refused(Reason, Fault),
}

impl Otlp {
    /// A batch has become a request, or has not.
    pub(super) fn unpack(&mut self, (packed, coder): Packed) {
        self.packing = None;
        self.coder = Some(coder);
        let Unfit { batch, why } = match packed {
            Ok(parcel) => return self.ready.push_back(parcel),
            Err(unfit) => unfit,
        };
        match (why, batch.sequences.as_slice()) {
            (Why::Room(_), _) if !self.is_waiting_for_nothing() => {
                self.crowded = true;
                self.closed.push_front(batch);
            }
            (Why::Room(_), [only]) => {
                self.roomless = Some(*only);
                self.read_again();
            }
            (Why::Damaged, [only]) => {
                self.inbox.settle_each([*only], Losses::of(Dropped::Damaged, batch.items));
            }
            _ => {
                self.singly_before = self.singly_before.max(batch.last() + 1);
                self.read_again();
            }
        }
    }

    /// Lets go of what is not on its way, to read it again once nothing is.
    pub(super) fn read_again(&mut self) {
        self.again = true;
        self.open.clear();
        self.closed.clear();
    }

    /// Tells the endpoint and the pages of an answer.
    pub(super) fn hear(&mut self, parcel: &Parcel, place: Place, answer: Answer) -> Heard {
        let now = Instant::now();
        match answer {
            Answer::Taken { rejected, words } => {
                self.endpoints.give_back(place, Verdict::Alive, now);
                let rejected = rejected.min(parcel.items);
                self.letters.taken(parcel, rejected, &words);
                Heard::Taken(rejected)
            }
            Answer::Later { reason, after } => {
                let uri = self.endpoints.uri(&place);
                let newly = self.endpoints.give_back(place, Verdict::Failed(after), now);
                let retry_at = self.endpoints.all_left_until().map(|at| at.saturating_duration_since(now));
                let retry_at = retry_at.and_then(|wait| SystemTime::now().checked_add(wait));
                self.letters.failed(parcel, &reason, &uri, newly, retry_at);
                Heard::Later
            }
            Answer::Refused { reason, fault } => {
                self.endpoints.give_back(place, Verdict::Alive, now);
                if fault == Fault::Size {
                    self.smaller = Some(((parcel.raw_len / 2).max(SMALLEST), now + SMALLER_FOR));
                }
                Heard::Refused(reason, fault)
            }
        }
    }

    /// A request has an answer. One that is worth another attempt is held for it only where `patient` says so.
    pub(super) fn land(&mut self, landed: Landed, patient: bool) {
        let Landed { parcel, place, answer, .. } = landed;
        self.crowded = false;
        match self.hear(&parcel, place, answer) {
            Heard::Taken(rejected) => {
                let mut losses = Losses::of(Dropped::Rejected, rejected);
                losses.add(Dropped::Untranslatable, parcel.untranslatable);
                self.inbox.settle_each(parcel.sequences, losses);
            }
            Heard::Later if patient => self.ready.push_front(parcel),
            Heard::Later => self.read_again(),
            Heard::Refused(reason, fault) => match parcel.sequences.as_slice() {
                // Which record is at fault is found out by sending each alone.
                [_, .., last] if fault != Fault::Other => {
                    self.letters.refused_in_part(&reason);
                    self.singly_before = self.singly_before.max(last + 1);
                    self.read_again();
                }
                // Now that the peer is known to take less, it is cut.
                [_] if fault == Fault::Size && parcel.is_cuttable() => {
                    self.letters.refused_in_part(&reason);
                    self.read_again();
                }
                _ => {
                    self.letters.bury(&parcel, &reason);
                    self.inbox.settle_each(parcel.sequences, Losses::of(fault.reason(), parcel.items));
                }
            },
        }
    }

    /// After the order to stop: requests that are answered soon need not be sent again.
    pub(super) async fn land_rest(&mut self) {
        let deadline = Instant::now() + GRACE;
        while let Ok(Some(landed)) = tokio::time::timeout_at(deadline, self.flight.next()).await {
            self.land(landed, false);
        }
        self.flight.clear();
    }
}
