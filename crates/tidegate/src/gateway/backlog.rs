//! Checks at the start, and when the configuration is read again, that the sinks can deliver the backlog.
//!
//! Queued records were accepted under the bounds of their time. With less memory, or with more demanding sinks, a sink may
//! no longer be able to hold one: then the gateway does not start or keeps its configuration, and names the record.
//!
//! The bounds are stored beside the journal, so that the backlog is read only after they have become tighter. Record
//! headers do not tell how large the items are: a record of several items is delivered in pieces, and an item that no
//! longer fits is dropped as `too_large`, with a line in the log.

use super::plan::{self, GatewayPlan};
use crate::Failure;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_admission::{Deliverable, Size, SizeLimit};
use tidegate_arena::Bytes;
use tidegate_config::Config;
use tidegate_files::Access;
use tidegate_journal::inspect::{Inspection, RecordInfo, inspect};
use tidegate_journal::{Journal, Meta};

/// The file of the bounds, beside the journal.
const FILE: &str = "accepted";
/// Its first line: format and version.
const HEADER: &str = "tidegate accepted 1";
/// How long requests that are on their way to the journal may take.
const FLUSH_PATIENCE: Duration = Duration::from_secs(30);

/// Checks that the queued records in the data folder fit the plan of `config`, and stores the plan's bounds for the next
/// start.
///
/// # Errors
/// The largest record that does not fit, with the memory that it needs; or the file that cannot be read or written.
pub(super) fn check(config: &Config, planned: &GatewayPlan) -> Result<(), Failure> {
    let data = &config.data;
    let file = data.join(FILE);
    let journal = data.join("journal");
    // Including the length of a window, which bounds what can be read back.
    let now = &Deliverable::new(|protocol, signal| planned.bound(protocol, signal));
    let then = match read_bounded(&file) {
        Ok(text) => Some(read(&text).ok_or_else(|| unreadable(&file))?),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(failure("reading", &file, &error)),
    };
    let backlog = match journal.is_dir() {
        true => Some(inspect(&journal).map_err(|error| failure("reading", &journal, &error))?),
        false => None,
    };
    let backlog = backlog.filter(has_queued);
    let keep = match (then, backlog) {
        (Some(then), Some(backlog)) => {
            let union = then.or(now);
            if union != *now {
                find_misfit(&backlog, config, planned, at_start)?;
            }
            union
        }
        // A journal without the file was filled by a version that did not store bounds.
        (None, Some(backlog)) => {
            find_misfit(&backlog, config, planned, at_start)?;
            now.clone()
        }
        (_, None) => now.clone(),
    };
    store(data, &keep)
}

/// As [`check`], for the plan of a configuration that is read again, while `journal` is open. Nothing that exceeds the plan's
/// bounds may be handed to the journal from now on. The stored bounds become those of everything that may be queued.
///
/// # Errors
/// As [`check`].
pub(super) fn check_again(config: &Config, planned: &GatewayPlan, journal: &Journal) -> Result<(), Failure> {
    let data = &config.data;
    let file = data.join(FILE);
    let now = &Deliverable::new(|protocol, signal| planned.bound(protocol, signal));
    let text = read_bounded(&file).map_err(|error| failure("reading", &file, &error))?;
    let then = read(&text).ok_or_else(|| unreadable(&file))?;
    let union = then.or(now);
    if union != *now {
        if !journal.flush(FLUSH_PATIENCE) {
            return Err(Failure::from(
                "with this configuration the sinks can send less than before, and requests that came before it still wait for \
                 the journal; try again",
            ));
        }
        let folder = data.join("journal");
        let mut backlog = inspect(&folder).map_err(|error| failure("reading", &folder, &error))?;
        // The files of the cursors are behind.
        let sinks = journal.stats().sinks.into_iter();
        backlog.cursors = sinks.map(|sink| (sink.name, Some(sink.position))).collect();
        find_misfit(&backlog, config, planned, while_running)?;
    }
    store(data, &union)
}

/// Stores the bounds of a plan that was checked by [`check_again`] and runs: all that is queued keeps to them. Otherwise the
/// backlog would be read each time.
pub(super) fn accept(config: &Config, planned: &GatewayPlan) {
    let now = Deliverable::new(|protocol, signal| planned.bound(protocol, signal));
    if let Err(Failure(error)) = store(&config.data, &now) {
        // The stored backlog covers more.
        tracing::warn!("{error}");
    }
}

/// Replaces the stored bounds. They are on disk before anything is accepted under them.
fn store(data: &Path, bounds: &Deliverable) -> Result<(), Failure> {
    let file = data.join(FILE);
    tidegate_files::replace(&file, Access::Owner, written(bounds).as_bytes())
        .map_err(|error| failure("writing", &file, &error))
}

/// The bound on reading the file, which is far smaller.
fn read_bounded(file: &Path) -> std::io::Result<String> {
    const LONGEST: u64 = 64 << 10;
    let mut text = String::new();
    #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
    tidegate_files::read(file)?.take(LONGEST).read_to_string(&mut text)?;
    Ok(text)
}

/// The sequence of the first record that some sink has not completed.
fn begin(backlog: &Inspection) -> u64 {
    let positions = backlog.cursors.iter().map(|(_, position)| position.map_or(0, |it| it.sequence));
    positions.min().unwrap_or(0)
}

fn has_queued(backlog: &Inspection) -> bool {
    let begin = begin(backlog);
    let queued = backlog.segments.iter().filter(|segment| segment.next.is_none_or(|next| next > begin));
    queued
        .filter_map(|segment| backlog.records(segment).ok())
        .flatten()
        .any(|record| record.sequence >= begin)
}

/// Decision about a record at the start.
fn at_start(memory: tidegate_config::Bytes) -> String {
    format!(
        "Start with `memory: {memory}` or more until it is delivered (`/status` shows when nothing is queued), and lower it then"
    )
}

/// Decision about it when the configuration is read again.
fn while_running(memory: tidegate_config::Bytes) -> String {
    format!(
        "Read the configuration again when it is delivered (`/status` shows when nothing is queued), or restart with `memory: {memory}` or more"
    )
}

/// Finds the queued record that exceeds its bound the most.
fn find_misfit(
    backlog: &Inspection,
    config: &Config,
    planned: &GatewayPlan,
    advice: fn(tidegate_config::Bytes) -> String,
) -> Result<(), Failure> {
    let begin = begin(backlog);
    let mut worst: Option<(u64, RecordInfo, Meta)> = None;
    for segment in backlog.segments.iter().filter(|segment| segment.next.is_none_or(|next| next > begin)) {
        for record in backlog.records(segment).into_iter().flatten().filter(|it| it.sequence >= begin) {
            let Some(meta) = record.meta else { continue };
            let bound = planned.bound(meta.protocol, meta.signal);
            let missing = missing(bound, Size::of_record(&meta, record.body_len as usize));
            if missing > worst.as_ref().map_or(0, |(most, ..)| *most) {
                worst = Some((missing, record, meta));
            }
        }
    }
    let Some((_, record, meta)) = worst else { return Ok(()) };
    let sufficient = plan::sufficient(config, planned, |more| {
        let size = Size::of_record(&meta, record.body_len as usize);
        missing(more.bound(meta.protocol, meta.signal), size) == 0
    });
    Err(Failure(format!(
        "the journal holds a request that was accepted with more memory or other sinks, and that the sinks cannot send \
         with `memory: {}`: record {}, {} items of {}, {} when decompressed. {}",
        planned.budget.bytes,
        record.sequence,
        record.items,
        meta.signal.name(),
        Bytes(u64::from(meta.raw_len)),
        advice(sufficient),
    )))
}

/// How many bytes a record exceeds the bound by.
fn missing(bound: SizeLimit, size: Size) -> u64 {
    let needed =
        size.kept.saturating_add(size.decoded).saturating_add(size.item.saturating_mul(bound.factor));
    needed.saturating_sub(bound.most).max(size.item.saturating_sub(bound.item)) as u64
}

fn written(deliverable: &Deliverable) -> String {
    let mut text = format!("{HEADER}\n");
    for bound in deliverable.rows() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{} {} {}", bound.most, bound.factor, bound.item);
    }
    text
}

fn read(text: &str) -> Option<Deliverable> {
    let mut lines = text.lines();
    lines.next().filter(|line| *line == HEADER)?;
    let bound = |line: &str| {
        let mut numbers = line.split(' ').map(|number| number.parse().ok());
        let bound = SizeLimit { most: numbers.next()??, factor: numbers.next()??, item: numbers.next()?? };
        numbers.next().is_none().then_some(bound)
    };
    Deliverable::of_rows(lines.map(bound).collect::<Option<Vec<SizeLimit>>>()?)
}

fn unreadable(file: &Path) -> Failure {
    Failure(format!(
        "{} was not written by this version of tidegate: was the data folder used by a newer one? If nothing is queued in the journal, you may remove the file",
        file.display()
    ))
}

fn failure(doing: &str, path: &Path, error: &std::io::Error) -> Failure {
    let path: PathBuf = path.to_owned();
    Failure(format!("{doing} {} (`data`): {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every supported version of the file reads back, and no other.
    #[test]
    fn bounds_survive_a_restart() {
        let deliverable = Deliverable::new(|protocol, signal| SizeLimit {
            most: 1000 * protocol as usize,
            factor: signal as usize,
            item: 5,
        });
        assert_eq!(read(&written(&deliverable)), Some(deliverable));
        assert_eq!(read(&written(&Deliverable::default())), Some(Deliverable::default()));
        for other in ["", "tidegate accepted 2\n", "tidegate accepted 1\n1 1\n", "tidegate accepted 1\nx y\n"]
        {
            assert_eq!(read(other), None, "{other:?}");
        }
    }

    /// A record of one item is judged with it, one of several without.
    #[test]
    fn names_the_missing_memory() {
        let bound = SizeLimit { most: 1000, factor: 4, item: 300 };
        assert_eq!(missing(bound, Size { kept: 100, decoded: 900, item: 0 }), 0);
        assert_eq!(missing(bound, Size { kept: 100, decoded: 901, item: 0 }), 1);
        assert_eq!(missing(bound, Size { kept: 200, decoded: 0, item: 200 }), 0);
        assert_eq!(missing(bound, Size { kept: 201, decoded: 0, item: 201 }), 5);
        assert_eq!(missing(bound, Size { kept: 0, decoded: 0, item: 301 }), 204);
        let small = SizeLimit { most: 1000, factor: 0, item: 300 };
        assert_eq!(missing(small, Size { kept: 301, decoded: 0, item: 301 }), 1);
        assert_eq!(missing(SizeLimit::NONE, Size { kept: 1 << 30, decoded: 1 << 30, item: 1 << 30 }), 0);
    }
}
