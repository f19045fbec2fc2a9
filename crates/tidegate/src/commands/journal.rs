//! `tidegate journal …`: the journal as it is on disk, whether or not a gateway is running.

mod dead_letters;

use super::admin::Admin;
use super::check::config;
use crate::cli::{DataArgs, DeadLetterCommand, ForgetArgs, ForgetSourceArgs, JournalCommand};
use crate::gateway::sources::checkpoint_keys;
use crate::{Failure, Outcome, output};
use jiff::Timestamp;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Duration;
use tidegate_arena::Bytes;
use tidegate_journal::inspect::{Inspection, MAX_ERRORS, SavedCheckpoints, SegmentInfo, inspect};
use tidegate_journal::{Journal, OpenError, Settings};

/// `tidegate journal …`
pub(crate) fn journal(command: &JournalCommand) -> Outcome {
    match command {
        JournalCommand::Ls(args) => ls(args),
        JournalCommand::Verify(args) => verify(args),
        JournalCommand::Forget(args) => forget(args),
        JournalCommand::ForgetSource(args) => forget_source(args),
        JournalCommand::DeadLetters(args) => match &args.order {
            Some(DeadLetterCommand::Replay(args)) => super::replay::dead_letters(args),
            None => dead_letters::list(args),
        },
        JournalCommand::Resend(args) => dead_letters::resend(args),
        JournalCommand::Discard(args) => dead_letters::discard(args),
    }
}

/// The data folder that the arguments name.
pub(super) fn data(args: &DataArgs) -> Result<PathBuf, Failure> {
    match &args.data {
        Some(data) => Ok(data.clone()),
        None => Ok(config(&args.config)?.data),
    }
}

/// The folder of the journal.
pub(super) fn folder(args: &DataArgs) -> Result<PathBuf, Failure> {
    let folder = data(args)?.join("journal");
    if !folder.is_dir() {
        return Err(Failure(format!(
            "there is no journal at {}: name the data folder with --data, or the configuration with --config",
            folder.display()
        )));
    }
    Ok(folder)
}

fn ls(args: &DataArgs) -> Outcome {
    let journal = inspect(&folder(args)?)?;
    let mut text =
        format!("{:<32} {:>12} {:>10} {:>10}  {}\n", "segment", "first", "records", "bytes", "begun");
    let mut head = Ends::default();
    for segment in &journal.segments {
        let ends = Ends::of(&journal, segment)?;
        // The next segment knows better, should the end of this one be damaged.
        let records = segment.next.unwrap_or(ends.after.max(segment.first)) - segment.first;
        text.push_str(&format!(
            "{:<32} {:>12} {:>10} {:>10}  {}{}\n",
            segment.name,
            segment.first,
            records,
            Bytes(segment.len),
            ends.begun_ns.map_or_else(|| "-".to_owned(), time),
            if segment.damaged { "  (damage was found in it)" } else { "" },
        ));
        head = ends;
    }
    for (name, bytes) in &journal.kept {
        text.push_str(&format!(
            "{name:<32} {:>12} {:>10} {:>10}  kept for inspection\n",
            "",
            "",
            Bytes(*bytes)
        ));
    }
    text.push_str(&format!(
        "\n{:<32} {:>12} {:>14} {:>14} {:>10} {:>10}\n",
        "cursor", "next", "records behind", "items behind", "dropped", "damaged"
    ));
    for (sink, position) in &journal.cursors {
        text.push_str(&match position {
            Some(position) => format!(
                "{sink:<32} {:>12} {:>14} {:>14} {:>10} {:>10}\n",
                position.sequence,
                head.after.saturating_sub(position.sequence),
                head.items_after.saturating_sub(position.items),
                position.dropped,
                position.damaged,
            ),
            None => format!("{sink:<32} cannot be read; the sink will begin at the oldest record\n"),
        });
    }
    if let Some(saved) = journal.checkpoints {
        text.push_str(&format!("\n{}\n", checkpoints(saved)));
    }
    Ok(output::print(&text)?)
}

/// The saved checkpoints in a line.
fn checkpoints(saved: SavedCheckpoints) -> String {
    match saved {
        SavedCheckpoints::Table { checkpoints, sequence } => format!(
            "{checkpoints} checkpoints of sources were saved at record {sequence}; the records behind it have the newer ones"
        ),
        SavedCheckpoints::Unreadable => {
            "the saved checkpoints of sources cannot be read; the records say which of them are still known"
                .to_owned()
        }
    }
}

/// Where a segment begins and where it ends.
#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    /// When its first record was received, in nanoseconds since 1970.
    begun_ns: Option<u64>,
    /// The sequence after its last record, and the items before that. Only looked for in the last segment.
    after: u64,
    items_after: u64,
}

impl Ends {
    fn of(journal: &Inspection, segment: &SegmentInfo) -> io::Result<Ends> {
        let mut ends = Ends::default();
        for record in journal.records(segment)? {
            ends.begun_ns = ends.begun_ns.or(record.meta.map(|meta| meta.received_at_ns));
            (ends.after, ends.items_after) = (record.sequence + 1, record.items_before + record.items);
            if segment.next.is_some() {
                break;
            }
        }
        Ok(ends)
    }
}

fn verify(args: &DataArgs) -> Outcome {
    let folder = folder(args)?;
    let report = tidegate_journal::inspect::verify(&folder)?;
    let mut out = io::stdout().lock();
    writeln!(
        out,
        "{} segments, {} records, {} items, {} are sound",
        report.segments,
        report.records,
        report.items,
        Bytes(report.bytes)
    )?;
    for place in &report.places {
        writeln!(out, "{}", tidegate_plain::line(place))?;
    }
    if report.wrong > MAX_ERRORS as u64 {
        writeln!(out, "and {} more places", report.wrong - MAX_ERRORS as u64)?;
    }
    for sink in &report.lost_cursors {
        let sink = tidegate_plain::line(sink);
        writeln!(out, "the cursor of `{sink}` cannot be read; the sink will begin at the oldest record")?;
    }
    if let Some(saved) = report.checkpoints {
        writeln!(out, "{}", checkpoints(saved))?;
    }
    if report.is_sound() {
        return Ok(());
    }
    Err(Failure(format!(
        "the journal at {} has {} damaged positions and lacks {} records with {} items; the readable ones are delivered",
        folder.display(),
        report.wrong,
        report.missing_records,
        report.missing_items,
    )))
}

fn forget(args: &ForgetArgs) -> Outcome {
    // Of a gateway elsewhere there is no folder here.
    if args.admin.admin.is_some() && args.data.data.is_none() {
        return forget_online(args, None);
    }
    // Whatever the limit, opening and closing keep all checkpoints that are there.
    let settings = Settings::new(folder(&args.data)?);
    let (journal, _recovery) = match Journal::open(settings) {
        Err(OpenError::InUse { pid, .. }) => return forget_online(args, Some(pid)),
        opened => opened?,
    };
    let queued = journal.stats().sinks.into_iter().find(|sink| sink.name == args.sink);
    let Some(queued) = queued else {
        return Err(Failure(format!(
            "the journal has no cursor for `{}`; it has: {}",
            args.sink,
            journal.sinks().join(", ")
        )));
    };
    journal.forget(&args.sink)?;
    Ok(output::print(&format!("forgot `{}`, which had {} unsent items\n", args.sink, queued.lag_items))?)
}

fn forget_source(args: &ForgetSourceArgs) -> Outcome {
    let source = &args.source;
    let Some(key) = checkpoint_keys::key_of(source) else {
        let known: Vec<&str> = checkpoint_keys::KEYS.iter().map(|(name, _)| *name).collect();
        return Err(Failure(format!(
            "`{source}` is no source with checkpoints; these are: {}",
            known.join(", ")
        )));
    };
    let settings = Settings::new(folder(&args.data)?);
    let (journal, _recovery) = Journal::open(settings).map_err(|error| match error {
        OpenError::InUse { pid, .. } => Failure(format!(
            "a gateway, process {pid}, has the journal open: stop it, forget the source, and start it without the source"
        )),
        error => error.into(),
    })?;
    let count = journal.forget_checkpoints(&[key]);
    if !journal.close(CLOSED) {
        return Err(Failure(format!("the journal was not closed within {CLOSED:?}; try again")));
    }
    if journal.stats().write_errors > 0 {
        return Err(Failure(format!(
            "the journal could not be written, so the checkpoints of `{source}` are still there: look at the free space of \
             its disk, and try again"
        )));
    }
    Ok(output::print(&format!("forgot {count} checkpoints of `{source}`\n"))?)
}

/// How long closing the journal may take.
const CLOSED: Duration = Duration::from_secs(60);

/// Asks the running gateway, which is the process `pid` where that is known: another one must not do it.
fn forget_online(args: &ForgetArgs, pid: Option<String>) -> Outcome {
    let mut admin = Admin::named(&args.admin, &args.data.config)?;
    let of = pid.filter(|pid| pid.bytes().all(|byte| byte.is_ascii_digit()));
    let query = of.map(|pid| format!("?pid={pid}")).unwrap_or_default();
    let (sink, address) = (&args.sink, admin.address());
    if !sink.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
        return Err(Failure(format!("`{sink}` cannot be the name of a sink")));
    }
    let answer = admin.ask("DELETE", &format!("/journal/cursors/{sink}{query}"), Duration::ZERO);
    let (status, body) = answer.map_err(|error| {
        Failure(format!(
            "a gateway is running, and asking it at {address} to forget `{sink}`: {error}; is that its \
             `listen.admin`? Name another with --admin, or the configuration with --config"
        ))
    })?;
    let said = body.trim_end();
    match status {
        200 => Ok(output::print(&format!("forgot `{sink}`, which had {said} unsent items\n"))?),
        401 => Err(Failure(format!("{said}: name the file with a token in --admin-token-file"))),
        _ => Err(Failure(format!("the gateway at {address} did not forget `{sink}`: {said}"))),
    }
}

/// Nanoseconds since 1970, to the second, for people.
pub(super) fn time(ns: u64) -> String {
    let second = Timestamp::from_second((ns / 1_000_000_000).cast_signed());
    second.map_or_else(|_| "-".to_owned(), |time| time.to_string())
}
