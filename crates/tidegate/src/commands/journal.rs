//! `tidegate journal …`: the journal as it is on disk.

use super::check::config;
use crate::cli::{DataArgs, ForgetArgs, JournalCommand};
use crate::{Failure, Outcome, output};
use std::path::PathBuf;
use tidegate_journal::{Journal, Settings};

/// `tidegate journal …`
pub(crate) fn journal(command: &JournalCommand) -> Outcome {
    match command {
        JournalCommand::Forget(args) => forget(args),
        _ => Err(Failure::from("x")),
    }
}

fn folder(args: &DataArgs) -> Result<PathBuf, Failure> {
    let data = match &args.data {
        Some(data) => data.clone(),
        None => config(&args.config)?.data,
    };
    let folder = data.join("journal");
    if !folder.is_dir() {
        return Err(Failure(format!(
            "there is no journal at {}: name the data folder with --data, or the configuration with --config",
            folder.display()
        )));
    }
    Ok(folder)
}

fn forget(args: &ForgetArgs) -> Outcome {
    let (journal, _recovery) = Journal::open(Settings::new(folder(&args.data)?))?;
    let queued = journal.stats().sinks.into_iter().find(|sink| sink.name == args.sink);
    let Some(queued) = queued else {
        return Err(Failure(format!(
            "the journal has no cursor for `{}`; it has: {}",
            args.sink,
            journal.sinks().join(", ")
        )));
    };
    journal.forget(&args.sink)?;
    Ok(output::print(&format!(
        "forgot `{}`, which had {} items still to send\n",
        args.sink, queued.lag_items
    ))?)
}
