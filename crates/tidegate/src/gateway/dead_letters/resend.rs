//! Sends the letters of one sink again, one after the other, the oldest first.

use super::letter_thread::LetterThread;
use super::{MOST_KEPT, NO_MEMORY, OrderServices, failed, unwanted};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};
use tidegate_arena::{ChargeError, Share, Window};
use tidegate_config::Sink;
use tidegate_console::{DeadLetterError, DeadLetterOrder, DeadLetterReport};
use tidegate_journal::dead_letters::{StoredDeadLetter, StoredDeadLetters, mark_kept, mark_sent, read};
use tidegate_journal::{Batch, Checkpoints, Meta, Signal};
use tidegate_ledger::{Counts, Signal as Booked, Source};

/// How long letters are sent before the answer says how many are left.
const TIME: Duration = Duration::from_secs(10);
/// How long a letter waits for memory.
const MEMORY_WAIT: Duration = Duration::from_secs(3);

/// An order to send letters again.
pub(super) struct Resend<'g> {
    services: OrderServices<'g>,
    books: Source,
    thread: &'g LetterThread,
    folder: PathBuf,
    sink: Sink,
    order: DeadLetterOrder,
    report: DeadLetterReport,
    /// Why a letter was not sent that nothing but a change lets through.
    refused: Option<String>,
}

/// Why a letter was not sent.
enum Unsent {
    /// It would not be another time; others may be.
    Refused(String),
    /// Nothing can be sent now.
    Later(String),
}

impl<'g> Resend<'g> {
    pub(super) fn new(
        services: OrderServices<'g>,
        books: Source,
        thread: &'g LetterThread,
        (folder, sink): (PathBuf, Sink),
        order: DeadLetterOrder,
    ) -> Resend<'g> {
        let report = DeadLetterReport { action: order.action, letters: 0, items: 0, kept: 0, message: None };
        Resend { services, books, thread, folder, sink, order, report, refused: None }
    }

    /// Sends until all are sent, the time is over, or nothing can be sent now.
    pub(super) async fn run(mut self) -> Result<DeadLetterReport, DeadLetterError> {
        let (began, folder) = (Instant::now(), self.folder.clone());
        let mut letters = self.thread.run(move || read(&folder, false)).await?.map_err(failed)?;
        loop {
            let (rest, next) = self.next(letters).await?;
            let Some(letter) = next else { break };
            if began.elapsed() >= TIME {
                return self.stop(rest, None).await;
            }
            let (rest, outcome) = self.send(rest, &letter).await?;
            let counted = match outcome {
                Ok(()) => self.count_sent(&letter).await?,
                Err(Unsent::Refused(why)) => self.count_refused(&letter, why).await?,
                Err(Unsent::Later(why)) => Err(why),
            };
            if let Err(why) = counted {
                return self.stop(rest, Some(why)).await;
            }
            letters = rest;
        }
        self.report.message = self.refused.take();
        Ok(self.told())
    }

    /// Marks a letter that the journal has. Otherwise nothing more should be sent: it would be sent once more, too.
    async fn count_sent(&mut self, letter: &StoredDeadLetter) -> Result<Result<(), String>, DeadLetterError> {
        self.report.letters += 1;
        self.report.items += u64::from(letter.meta.items);
        let id = letter.id;
        Ok(self.mark(letter, mark_sent).await?.map_err(|error| {
            format!("letter {id} was sent, which could not be written down ({error}): it is sent twice when letters are sent again")
        }))
    }

    /// Marks a letter that is kept whatever is sent after it. Of many the oldest would be forgotten, so there is an end.
    async fn count_refused(
        &mut self,
        letter: &StoredDeadLetter,
        why: String,
    ) -> Result<Result<(), String>, DeadLetterError> {
        let why = format!("letter {}: {why}", letter.id);
        if self.report.kept >= MOST_KEPT as u64 {
            return Ok(Err(why));
        }
        let marked = self
            .mark(letter, |dir, sink, id| mark_kept(dir, sink, id, &[]))
            .await?
            .map_err(|error| format!("marking a letter: {error}"));
        if marked.is_ok() {
            self.report.kept += 1;
            self.refused.get_or_insert(why);
        }
        Ok(marked)
    }

    /// The next letter that is meant.
    async fn next(
        &self,
        mut letters: StoredDeadLetters,
    ) -> Result<(StoredDeadLetters, Option<StoredDeadLetter>), DeadLetterError> {
        let DeadLetterOrder { sink, through, .. } = self.order.clone();
        let next = move || {
            let next = letters.find(|letter| letter.sink == sink && letter.id <= through);
            (letters, next)
        };
        self.thread.run(next).await
    }

    /// Has the journal take a letter, for its sink alone.
    async fn send(
        &self,
        letters: StoredDeadLetters,
        letter: &StoredDeadLetter,
    ) -> Result<(StoredDeadLetters, Result<(), Unsent>), DeadLetterError> {
        if let Some(why) = unwanted(&self.sink, &letter.meta) {
            return Ok((letters, Err(Unsent::Refused(why))));
        }
        let len = letter.body_len as usize;
        let window = match self.window(len).await {
            Ok(window) => window,
            Err(unsent) => return Ok((letters, Err(unsent))),
        };
        let (letters, window) = self.thread.run(move || filled(letters, window, len)).await?;
        let window = match window {
            Ok(window) => window,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                let why = "its body is damaged on the disk".to_owned();
                return Ok((letters, Err(Unsent::Refused(why))));
            }
            Err(error) => return Err(failed(error)),
        };
        Ok((letters, self.append(&letter.meta, window).await))
    }

    /// Memory for a body.
    async fn window(&self, bytes: usize) -> Result<Window, Unsent> {
        let window = self.services.arena.window(Share::Ingest, bytes.max(1));
        match tokio::time::timeout(MEMORY_WAIT, window).await {
            Ok(Ok(window)) => Ok(window),
            Ok(Err(ChargeError::Never { most, .. })) => Err(Unsent::Refused(format!(
                "it has {bytes} bytes, and a request can have {most} with this `memory`"
            ))),
            Ok(Err(_)) | Err(_) => Err(Unsent::Later(NO_MEMORY.to_owned())),
        }
    }

    async fn append(&self, meta: &Meta, window: Window) -> Result<(), Unsent> {
        let gate = self.services.gate;
        let unsent = |refused: tidegate_admission::Rejection| {
            let words = refused.words.to_string().trim_end().to_owned();
            match refused.retry_after {
                Some(_) => Unsent::Later(words),
                None => Unsent::Refused(words),
            }
        };
        let (len, mut open) = (window.len(), self.books.open());
        let permit = match gate.admit_dead_letter(&meta.tenant, len, &mut open) {
            Ok(permit) => permit.to_sink(&self.order.sink),
            Err(refused) => {
                refused.close(open);
                return Err(unsent(refused));
            }
        };
        let counts = Counts::of(booked(meta.signal), meta.items.into(), len as u64);
        // It waits from now on, and not since it was received for the first time.
        let meta = Meta { received_at_ns: now_ns(), ..*meta };
        let batch = Batch { meta, window, from: 0, len, checkpoints: Checkpoints::default() };
        Box::pin(gate.append(&permit, open, counts, batch)).await.map_err(unsent)
    }

    async fn mark(
        &self,
        letter: &StoredDeadLetter,
        mark: fn(&Path, &str, u64) -> io::Result<()>,
    ) -> Result<io::Result<()>, DeadLetterError> {
        let (folder, sink, id) = (self.folder.clone(), letter.sink.clone(), letter.id);
        self.thread.run(move || mark(&folder, &sink, id)).await
    }

    /// Stops at a letter that was not sent: it and those after it are kept.
    async fn stop(
        &mut self,
        letters: StoredDeadLetters,
        why: Option<String>,
    ) -> Result<DeadLetterReport, DeadLetterError> {
        let DeadLetterOrder { sink, through, .. } = self.order.clone();
        let meant = move |letter: &StoredDeadLetter| letter.sink == sink && letter.id <= through;
        let left = self.thread.run(move || letters.filter(meant).count()).await?;
        self.report.kept += 1 + left as u64;
        match why {
            Some(why) if self.report.letters == 0 => return Err(DeadLetterError::Busy(why)),
            why => self.report.message = self.refused.take().or(why),
        }
        Ok(self.told())
    }

    fn told(&self) -> DeadLetterReport {
        let DeadLetterReport { letters, items, kept, .. } = self.report;
        tracing::info!(
            sink = self.order.sink,
            letters,
            items,
            kept,
            "dead letters were sent again from the console"
        );
        self.report.clone()
    }
}

/// Reads the body of the letter that was given last.
fn filled(
    mut letters: StoredDeadLetters,
    mut window: Window,
    len: usize,
) -> (StoredDeadLetters, io::Result<Window>) {
    let read = match window.spare_mut().get_mut(..len) {
        Some(body) => letters.body_into(body),
        None => Err(io::ErrorKind::InvalidInput.into()),
    };
    let window = read.map(|()| {
        window.advance(len);
        window
    });
    (letters, window)
}

/// A signal of the journal, as the books name it.
fn booked(signal: Signal) -> Booked {
    match signal {
        Signal::Traces => Booked::Traces,
        Signal::Metrics => Booked::Metrics,
        Signal::Logs => Booked::Logs,
        Signal::Profiles | Signal::Events => Booked::Events,
    }
}

/// Now, in nanoseconds since 1970; zero before.
fn now_ns() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
