mod render;

use crate::forwarded::{Fate, ForwardedBook};
use crate::journal::HeadColumns;
use crate::pipeline::PipelineBook;
use crate::reason::{Dropped, Refusal};
use crate::signal::Signal;
use crate::sink::SinkColumns;
use crate::source::SourceTotals;

/// All books at one moment. Every `difference` is zero, or the program has a mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balance {
    /// Requests, by source.
    pub sources: Vec<SourceBalance>,
    /// Items accepted against items appended.
    pub journal: JournalBalance,
    /// Items, by sink.
    pub sinks: Vec<SinkBalance>,
}

/// received = accepted + refused + open + difference
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceBalance {
    /// The source's name.
    pub name: String,
    /// Requests received.
    pub received: u64,
    /// Requests accepted.
    pub accepted: u64,
    /// Requests refused, by reason; reasons that did not occur are left out.
    pub refused: Vec<(Refusal, u64)>,
    /// Requests without a verdict yet.
    pub open: u64,
    /// Items accepted, by signal; signals that did not occur are left out.
    pub items: Vec<(Signal, u64)>,
    /// Refused items of requests that were otherwise accepted, by reason; reasons that did not occur are left out.
    pub items_refused: Vec<(Refusal, u64)>,
    /// Bytes of accepted bodies, as received.
    pub bytes: u64,
    /// Items that are forwarded instead of journalled.
    pub forwarded: ForwardedBalance,
    /// Items that passed its pipeline.
    pub pipeline: PipelineBalance,
    /// The difference in the equation.
    pub difference: i64,
}

/// received = answered + rejected + unanswered + refused + abandoned + open + difference
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ForwardedBalance {
    /// Items that were to be forwarded.
    pub received: u64,
    /// The outcomes of the items; fates that did not occur are left out.
    pub fates: Vec<(Fate, u64)>,
    /// Items without an answer yet.
    pub open: u64,
    /// The difference in the equation.
    pub difference: i64,
}

/// received = accepted + filtered + sampled out + difference, of the accepted requests that passed a source's pipeline
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PipelineBalance {
    /// Items that reached the pipeline.
    pub received: u64,
    /// Items that were left, for the journal.
    pub accepted: u64,
    /// Items that its steps dropped.
    pub filtered: u64,
    /// Items that its steps left out of a sample.
    pub sampled_out: u64,
    /// The difference in the equation.
    pub difference: i64,
}

/// accepted ≤ appended ≤ accepted + handed over, since the process started
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JournalBalance {
    /// Items that sources accepted.
    pub accepted: u64,
    /// Items given to the journal whose requests have no verdict yet.
    pub handed_over: u64,
    /// Items that the journal appended.
    pub appended: u64,
    /// By how much `appended` lies outside of what the other two allow: items that were acknowledged and
    /// not written when negative, written and not acknowledged when positive.
    pub difference: i64,
}

/// accepted = delivered + passed + queued + dropped + difference, since the sink was attached
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SinkBalance {
    /// The sink's name.
    pub name: String,
    /// Items that the journal took.
    pub accepted: u64,
    /// Items among them that were sent again to this sink alone, and have left the queue.
    pub replayed: u64,
    /// Items that the peer took.
    pub delivered: u64,
    /// Items that are not for the sink: of signals that it is not configured to take, or sent again to another one.
    pub passed: u64,
    /// Items that wait or are in flight, by the journal's numbers.
    pub queued: u64,
    /// Items dropped, by reason; reasons that did not occur are left out.
    pub dropped: Vec<(Dropped, u64)>,
    /// The difference in the equation: positive if items were lost track of, negative if they were counted twice.
    pub difference: i64,
}

impl Balance {
    /// All differences added up, without their signs: zero when the books close.
    pub fn difference(&self) -> u64 {
        let sources = self
            .sources
            .iter()
            .flat_map(|source| [source.difference, source.forwarded.difference, source.pipeline.difference]);
        let sinks = self.sinks.iter().map(|sink| sink.difference);
        let all = sources.chain([self.journal.difference]).chain(sinks);
        all.fold(0, |sum, difference| sum.saturating_add(difference.unsigned_abs()))
    }

    /// Whether nothing is on its way: no open request, nothing queued.
    pub fn at_rest(&self) -> bool {
        self.sources.iter().all(|source| source.open == 0) && self.sinks.iter().all(|sink| sink.queued == 0)
    }
}

impl SourceBalance {
    pub(crate) fn of(name: &str, book: &SourceTotals) -> Self {
        let refused = |reason: &Refusal| (*reason, book.refused[*reason as usize]);
        let items_refused = |reason: &Refusal| (*reason, book.items_refused[*reason as usize]);
        let items = |signal: Signal| (signal, book.items[signal as usize]);
        let closed = book.accepted + book.refused.iter().sum::<u64>();
        Self {
            name: name.to_owned(),
            received: book.received,
            accepted: book.accepted,
            refused: Refusal::ALL.iter().map(refused).filter(|(_, count)| *count > 0).collect(),
            open: book.open,
            items: Signal::ALL.map(items).into_iter().filter(|(_, count)| *count > 0).collect(),
            items_refused: Refusal::ALL.iter().map(items_refused).filter(|(_, count)| *count > 0).collect(),
            bytes: book.bytes,
            forwarded: ForwardedBalance::of(&book.forwarded),
            pipeline: PipelineBalance::of(&book.pipeline),
            difference: signed_difference(book.received, closed + book.open),
        }
    }
}

impl ForwardedBalance {
    fn of(book: &ForwardedBook) -> Self {
        let fates = Fate::ALL.map(|fate| (fate, book.fates[fate as usize]));
        let closed: u64 = book.fates.iter().sum();
        Self {
            received: book.received,
            fates: fates.into_iter().filter(|(_, count)| *count > 0).collect(),
            open: book.open,
            difference: signed_difference(book.received, closed + book.open),
        }
    }
}

impl PipelineBalance {
    fn of(book: &PipelineBook) -> Self {
        let PipelineBook { received, accepted, filtered, sampled_out } = *book;
        let difference = signed_difference(received, accepted + book.dropped());
        Self { received, accepted, filtered, sampled_out, difference }
    }
}

impl JournalBalance {
    pub(crate) fn of(head: &HeadColumns, accepted: u64, handed_over: u64) -> Self {
        let appended = head.now.wrapping_sub(head.at_start);
        let explained = appended.clamp(accepted, accepted + handed_over);
        Self { accepted, handed_over, appended, difference: signed_difference(appended, explained) }
    }
}

impl SinkBalance {
    pub(crate) fn of(name: &str, columns: &SinkColumns, head: u64) -> Self {
        let book = &columns.book;
        let accepted = head.wrapping_sub(book.attached_at);
        // A cursor beyond the head would be a journal that forgot what it handed out: not a queue, and it
        // shows as a difference.
        let in_journal = head.saturating_sub(columns.position.wrapping_add(columns.ahead));
        let queued = in_journal.wrapping_add(book.handed_off);
        let dropped = |reason: &Dropped| (*reason, book.dropped(*reason));
        let settled = book.delivered.wrapping_add(book.passed).wrapping_add(book.dropped_in_all());
        let went = settled.wrapping_add(queued);
        Self {
            name: name.to_owned(),
            accepted,
            replayed: book.replayed,
            delivered: book.delivered,
            passed: book.passed,
            queued,
            dropped: Dropped::ALL.iter().map(dropped).filter(|(_, count)| *count > 0).collect(),
            difference: signed_difference(accepted, went),
        }
    }
}

fn signed_difference(a: u64, b: u64) -> i64 {
    a.wrapping_sub(b).cast_signed()
}
