//! `tidegate replay …`: sends stored data again, from a journal, a lake or the dead letters, to one sink of a running gateway.
//!
//! Each body enters the gateway as a request that names its only sink, so it is checked, limited, journalled and counted as any
//! other. How far a replay came is written down after each acknowledgement: an interrupted one goes on behind it.

mod dead_letter_source;
mod journal_source;
mod lake_source;
mod pace;
mod progress;
mod selection;

use super::request_sender::{RequestSender, StoredRequest, Unsent};
use crate::cli::{ReplayArgs, ReplayCommand, ReplayLettersArgs, ReplayToArgs};
use crate::{Failure, Outcome, output};
use dead_letter_source::DeadLetterSource;
use journal_source::JournalSource;
use lake_source::LakeSource;
use pace::Pace;
use progress::Progress;
use selection::Selection;
use std::io::{self, IsTerminal as _};
use std::time::{Duration, Instant};
use tidegate_arena::Bytes;
use tidegate_journal::Meta;

/// How often a terminal is told how far it is.
const REPORT: Duration = Duration::from_secs(1);

/// A body that is to be sent again.
struct Replayed {
    meta: Meta,
    body: Vec<u8>,
    /// Its name in messages: `record 12`.
    label: String,
    /// The only sink that gets it.
    to: String,
}

/// The outcome of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Sent,
    Refused,
}

/// A store of bodies: a journal, a lake, dead letters.
trait Source {
    /// The next body.
    fn next(&mut self) -> Result<Option<Replayed>, Failure>;

    /// Notes the outcome of the body that came last.
    fn settle(&mut self, _fate: Fate) -> Result<(), Failure> {
        Ok(())
    }

    /// Whether others may be sent although a sink is not there.
    fn has_several_sinks(&self) -> bool {
        false
    }

    /// How far it is when the body that came last is settled, in a line; `None` where the source itself knows.
    fn position(&self) -> Option<String>;

    /// Sentences about what could not be read, or was passed over.
    fn remarks(&self) -> Vec<String>;
}

/// Counts of what was sent and refused.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    requests: u64,
    items: u64,
    bytes: u64,
    refused: u64,
}

/// `tidegate replay`
pub(crate) fn replay(command: &ReplayCommand) -> Outcome {
    match command {
        ReplayCommand::Journal(args) => {
            let ReplayToArgs { to, replay } = &args.to;
            let store = if args.unsent { "unsent records of the journal" } else { "journal" };
            let selection = Selection::of(replay, store, Some(to))?;
            let (mut progress, selection) = Progress::open(replay, selection, to)?;
            let source = JournalSource::open(args, selection, progress.position())?;
            run(replay, source, Some(&mut progress))
        }
        ReplayCommand::Lake(args) => {
            let selection = Selection::of(&args.replay, "lake", Some(&args.to))?;
            let (mut progress, selection) = Progress::open(&args.replay, selection, &args.to)?;
            let source = LakeSource::open(&args.replay, selection, &args.to, progress.position())?;
            run(&args.replay, source, Some(&mut progress))
        }
        ReplayCommand::DeadLetters(args) => dead_letters(args),
    }
}

/// `tidegate replay dead-letters`
pub(crate) fn dead_letters(args: &ReplayLettersArgs) -> Outcome {
    let selection = Selection::of(&args.replay, "dead letters", args.to.as_deref())?;
    run(&args.replay, DeadLetterSource::open(args, selection)?, None)
}

/// Sends everything that the source has.
fn run(args: &ReplayArgs, mut source: impl Source, progress: Option<&mut Progress>) -> Outcome {
    let pace = args.rate.as_deref().map(Pace::parse).transpose()?;
    if args.dry_run {
        let done = count(&mut source)?;
        let Done { requests, items, bytes, .. } = done;
        output::print(&format!("would send {items} items in {requests} requests, {}\n", Bytes(bytes)))?;
        source.remarks().iter().for_each(|remark| output::note(remark));
        return Ok(());
    }
    let sender = RequestSender::new(&args.receiver, &args.data.config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let target = sender.target();
    let mut replay = Run { sender, pace, progress, done: Done::default(), reported: Instant::now() };
    let outcome = runtime.block_on(replay.all(&mut source));
    let Done { requests, items, refused, .. } = replay.done;
    output::print(&format!("sent {items} items in {requests} requests to {target}\n"))?;
    source.remarks().iter().for_each(|remark| output::note(remark));
    outcome?;
    if let Some(progress) = replay.progress {
        progress.remove()?;
    }
    match refused {
        0 => Ok(()),
        refused => Err(Failure(format!("{refused} requests were refused for good, see above"))),
    }
}

fn count(source: &mut impl Source) -> Result<Done, Failure> {
    let mut done = Done::default();
    while let Some(Replayed { meta, body, .. }) = source.next()? {
        done.requests += 1;
        done.items += u64::from(meta.items);
        done.bytes += body.len() as u64;
    }
    Ok(done)
}

/// A replay under way.
struct Run<'a> {
    sender: RequestSender,
    pace: Option<Pace>,
    progress: Option<&'a mut Progress>,
    done: Done,
    reported: Instant,
}

impl Run<'_> {
    async fn all(&mut self, source: &mut impl Source) -> Outcome {
        while let Some(Replayed { meta, body, label, to }) = source.next()? {
            if let Some(pace) = &mut self.pace {
                pace.wait(meta.items, body.len()).await;
            }
            let request = StoredRequest { meta: &meta, body: &body, to: Some(&to), label: &label };
            let fate = match self.sender.send(request).await {
                Ok(()) => Fate::Sent,
                Err(Unsent::Refused(message)) => {
                    output::error(&message);
                    Fate::Refused
                }
                Err(Unsent::Unknown(message)) if source.has_several_sinks() => {
                    output::error(&message);
                    Fate::Refused
                }
                Err(Unsent::Failed(message) | Unsent::Unknown(message)) => return Err(Failure(message)),
            };
            match fate {
                Fate::Sent => {
                    self.done.requests += 1;
                    self.done.items += u64::from(meta.items);
                    self.done.bytes += body.len() as u64;
                }
                Fate::Refused => self.done.refused += 1,
            }
            source.settle(fate)?;
            if let (Some(progress), Some(position)) = (&mut self.progress, source.position()) {
                progress.save(&position)?;
            }
            self.report(&label);
        }
        Ok(())
    }

    /// Tells a person who waits, now and then.
    fn report(&mut self, label: &str) {
        if self.reported.elapsed() >= REPORT && io::stderr().is_terminal() {
            let Done { requests, items, bytes, .. } = self.done;
            output::note(&format!("{items} items in {requests} requests, {}: {label}", Bytes(bytes)));
            self.reported = Instant::now();
        }
    }
}
