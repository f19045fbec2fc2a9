//! The gate: the questions that a source asks, in the order in which it asks them.

use crate::pressure::Pressure;
use crate::refused::Refused;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tidegate_arena::{Arena, Share, ShareUse, Window};
use tidegate_journal::{Batch, Journal, Refused as JournalRefused};
use tidegate_ledger::{Counts, Open, Refusal};
use tidegate_tap::{At, Tap};

/// Decides about every request of every source. Clones are the same gate.
#[derive(Clone)]
pub struct Gate(Arc<Inner>);

struct Inner {
    arena: Arena,
    journal: Journal,
    /// Decides how long a request may wait for memory.
    memory_wait: Duration,
    memory: Pressure,
    stopping: AtomicBool,
    /// Where what is handed to the journal can be looked at.
    tap: Option<Tap>,
}

impl Gate {
    /// A gate before `journal`, for requests that may wait for memory for as long as `memory_wait`.
    pub fn new(arena: Arena, journal: Journal, memory_wait: Duration) -> Gate {
        Gate::tapped(arena, journal, memory_wait, None)
    }

    /// The same, with a tap that sees every batch before the journal does.
    pub fn tapped(arena: Arena, journal: Journal, memory_wait: Duration, tap: Option<Tap>) -> Gate {
        let (memory, stopping) = (Pressure::default(), AtomicBool::new(false));
        Gate(Arc::new(Inner { arena, journal, memory_wait, memory, stopping, tap }))
    }

    /// Whether a request may send its body at all. Asked when its head is known, so that what cannot be
    /// taken is refused before it costs anything.
    ///
    /// # Errors
    /// When the gateway is stopping, or the journal is known not to take anything now.
    pub fn head(&self) -> Result<(), Refused> {
        if self.0.stopping.load(Relaxed) {
            return Err(stopping().retry_after(self.0.memory.spread(1)));
        }
        match self.0.journal.barred() {
            None => Ok(()),
            Some(refused) => Err(self.disk(refused)),
        }
    }

    /// The most bytes that a body may decompress to, whatever a source allows.
    pub fn most_decoded(&self) -> usize {
        let ceiling = usize::try_from(self.0.arena.ceiling(Share::Decode)).unwrap_or(usize::MAX);
        ceiling.min(self.0.arena.window_len())
    }

    /// The most bytes that anybody can hold beyond their own part, as the plan is now.
    pub fn most_held(&self) -> usize {
        usize::try_from(self.0.arena.ceiling(Share::Decode)).unwrap_or(usize::MAX)
    }

    /// A window in which `bytes` can be decompressed to be checked. To be given back before anything else
    /// is waited for: those who hold decode memory never wait, which is why nobody waits for ever.
    ///
    /// # Errors
    /// `memory` when there is none within the time that a request may wait, `too_large` when there never
    /// is.
    pub async fn room_to_decode(&self, bytes: usize) -> Result<Window, Refused> {
        let arena = &self.0.arena;
        let refused = match arena.try_window(Share::Decode, bytes) {
            Err(tidegate_arena::Refused::Short) => {
                let waiting = arena.window(Share::Decode, bytes);
                match tokio::time::timeout(self.0.memory_wait, waiting).await {
                    Ok(answer) => answer,
                    Err(_elapsed) => Err(tidegate_arena::Refused::Short),
                }
            }
            answer => answer,
        };
        refused.map_err(|refused| match refused {
            tidegate_arena::Refused::Never { .. } => Refused::too_large(self.most_decoded()),
            _ => self.no_memory(),
        })
    }

    /// Gives a checked body to the journal and enters the verdict in the books. Returns when the body is
    /// durable. When the caller goes away meanwhile, the body still counts as accepted, since it is
    /// written.
    ///
    /// # Errors
    /// When the journal does not take it.
    pub fn append(
        &self,
        open: Open,
        counts: Counts,
        batch: Batch,
    ) -> impl Future<Output = Result<(), Refused>> + Send + '_ {
        if let Some(tap) = &self.0.tap {
            let body = batch.from.checked_add(batch.len).and_then(|end| batch.window.get(batch.from..end));
            tap.offer(At::Source, &batch.meta, body);
        }
        let handed_over = open.hand_over(counts);
        // Queued here and not when the future is first polled: so a connection's task has room for the wait
        // alone, and not for the batch.
        let appending = self.0.journal.append(batch);
        async move {
            let refused = match appending.await {
                Ok(_receipt) => {
                    handed_over.accept();
                    self.0.memory.passed(counts.bytes);
                    return Ok(());
                }
                Err(JournalRefused::Closed) => stopping().retry_after(self.0.memory.spread(1)),
                Err(JournalRefused::Busy) => self.no_memory(),
                Err(other) => self.disk(other),
            };
            handed_over.refuse(refused.reason);
            Err(refused)
        }
    }

    /// Whether [`stop`](Self::stop) was called.
    pub fn is_stopping(&self) -> bool {
        self.0.stopping.load(Relaxed)
    }

    /// When a request that found no memory should return, in seconds: after what is charged now has
    /// passed through.
    pub fn memory_delay(&self) -> u32 {
        let usage = self.0.arena.usage();
        let receiving = |share: &&ShareUse| matches!(share.share, Share::Ingest | Share::Decode);
        self.0.memory.delay(usage.shares.iter().filter(receiving).map(|share| share.used).sum())
    }

    /// No new request is let in from now on.
    pub fn stop(&self) {
        self.0.stopping.store(true, Relaxed);
    }

    /// To be called once a second.
    pub fn tick(&self) {
        self.0.memory.tick();
        if let Some(tap) = &self.0.tap {
            tap.tick();
        }
    }

    /// The answer to a request for which there is no memory now: that it should return, and when.
    pub fn no_memory(&self) -> Refused {
        let words = "no memory is free for this request now; send it again later\n";
        Refused::new(Refusal::Memory, words).retry_after(self.memory_delay())
    }

    fn disk(&self, refused: JournalRefused) -> Refused {
        let words = match refused {
            JournalRefused::Disk { trouble: tidegate_journal::Trouble::Quota, .. } => {
                "the journal's quota is used up by what the sinks have not taken yet; send it again later\n"
            }
            JournalRefused::Disk { trouble: tidegate_journal::Trouble::Full, .. } => {
                "the disk of the journal is full; send it again later\n"
            }
            JournalRefused::Unfit => return Refused::too_large(self.most_decoded()),
            _ => "the disk of the journal is failing; send it again later\n",
        };
        let seconds = match refused {
            JournalRefused::Disk { retry_after, .. } => retry_after.as_secs(),
            _ => 1,
        };
        Refused::new(Refusal::Disk, words).retry_after(self.0.memory.spread(seconds))
    }
}

const fn stopping() -> Refused {
    Refused::new(Refusal::Shutdown, "the gateway is stopping; send it again\n")
}

#[cfg(test)]
mod tests;
