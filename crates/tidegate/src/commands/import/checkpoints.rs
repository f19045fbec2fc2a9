//! `tidegate import checkpoints`: how far another program has read log files.

use crate::cli::{CheckpointProgram, CheckpointsArgs};
use crate::commands::journal;
use crate::{Failure, Outcome, output};
use std::fmt::Write as _;
use tidegate_arena::Bytes;
use tidegate_start_offsets as offsets;
use tidegate_start_offsets::{State, StoredOffsets, SurveyedFile};

/// Prints the checkpoints, and stores the offsets.
pub(super) fn import(args: &CheckpointsArgs) -> Outcome {
    let read = match args.program {
        CheckpointProgram::Promtail | CheckpointProgram::Alloy => offsets::promtail,
        CheckpointProgram::Filebeat => offsets::filebeat,
        CheckpointProgram::FluentBit => offsets::fluent_bit,
        CheckpointProgram::Otelcol => offsets::collector,
    };
    let checkpoints = read(&args.path).map_err(|error| Failure(error.to_string()))?;
    let mut files: Vec<SurveyedFile> = checkpoints.files.iter().map(offsets::survey).collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let mut text = table(&files);
    text.push_str(&summary(&files));
    for note in &checkpoints.notes {
        output::note(note);
    }
    let stored: Vec<_> = files.into_iter().filter_map(|file| file.stored).collect();
    if stored.is_empty() || args.dry_run {
        text.push_str("Nothing is stored.\n");
    } else {
        let data = journal::data(&args.data)?;
        let mut all = StoredOffsets::read(&data).map_err(|error| Failure(error.to_string()))?;
        all.add(stored).map_err(Failure)?;
        let file = all
            .write(&data)
            .map_err(|error| Failure(format!("writing the start offsets in {}: {error}", data.display())))?;
        let _ = writeln!(
            text,
            "The offsets of {} files are in {}. At its next start the source `file` begins there with files that it has not read before.",
            all.files.len(),
            file.display()
        );
    }
    Ok(output::print(&text)?)
}

fn table(files: &[SurveyedFile]) -> String {
    let mut text = format!("{:>14} {:>14}  {:<22} {}\n", "offset", "size", "state", "file");
    for file in files {
        let size = file.size.map_or_else(|| "-".to_owned(), |size| size.to_string());
        let path = file
            .path
            .as_ref()
            .map_or_else(|| "known by its first bytes".into(), |path| path.to_string_lossy());
        let _ = writeln!(text, "{:>14} {size:>14}  {:<22} {path}", file.offset, shown(&file.state));
    }
    text
}

fn shown(state: &State) -> String {
    match state {
        State::Read => "read".to_owned(),
        State::Behind(unread) => format!("{unread} unread"),
        State::Truncated => "truncated, read anew".to_owned(),
        State::Replaced => "new, read anew".to_owned(),
        State::ByContent => "not looked for".to_owned(),
        State::Gone => "gone".to_owned(),
        State::Unreadable(error) => format!("cannot be read: {error}"),
    }
}

/// How many files are in which state.
fn summary(files: &[SurveyedFile]) -> String {
    let unread = |file: &SurveyedFile| match file.state {
        State::Behind(unread) => Some(unread),
        _ => None,
    };
    let count = |is: fn(&State) -> bool| files.iter().filter(|file| is(&file.state)).count();
    let behind = count(|state| matches!(state, State::Behind(_)));
    let parts = [
        (count(|state| *state == State::Read), "read to their ends".to_owned()),
        (behind, format!("with {} unread", Bytes(files.iter().filter_map(unread).sum()))),
        (count(|state| *state == State::Truncated), "truncated since".to_owned()),
        (count(|state| *state == State::Replaced), "replaced since".to_owned()),
        (count(|state| *state == State::ByContent), "to be found by their first bytes".to_owned()),
        (count(|state| *state == State::Gone), "gone".to_owned()),
        (count(|state| matches!(state, State::Unreadable(_))), "that cannot be read".to_owned()),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{count} {what}")).collect();
    if parts.is_empty() {
        "No checkpoints of files.\n".to_owned()
    } else {
        format!("{}.\n", parts.join(", "))
    }
}
