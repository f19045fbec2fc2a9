//! A sink's side of the journal and of the books: what comes next, and what became of it.

use crate::health::Health;
use crate::losses::Losses;
use std::io;
use std::time::Duration;
use tidegate_journal::dead_letters::DeadLetters;
use tidegate_journal::{BOOK, Book, Event, Follower, Journal, OpenError, Record, Start, WhenFull};
use tidegate_ledger::{Dropped, Ledger, Settled, Sink, SinkBook, TooMany, UnknownBook};

/// How long to wait when the journal cannot be read for a passing reason (too many open files, say).
const PASSING: Duration = Duration::from_secs(1);

/// A sink's way through the journal, with its page in the books: neither moves without the other.
pub(crate) struct Inbox {
    follower: Follower,
    page: Sink,
    /// What of those is in the books.
    entered: Passed,
}

/// Items that the cursor was moved past without the sink: it counts them itself, when it passes them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Passed {
    quota: u64,
    damaged: u64,
}

/// Why a sink could not be attached to the journal.
#[derive(Debug, thiserror::Error)]
pub enum AttachError {
    /// The cursor.
    #[error(transparent)]
    Cursor(#[from] OpenError),
    /// The book beside it.
    #[error(transparent)]
    Book(#[from] UnknownBook),
    /// The page in the ledger.
    #[error(transparent)]
    Page(#[from] TooMany),
}

/// What a sink is attached to, and what it may use.
#[derive(Clone, Copy)]
pub struct Sinkable<'a> {
    /// The sink's name.
    pub name: &'a str,
    /// Where it reads.
    pub journal: &'a Journal,
    /// Where it enters what became of what it read.
    pub ledger: &'a Ledger,
    /// What happens to it when it holds up a full journal.
    pub when_full: WhenFull,
    /// Where it says how it is doing.
    pub health: &'a Health,
    /// Where it keeps what its peer rejects.
    pub dead_letters: &'a DeadLetters,
}

impl Sinkable<'_> {
    /// Attaches the sink, from where it left off, or from the oldest record that is still there: a sink
    /// that was renamed gets what its predecessor still had queued.
    pub(crate) fn attach(&self) -> Result<Inbox, AttachError> {
        let follower = self.journal.follow(self.name, Start::Oldest, self.when_full)?;
        let (position, bytes) = (follower.position(), follower.book());
        let mut book = match bytes.first_chunk::<{ SinkBook::LEN }>() {
            Some(kept) if bytes != [0; BOOK] => SinkBook::from_bytes(kept)?,
            _ => SinkBook::new(position.born),
        };
        // The cursor counts these itself: a crash may have come between it and the book.
        book.restore(Dropped::Quota, position.dropped);
        book.restore(Dropped::Damaged, position.damaged);
        let page = self.ledger.attach(self.name, book, position.items, follower.ahead())?;
        let entered = Passed { quota: position.dropped, damaged: position.damaged };
        Ok(Inbox { follower, page, entered })
    }
}

impl Inbox {
    pub(crate) fn name(&self) -> &str {
        self.follower.name()
    }

    /// The next record; nothing when the journal was closed and everything was read. What the quota took
    /// and what cannot be read is entered in the books on the way.
    pub(crate) async fn next(&mut self) -> Option<Record> {
        loop {
            match self.follower.next().await {
                Ok(Some(event)) => {
                    if let Some(record) = self.record(event) {
                        return Some(record);
                    }
                }
                Ok(None) => return None,
                Err(error) => {
                    self.unreadable(&error);
                    tokio::time::sleep(PASSING).await;
                }
            }
        }
    }

    /// As [`next`](Self::next) on a thread of its own, for `patience` at most; says whether the journal was
    /// closed.
    pub(crate) fn next_blocking(&mut self, patience: Duration) -> Result<Record, Quiet> {
        loop {
            match self.follower.next_blocking(patience) {
                Ok(Some(event)) => {
                    if let Some(record) = self.record(event) {
                        return Ok(record);
                    }
                }
                Ok(None) if self.follower.is_closed() => return Err(Quiet::Closed),
                Ok(None) => return Err(Quiet::Nothing),
                Err(error) => {
                    self.unreadable(&error);
                    std::thread::sleep(PASSING);
                    return Err(Quiet::Nothing);
                }
            }
        }
    }

    /// The follower, to read the body of the record that came last.
    pub(crate) fn follower(&mut self) -> &mut Follower {
        &mut self.follower
    }

    /// Reads any number of records before the first is settled.
    pub(crate) fn in_order(&mut self) {
        self.follower.in_order();
    }

    /// Enters that every record taken up to `last` was delivered but for `losses`, and moves the cursor past it.
    pub(crate) fn settle(&mut self, last: &Record, losses: Losses) {
        let Inbox { follower, page, entered } = self;
        follower.commit_through(last, |completed| {
            let passed = Passed { quota: completed.dropped, damaged: completed.damaged };
            // What the quota took meanwhile is not in `items`, so there may be less to lose than was lost.
            let (losses, delivered) = losses.within(completed.items);
            let losses = losses.and(entered.catch_up(passed));
            enter(page, delivered, losses, (completed.position, completed.ahead))
        });
    }

    /// Enters that these records were delivered but for `losses`, in whatever order they were taken, and moves
    /// the cursor past what is done without a gap.
    pub(crate) fn settle_each(&mut self, sequences: impl IntoIterator<Item = u64>, losses: Losses) {
        let Inbox { follower, page, entered } = self;
        follower.commit_each(sequences, |completed| {
            let passed = Passed { quota: completed.dropped, damaged: completed.damaged };
            let (losses, delivered) = losses.within(completed.items);
            let losses = losses.and(entered.catch_up(passed));
            enter(page, delivered, losses, (completed.position, completed.ahead))
        });
    }

    /// Goes back to the first record that is not settled.
    pub(crate) fn rewind(&mut self) {
        self.follower.rewind();
    }

    fn record(&mut self, event: Event) -> Option<Record> {
        let (reason, gap) = match event {
            Event::Record(record) => return Some(record),
            Event::Dropped(gap) => (Dropped::Quota, gap),
            Event::Damaged(gap) => (Dropped::Damaged, gap),
        };
        tracing::warn!(
            sink = self.name(),
            records = gap.records,
            items = gap.items,
            reason = reason.name(),
            "records of the journal are lost for this sink"
        );
        self.catch_up();
        None
    }

    /// Enters what the cursor was moved past without the sink. What lies behind records that are not settled
    /// is entered with them.
    fn catch_up(&mut self) {
        let position = self.follower.position();
        let passed = Passed { quota: position.dropped, damaged: position.damaged };
        let book = enter(&self.page, 0, self.entered.catch_up(passed), (position.items, position.ahead));
        self.follower.save(&book);
    }

    fn unreadable(&self, error: &io::Error) {
        tracing::warn!(sink = self.name(), %error, "the journal cannot be read now; trying again in a second");
    }
}

impl Passed {
    /// What was passed since the last time.
    fn catch_up(&mut self, now: Passed) -> Losses {
        let before = std::mem::replace(self, now);
        let quota = Losses::of(Dropped::Quota, now.quota.saturating_sub(before.quota));
        quota.and(Losses::of(Dropped::Damaged, now.damaged.saturating_sub(before.damaged)))
    }
}

/// Enters a movement of the cursor in the books: before it are `position` items, and `ahead` behind it are done.
/// Gives the page as the journal keeps it.
fn enter(page: &Sink, delivered: u64, losses: Losses, (position, ahead): (u64, u64)) -> Book {
    let dropped: Vec<_> = losses.entries().collect();
    page.settle(Settled { delivered, passed: 0, dropped: &dropped, position, ahead });
    let mut book = [0; BOOK];
    if let Some(room) = book.first_chunk_mut::<{ SinkBook::LEN }>() {
        *room = page.book().to_bytes();
    }
    book
}

/// Why there was no record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Quiet {
    /// Nothing came within the time.
    Nothing,
    /// The journal was closed, and everything was read.
    Closed,
}
