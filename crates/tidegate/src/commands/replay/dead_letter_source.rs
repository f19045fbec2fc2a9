//! Dead letters, in their order.

use super::selection::Selection;
use super::{Fate, Replayed, Source};
use crate::Failure;
use crate::cli::{ReplayArgs, ReplayLettersArgs};
use crate::commands::journal::data;
use std::path::PathBuf;
use tidegate_journal::dead_letters::{StoredDeadLetters, mark_refused, mark_sent, read};

/// The dead letters that are asked for. The folder itself knows which of them were sent.
pub(super) struct DeadLetterSource {
    folder: PathBuf,
    letters: StoredDeadLetters,
    selection: Selection,
    to: Option<String>,
    sink: Option<String>,
    is_dry: bool,
    /// The sink and the number of the one that came last.
    last: Option<(String, u64)>,
    damaged: u64,
}

impl DeadLetterSource {
    /// Reads the letters that the arguments name.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(super) fn open(
        args: &ReplayArgs,
        selection: Selection,
        letters: &ReplayLettersArgs,
    ) -> Result<DeadLetterSource, Failure> {
        let folder = data(&args.data)?.join("dead-letters");
        let (to, sink) = (letters.to.clone(), letters.sink.clone());
        let letters = read(&folder, false)?;
        let is_dry = args.dry_run;
        Ok(DeadLetterSource { folder, letters, selection, to, sink, is_dry, last: None, damaged: 0 })
    }
}

impl Source for DeadLetterSource {
    fn next(&mut self) -> Result<Option<Replayed>, Failure> {
        while let Some(letter) = self.letters.next() {
            let of_sink = self.sink.as_ref().is_none_or(|sink| *sink == letter.sink);
            if !of_sink || !self.selection.has_time(letter.at_ns) || !self.selection.has(&letter.meta) {
                continue;
            }
            let Ok(body) = self.letters.body() else {
                self.damaged += 1;
                continue;
            };
            let to = self.to.clone().unwrap_or_else(|| letter.sink.clone());
            let label = format!("dead letter {} of `{}`", letter.id, letter.sink);
            self.last = Some((letter.sink, letter.id));
            return Ok(Some(Replayed { meta: letter.meta, body, label, to }));
        }
        Ok(None)
    }

    fn settle(&mut self, fate: Fate) -> Result<(), Failure> {
        let Some((sink, id)) = self.last.take().filter(|_| !self.is_dry) else { return Ok(()) };
        match fate {
            Fate::Sent => mark_sent(&self.folder, &sink, id)?,
            Fate::Refused => mark_refused(&self.folder, &sink, id)?,
        }
        Ok(())
    }

    fn position(&self) -> Option<String> {
        None
    }

    fn remarks(&self) -> Vec<String> {
        match self.damaged {
            0 => Vec::new(),
            damaged => vec![format!("{damaged} dead letters are damaged on disk")],
        }
    }
}
