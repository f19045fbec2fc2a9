//! Dead letters, in their order.

use super::selection::Selection;
use super::{Fate, Replayed, Source};
use crate::Failure;
use crate::cli::ReplayLettersArgs;
use crate::commands::check::config;
use crate::commands::journal::data;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tidegate_journal::dead_letters::{MOST_KEPT, StoredDeadLetters, mark_kept, mark_sent_but, read};

/// The dead letters that are asked for. The folder itself knows which of them were sent.
pub(super) struct DeadLetterSource {
    folder: PathBuf,
    letters: StoredDeadLetters,
    selection: Selection,
    to: Option<String>,
    sink: Option<String>,
    /// The sinks that the gateway has, where that is known.
    configured: Option<Vec<String>>,
    kept: BTreeMap<String, KeptLetters>,
    /// The sink and the number of the one that came last.
    last: Option<(String, u64)>,
    damaged: u64,
    /// Letters of sinks that the gateway does not have.
    strays: u64,
}

/// Letters of one sink that stay.
#[derive(Default)]
struct KeptLetters {
    /// Those that were passed over since one of the sink was settled.
    passed: Vec<u64>,
    /// All of them, those that were refused too.
    count: usize,
}

impl KeptLetters {
    fn pass(&mut self, id: u64) {
        self.passed.push(id);
        self.count += 1;
    }
}

impl DeadLetterSource {
    /// Reads the letters that the arguments name.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub(super) fn open(args: &ReplayLettersArgs, selection: Selection) -> Result<DeadLetterSource, Failure> {
        let ReplayLettersArgs { to, sink, replay } = args;
        let folder = data(&replay.data)?.join("dead-letters");
        let (to, sink) = (to.clone(), sink.clone());
        let letters = read(&folder, false)?;
        let configured = match (&to, &replay.receiver.url) {
            (None, None) => {
                let config = config(&replay.data.config)?;
                Some(config.sinks.keys().map(ToString::to_string).collect())
            }
            _ => None,
        };
        Ok(DeadLetterSource {
            folder,
            letters,
            selection,
            to,
            sink,
            configured,
            kept: BTreeMap::new(),
            last: None,
            damaged: 0,
            strays: 0,
        })
    }
}

impl Source for DeadLetterSource {
    fn next(&mut self) -> Result<Option<Replayed>, Failure> {
        while let Some(letter) = self.letters.next() {
            if self.sink.as_ref().is_some_and(|sink| *sink != letter.sink) {
                continue;
            }
            let kept = self.kept.entry(letter.sink.clone()).or_default();
            if !self.selection.has_time(letter.at_ns) || !self.selection.has(&letter.meta) {
                kept.pass(letter.id);
                continue;
            }
            if self.configured.as_ref().is_some_and(|sinks| !sinks.contains(&letter.sink)) {
                kept.pass(letter.id);
                self.strays += 1;
                continue;
            }
            let Ok(body) = self.letters.body() else {
                kept.pass(letter.id);
                self.damaged += 1;
                continue;
            };
            if kept.count >= MOST_KEPT {
                return Err(Failure(format!(
                    "{MOST_KEPT} letters of `{}` before letter {} stay, and no more can: send or discard those first",
                    letter.sink, letter.id
                )));
            }
            let to = self.to.clone().unwrap_or_else(|| letter.sink.clone());
            let label = format!("dead letter {} of `{}`", letter.id, letter.sink);
            self.last = Some((letter.sink, letter.id));
            return Ok(Some(Replayed { meta: letter.meta, body, label, to }));
        }
        Ok(None)
    }

    fn settle(&mut self, fate: Fate) -> Result<(), Failure> {
        let Some((sink, id)) = self.last.take() else { return Ok(()) };
        let kept = self.kept.entry(sink.clone()).or_default();
        match fate {
            Fate::Sent => mark_sent_but(&self.folder, &sink, id, &kept.passed)?,
            Fate::Refused => {
                mark_kept(&self.folder, &sink, id, &kept.passed)?;
                kept.count += 1;
            }
        }
        kept.passed.clear();
        Ok(())
    }

    fn has_several_sinks(&self) -> bool {
        self.to.is_none()
    }

    fn position(&self) -> Option<String> {
        None
    }

    fn remarks(&self) -> Vec<String> {
        let remark = |count: u64, text: &str| (count > 0).then(|| format!("{count} dead letters {text}"));
        [
            remark(self.damaged, "are damaged on disk, and are kept"),
            remark(
                self.strays,
                "are of sinks that the configuration does not have: name another one in --to",
            ),
        ]
        .into_iter()
        .flatten()
        .collect()
    }
}

#[cfg(test)]
mod tests {
    //! Promise: what a choice passes over stays to be sent.

    use super::*;
    use crate::cli::{Cli, Command, ReplayCommand};
    use clap::Parser as _;
    use tidegate_journal::dead_letters::{DEFAULT_MAX, DeadLetter, DeadLetters};
    use tidegate_journal::{Encoding, Meta, Protocol, Signal, Tenant};

    fn letters(dir: &std::path::Path, tenants: &[&str]) {
        let letters = DeadLetters::open(&dir.join("dead-letters"), DEFAULT_MAX).unwrap();
        for tenant in tenants {
            let meta = Meta {
                tenant: Tenant::new(tenant).unwrap(),
                signal: Signal::Logs,
                protocol: Protocol::Otlp,
                encoding: Encoding::Identity,
                items: 1,
                raw_len: 4,
                received_at_ns: 1,
            };
            letters.add(DeadLetter { sink: "up", reason: "no", meta: &meta, body: b"body" }).unwrap();
        }
    }

    /// Takes all letters that these arguments choose, which have these fates, and says whose are left.
    fn settle(dir: &std::path::Path, more: &[&str], fates: &[Fate]) -> Vec<String> {
        let data = dir.to_str().unwrap();
        let line = ["tidegate", "replay", "dead-letters", "--url", "http://gateway", "--data", data];
        let Command::Replay(ReplayCommand::DeadLetters(args)) =
            Cli::try_parse_from(line.iter().chain(more)).unwrap().command
        else {
            panic!("a replay of dead letters")
        };
        let selection = Selection::of(&args.replay, "dead letters", None).unwrap();
        let mut source = DeadLetterSource::open(&args, selection).unwrap();
        for fate in fates {
            assert_eq!(source.next().unwrap().unwrap().to, "up");
            source.settle(*fate).unwrap();
        }
        assert!(source.next().unwrap().is_none());
        let left = read(&dir.join("dead-letters"), false).unwrap();
        left.map(|letter| letter.meta.tenant.as_str().to_owned()).collect()
    }

    #[test]
    fn letters_that_are_passed_over_stay() {
        let dir = tempfile::tempdir().unwrap();
        letters(dir.path(), &["a", "b", "a", "b"]);
        let left = settle(dir.path(), &["--tenant", "b"], &[Fate::Sent, Fate::Refused]);
        assert_eq!(left, ["a", "a", "b"]);
        assert_eq!(settle(dir.path(), &["--until", "2020-01-01T00:00:00Z"], &[]), ["a", "a", "b"]);
        assert_eq!(settle(dir.path(), &["--signal", "traces"], &[]), ["a", "a", "b"]);
        assert_eq!(settle(dir.path(), &[], &[Fate::Sent, Fate::Sent, Fate::Sent]), Vec::<String>::new());
    }
}
