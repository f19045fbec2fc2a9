//! Follows orders of the console's page about dead letters: they are sent again, or discarded.
//!
//! A letter is sent to the sink that could not deliver it, and to no other: it goes to the journal with this sink as its only
//! recipient. It is marked as sent when the journal has it for good, so a crash between the two sends it twice.

mod letter_thread;
mod resend;

use super::sinks::{journal_signal, kinds};
use letter_thread::{LetterThread, THREAD_BYTES};
use resend::Resend;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tidegate_admission::Gate;
use tidegate_arena::{Arena, Share};
use tidegate_config::{Config, Sink};
use tidegate_console::{DeadLetterAction, DeadLetterError, DeadLetterOrder, DeadLetterReport};
use tidegate_journal::Meta;
use tidegate_journal::dead_letters::{self, Discarded, MOST_KEPT};
use tidegate_ledger::Ledger;
use tokio::sync::Semaphore;

const CHANGING: &str = "the configuration is being changed; try again";
const BUSY: &str = "another order about dead letters is being followed; try again when it is done";
const NO_MEMORY: &str = "requests and sinks have the memory that this needs; try again later";

/// How long an order waits for the previous one, whose thread outlives its answer for a moment.
const TURN_WAIT: Duration = Duration::from_secs(1);

/// Lets one order be followed at a time.
pub(crate) struct DeadLetterTurn(Arc<Semaphore>);

/// The folder of letters, and the sink that an order names.
pub(super) struct OrderTarget {
    folder: PathBuf,
    /// As it is configured; nothing where it is not.
    sink: Option<Sink>,
}

/// The parts of the gateway that an order needs.
#[derive(Clone, Copy)]
pub(super) struct OrderServices<'g> {
    pub(super) arena: &'g Arena,
    pub(super) gate: &'g Gate,
    pub(super) ledger: &'g Ledger,
}

impl Default for DeadLetterTurn {
    fn default() -> Self {
        DeadLetterTurn(Arc::new(Semaphore::new(1)))
    }
}

impl OrderTarget {
    /// The target of an order about the letters of `sink`.
    pub(super) fn of(config: &Config, sink: &str) -> OrderTarget {
        let mut sinks = config.sinks.iter();
        OrderTarget {
            folder: config.data.join("dead-letters"),
            sink: sinks.find(|(name, _)| name.as_str() == sink).map(|(_, sink)| sink.clone()),
        }
    }
}

impl DeadLetterTurn {
    /// Follows an order; `target` is nothing while the configuration is being changed.
    ///
    /// # Errors
    /// [`DeadLetterError`]. Letters that were sent before are marked, and those after them are as they were.
    pub(super) async fn follow(
        &self,
        services: OrderServices<'_>,
        target: Option<OrderTarget>,
        order: DeadLetterOrder,
    ) -> Result<DeadLetterReport, DeadLetterError> {
        let OrderTarget { folder, sink } = target.ok_or_else(|| busy(CHANGING))?;
        match (order.action, sink) {
            (DeadLetterAction::Discard, sink) => {
                let thread = self.start_thread(services).await?;
                discard(&thread, folder, order, sink.is_some()).await
            }
            (DeadLetterAction::Resend, Some(sink)) => {
                let thread = self.start_thread(services).await?;
                let books = services.ledger.source(SOURCE).map_err(failed)?;
                let resend = Resend::new(services, books, &thread, (folder, sink), order);
                // On the heap, as is the future that this is in; it is charged with the thread.
                Box::pin(resend.run()).await
            }
            (DeadLetterAction::Resend, None) => Err(DeadLetterError::Unknown(format!(
                "the sink `{}` is not configured: `tidegate journal resend --sink {}` sends its letters to the sinks that are",
                order.sink, order.sink
            ))),
        }
    }

    /// The thread of an order, when that of the one before has ended.
    async fn start_thread(&self, services: OrderServices<'_>) -> Result<LetterThread, DeadLetterError> {
        let turn = tokio::time::timeout(TURN_WAIT, Arc::clone(&self.0).acquire_owned()).await;
        let turn = turn.ok().and_then(Result::ok).ok_or_else(|| busy(BUSY))?;
        let paid = services.arena.try_charge(Share::Ingest, THREAD_BYTES).map_err(|_| busy(NO_MEMORY))?;
        LetterThread::start((turn, paid)).map_err(failed)
    }
}

/// The page of the books on which resent letters are requests.
const SOURCE: &str = "dead_letters";

async fn discard(
    thread: &LetterThread,
    folder: PathBuf,
    order: DeadLetterOrder,
    is_configured: bool,
) -> Result<DeadLetterReport, DeadLetterError> {
    let DeadLetterOrder { action, sink, through } = order;
    let name = sink.clone();
    let discarded = thread.run(move || dead_letters::discard(&folder, &name, Some(through))).await?;
    let Discarded { letters, items, kept } = discarded.map_err(failed)?;
    if letters + kept == 0 && !is_configured {
        let words = format!("there is no sink `{sink}`, and no dead letter of it");
        return Err(DeadLetterError::Unknown(words));
    }
    tracing::info!(sink, letters, items, "dead letters were discarded from the console");
    // Newer letters are none of those that were meant.
    Ok(DeadLetterReport { action, letters, items, kept: 0, message: None })
}

/// Why `sink` would not take a letter as it is configured now.
fn unwanted(sink: &Sink, meta: &Meta) -> Option<String> {
    let signal = meta.signal;
    let takes_signal = meta.is_mixed() || sink.signals().iter().any(|known| journal_signal(known) == signal);
    if !takes_signal {
        return Some(format!("the sink does not take {} any more (`signals`)", signal.name()));
    }
    let kind = kinds::of(sink);
    kind.need(meta.protocol, signal).is_none().then(|| {
        let (protocol, kind) = (meta.protocol.name(), sink.kind());
        format!("the sink is of type `{kind}` now, which does not take {protocol}")
    })
}

fn busy(words: &str) -> DeadLetterError {
    DeadLetterError::Busy(words.to_owned())
}

fn failed(error: impl fmt::Display) -> DeadLetterError {
    DeadLetterError::Failed(format!("following the order about dead letters: {error}"))
}
