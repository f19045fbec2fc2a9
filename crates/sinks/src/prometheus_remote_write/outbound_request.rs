//! An outbound request to a receiver: a batch, or a piece of one, as one request for each lane.

use super::batching::Batch;
use super::recode::RecodeProgress;
use super::responses::Verdict;
use super::snappy_passthrough;
use crate::egress_budget::BorrowTurn;
use crate::losses::Losses;
use bytes::Bytes;
use tidegate_journal::Meta;
use tidegate_ledger::Dropped;
use tidegate_wire::remote_write::Version;

/// A batch, or a piece of one. Its lanes are sent at once, and nothing else until all of them are answered for good.
pub(super) struct OutboundRequest {
    pub(super) records: Records,
    /// One for each that has something.
    pub(super) lanes: Vec<Lane>,
    /// Items of the records that it was made from, those that are left out of it among them.
    pub(super) items: u64,
    /// Those that are left out of it.
    pub(super) losses: Losses,
    /// How far a batch has come that is recoded.
    pub(super) progress: Option<RecodeProgress>,
    /// While more than the sink's own part is held.
    pub(super) turn: BorrowTurn,
}

/// A part of a batch whose requests are to be made.
pub(super) struct Recoding {
    pub(super) records: Records,
    pub(super) progress: RecodeProgress,
}

/// The records of a batch, and what became of those of its items that were dealt with.
pub(super) struct Records {
    /// The metadata of the first; the others are alike.
    pub(super) meta: Meta,
    pub(super) sequences: Vec<u64>,
    items: u64,
    /// Items of which something has become: delivered or lost.
    concluded: u64,
    losses: Losses,
}

impl Records {
    pub(super) fn new(meta: Meta, sequences: Vec<u64>, items: u64) -> Records {
        Records { meta, sequences, items, concluded: 0, losses: Losses::NONE }
    }

    /// Takes in what became of `items` of them, of which these were lost.
    pub(super) fn conclude(&mut self, items: u64, losses: Losses) {
        self.concluded = self.concluded.saturating_add(items);
        self.losses = self.losses.and(losses);
    }

    /// Takes in that all of which nothing has become yet are lost.
    pub(super) fn lose_the_rest(&mut self, why: Dropped) {
        let rest = self.items.saturating_sub(self.concluded);
        self.conclude(rest, Losses::of(why, rest));
    }

    /// The sequence numbers, and what was lost in the end. Items are counted by reading the bodies: those that are in no body that could
    /// be read are damaged, whatever the peer said of it.
    pub(super) fn settled(mut self) -> (Vec<u64>, Losses) {
        self.lose_the_rest(Dropped::Damaged);
        (self.sequences, self.losses)
    }
}

/// A request of a batch, and what the peer thinks of it.
pub(super) struct Lane {
    pub(super) request: Request,
    pub(super) verdict: Option<Verdict>,
}

impl From<Request> for Lane {
    fn from(request: Request) -> Lane {
        Lane { request, verdict: None }
    }
}

impl OutboundRequest {
    /// A batch as one request, without decoding; the batch where its bodies are longer together than Snappy can say.
    #[expect(clippy::result_large_err, reason = "the batch is handed back, and is no error")]
    pub(super) fn joined(batch: Batch) -> Result<OutboundRequest, Batch> {
        let Batch { key, meta, sequences, items, out_len, window, bodies, opened } = batch;
        let body = match snappy_passthrough::joined(window, out_len) {
            Ok(body) => body,
            Err(window) => {
                return Err(Batch { key, meta, sequences, items, out_len, window, bodies, opened });
            }
        };
        let request = Request {
            body,
            raw_len: out_len,
            version: Version::V1,
            histograms: true,
            points: false,
            items,
            entries: ResendRange::All(items),
        };
        Ok(OutboundRequest {
            records: Records::new(meta, sequences, items),
            lanes: vec![request.into()],
            items,
            losses: Losses::NONE,
            progress: None,
            turn: BorrowTurn::none(),
        })
    }

    /// All of it, to be prepared again; nothing where it goes out as it came.
    pub(super) fn into_work(self) -> Option<Recoding> {
        let OutboundRequest { records, progress, .. } = self;
        let mut progress = progress?;
        progress.again();
        Some(Recoding { records, progress })
    }

    /// The lanes that are to be sent.
    pub(super) fn open(&self) -> impl Iterator<Item = &Request> {
        self.lanes.iter().filter(|lane| lane.verdict.is_none()).map(|lane| &lane.request)
    }
}

/// A request to be sent.
#[derive(Debug, Clone)]
pub(super) struct Request {
    /// Snappy-compressed; holds the memory it lives in.
    pub(super) body: Bytes,
    /// Its length before compression.
    pub(super) raw_len: usize,
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
    pub(super) fn written(self, said: [Option<u64>; 3], unsaid: bool) -> u64 {
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
