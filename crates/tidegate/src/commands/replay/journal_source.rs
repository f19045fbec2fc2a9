//! Records of a journal, in their order.

use super::selection::Selection;
use super::{Replayed, Source};
use crate::Failure;
use crate::cli::{ReplayJournalArgs, ReplayToArgs};
use crate::commands::journal::{folder, time};
use std::collections::VecDeque;
use std::io;
use tidegate_files::FolderLock;
use tidegate_journal::inspect::{Bodies, Inspection, SegmentInfo, inspect};

/// The records of a journal's folder that are asked for.
pub(super) struct JournalSource {
    journal: Inspection,
    segments: VecDeque<SegmentInfo>,
    open: Option<Bodies>,
    selection: Selection,
    to: String,
    /// The next record.
    next: u64,
    /// A gateway runs with this journal.
    is_running: bool,
    /// Those from here on waited for the sink of the running gateway when the replay began.
    end: Option<u64>,
    /// It begins with the oldest record that is there, and older ones are not there any more.
    lacks_oldest: bool,
    /// When the first record was received that was read.
    oldest_ns: Option<u64>,
    counts: Counts,
}

/// Counts of what was not sent.
#[derive(Debug, Default)]
struct Counts {
    /// Records that are not there between others.
    missing: u64,
    damaged: u64,
    /// Records that the sink gets anyway.
    waiting: u64,
    /// Records that were sent again before.
    replayed: u64,
    /// Segments that went out of the journal while it was read.
    gone: u64,
}

impl JournalSource {
    /// Reads the journal that the arguments name, behind `position`.
    ///
    /// # Errors
    /// When it cannot be read, or the position is none.
    pub(super) fn open(
        args: &ReplayJournalArgs,
        selection: Selection,
        position: Option<&str>,
    ) -> Result<JournalSource, Failure> {
        let ReplayToArgs { to, replay } = &args.to;
        let dir = folder(&replay.data)?;
        let journal = inspect(&dir)?;
        let cursor = journal.cursors.iter().find(|(sink, _)| sink == to).and_then(|(_, position)| *position);
        let is_running = FolderLock::is_held(&dir);
        let begin = match (args.unsent, cursor) {
            (false, _) => journal.segments.first().map_or(0, |oldest| oldest.first),
            (true, _) if is_running => {
                return Err(Failure(format!(
                    "the gateway of the journal is running: `{to}` gets what it has not had"
                )));
            }
            (true, Some(cursor)) => cursor.sequence,
            (true, None) => return Err(no_cursor(&journal, to)),
        };
        // Of a gateway that runs, the sink will still read what is behind its cursor. If the process ended, nobody will.
        let end = cursor.filter(|_| is_running).map(|cursor| cursor.sequence);
        // It ends where it was to end when it began: the sink has had what waited then.
        let (next, end) = match position {
            None => (begin, end),
            Some(position) => {
                let (next, stored) = place(position).ok_or_else(|| {
                    Failure(format!("`{position}` is no place in a journal: begin anew with --restart"))
                })?;
                (next, stored.or(end))
            }
        };
        let is_from_oldest = position.is_none() && !args.unsent;
        let lacks_oldest = is_from_oldest && journal.segments.first().is_some_and(|oldest| oldest.first > 0);
        let segments = journal.segments.iter().filter(|segment| segment.next.is_none_or(|end| end > next));
        let segments = segments.cloned().collect();
        let to = to.clone();
        Ok(JournalSource {
            journal,
            segments,
            open: None,
            selection,
            to,
            next,
            is_running,
            end,
            lacks_oldest,
            oldest_ns: None,
            counts: Counts::default(),
        })
    }

    /// The records of the next segment.
    fn open_next(&mut self) -> Result<Option<&mut Bodies>, Failure> {
        while self.open.is_none() {
            let Some(segment) = self.segments.front() else { return Ok(None) };
            match self.journal.bodies(segment) {
                Ok(bodies) => self.open = Some(bodies),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    self.counts.gone += 1;
                    self.segments.pop_front();
                }
                Err(error) => return Err(Failure(format!("reading {}: {error}", segment.name))),
            }
        }
        Ok(self.open.as_mut())
    }
}

fn no_cursor(journal: &Inspection, to: &str) -> Failure {
    let known: Vec<&str> = journal.cursors.iter().map(|(sink, _)| sink.as_str()).collect();
    Failure(format!("the journal does not know what `{to}` has had; it knows it of: {}", known.join(", ")))
}

/// The record after the one that a position names, and the end of the replay.
fn place(position: &str) -> Option<(u64, Option<u64>)> {
    let (last, end) = match position.strip_prefix("record ")?.split_once(" before ") {
        Some((last, end)) => (last, Some(end.parse().ok()?)),
        None => (position.strip_prefix("record ")?, None),
    };
    Some((last.parse::<u64>().ok()?.checked_add(1)?, end))
}

impl Source for JournalSource {
    fn next(&mut self) -> Result<Option<Replayed>, Failure> {
        loop {
            let next = self.next;
            let Some(bodies) = self.open_next()? else { return Ok(None) };
            let Some((sequence, meta)) = bodies.next_head() else {
                self.open = None;
                self.segments.pop_front();
                continue;
            };
            if sequence < next {
                continue;
            }
            // Records sent again to another sink are not for this one. Those sent again to this one are delivered or wait, unless
            // the gateway is gone.
            let recipient = bodies.recipient().map(str::to_owned);
            let is_replayed = recipient.is_some_and(|recipient| self.is_running || recipient != self.to);
            self.counts.missing += sequence - next;
            self.next = sequence + 1;
            if let (None, Some(meta)) = (self.oldest_ns, &meta) {
                self.oldest_ns = Some(meta.received_at_ns);
            }
            let wanted = |meta: &tidegate_journal::Meta| {
                self.selection.has_time(meta.received_at_ns) && self.selection.has(meta)
            };
            let Some(meta) = meta.filter(wanted) else { continue };
            if is_replayed {
                self.counts.replayed += 1;
                continue;
            }
            if self.end.is_some_and(|end| sequence >= end) {
                self.counts.waiting += 1;
                continue;
            }
            let Some(bodies) = self.open.as_mut() else { continue };
            let mut body = vec![0; bodies.body_len()];
            match bodies.read_body(&mut body) {
                Ok(true) => {}
                Ok(false) => {
                    self.counts.damaged += 1;
                    continue;
                }
                Err(error) => return Err(Failure(format!("reading record {sequence}: {error}"))),
            }
            let label = format!("record {sequence}");
            return Ok(Some(Replayed { meta, body, label, to: self.to.clone() }));
        }
    }

    fn position(&self) -> Option<String> {
        let last = self.next.saturating_sub(1);
        Some(self.end.map_or_else(|| format!("record {last}"), |end| format!("record {last} before {end}")))
    }

    fn remarks(&self) -> Vec<String> {
        let Counts { missing, damaged, waiting, replayed, gone } = self.counts;
        let remark = |count: u64, text: &str| (count > 0).then(|| format!("{count} {text}"));
        let begin = self.selection.from_ns;
        let is_short = begin > 0 && self.oldest_ns.is_none_or(|oldest| oldest > begin);
        let kept = (self.lacks_oldest && is_short).then(|| {
            let oldest = match self.oldest_ns {
                Some(oldest) => format!("the oldest record that was read is of {}", time(oldest)),
                None => "the journal has no record to read".to_owned(),
            };
            format!("{oldest}: what all sinks have had stays as long as `journal.keep` says")
        });
        [
            kept,
            remark(missing, "records are not in the journal any more"),
            remark(damaged, "records are damaged"),
            remark(replayed, "records were sent again before, to this sink or another, and are left out"),
            remark(gone, "segments went out of the journal while it was read: the sinks have had them"),
            remark(
                waiting,
                &format!("records were not sent: they wait in the journal for `{}` as it is", self.to),
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}
