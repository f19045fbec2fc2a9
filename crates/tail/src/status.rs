//! The status of a tailer's files.

use crate::glob::{Glob, InvalidGlob};
use std::path::Path;
use tokio::sync::oneshot;

/// The state of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileState {
    /// It has bytes that are not durable yet.
    Reading,
    /// It is read to its end.
    Idle,
    /// No pattern has it any more; it is held until its writer has surely ended.
    Rotated,
    /// It was deleted, and held as such: its disk space is not free.
    Deleted,
    /// It is a copy of a file that is read.
    Copy,
    /// It is compressed, and being read or read.
    Compressed,
    /// It is not read.
    Skipped,
}

impl FileState {
    /// The word for it.
    pub fn as_str(self) -> &'static str {
        match self {
            FileState::Reading => "reading",
            FileState::Idle => "idle",
            FileState::Rotated => "rotated",
            FileState::Deleted => "deleted",
            FileState::Copy => "copy",
            FileState::Compressed => "compressed",
            FileState::Skipped => "skipped",
        }
    }
}

/// One file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileStatus {
    /// Its path.
    pub path: String,
    /// Its input.
    pub input: String,
    /// How far it is durable, in bytes; decompressed ones for a compressed file.
    pub offset: u64,
    /// Its length in bytes.
    pub size: u64,
    /// Bytes that are not durable yet; 0 for a compressed file.
    pub lag: u64,
    /// Records since it was found.
    pub records: u64,
    /// Records a second, averaged over ten seconds.
    pub rate: f32,
    /// Its state.
    pub state: FileState,
    /// Why it is not read, or could not be read the last time.
    pub reason: Option<String>,
}

/// A path that cannot be read, so that it is not among the files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadablePath {
    /// The path of a file or directory.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// Asks a tailer for its files. The answer is bounded; [`Order::Number`] gives all of them in pages.
#[derive(Debug)]
pub struct StatusRequest {
    /// Which files.
    pub filter: PathFilter,
    /// Which of these are in the answer.
    pub order: Order,
    /// Most files in the answer; with 0 it has only the totals.
    pub most: usize,
    /// Most bytes of text in the answer, but for its first file.
    pub most_text: usize,
    /// Takes the answer.
    pub answer: oneshot::Sender<TailStatus>,
}

/// The order of the files in an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// Those with the most lag first.
    Lag,
    /// By their numbers, from this one on. A file keeps its number while it is known, so each file that is known all the time
    /// comes once in the pages.
    Number(u32),
}

/// The files of a tailer, or a page of them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TailStatus {
    /// Files that match the filter, as many as the request allows.
    pub files: Vec<FileStatus>,
    /// The number at which the next page begins, if there is one.
    pub next: Option<u32>,
    /// How many files match.
    pub matching: u64,
    /// Bytes of the matching files that are not durable yet.
    pub lag: u64,
    /// How many files are known.
    pub known: u64,
    /// Files without a name that are still open.
    pub held: u64,
    /// Their length in bytes: disk space that their deletion has not freed.
    pub held_bytes: u64,
    /// Files of the patterns that are not read, because `max_files` others are.
    pub untracked: u64,
    /// Paths that cannot be read, at most 32.
    pub unreadable: Vec<UnreadablePath>,
}

/// Selects files by their paths.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum PathFilter {
    /// All.
    #[default]
    Any,
    /// Those whose paths contain a text.
    Containing(String),
    /// Those whose paths match a pattern.
    Matching(Vec<Glob>),
}

impl PathFilter {
    /// A pattern if it has wildcards, otherwise a text that the path contains. A pattern that does not begin with a slash
    /// matches the end of a path.
    ///
    /// # Errors
    /// When it is no pattern.
    pub fn parse(text: &str) -> Result<PathFilter, InvalidGlob> {
        if text.is_empty() {
            return Ok(PathFilter::Any);
        }
        if !text.contains(['*', '?', '[', '{']) {
            return Ok(PathFilter::Containing(text.to_owned()));
        }
        let whole = if text.starts_with('/') { text.to_owned() } else { format!("/**/{text}") };
        Glob::parse(&whole).map(PathFilter::Matching)
    }

    /// Whether it selects `path`.
    pub fn selects(&self, path: &Path) -> bool {
        match self {
            PathFilter::Any => true,
            PathFilter::Containing(text) => path.to_string_lossy().contains(text),
            PathFilter::Matching(globs) => globs.iter().any(|glob| glob.matches(path)),
        }
    }
}

/// Paths that could not be read when they were listed the last time.
#[derive(Debug, Default)]
pub(crate) struct UnreadablePaths {
    /// Those of the last listing.
    listed: Vec<UnreadablePath>,
    /// Those of the listing under way.
    found: Vec<UnreadablePath>,
}

impl UnreadablePaths {
    /// Most paths that are remembered.
    pub(crate) const MOST: usize = 32;

    /// Adds a path; says whether it was unknown.
    pub(crate) fn add(&mut self, path: &Path, reason: String) -> bool {
        let path = path.to_string_lossy().into_owned();
        let is_known = self.iter().any(|known| known.path == path);
        let has_room = self.found.len() < UnreadablePaths::MOST;
        if has_room && self.found.iter().all(|known| known.path != path) {
            self.found.push(UnreadablePath { path, reason });
        }
        // Beyond that many they are counted only: the log is not filled with them.
        !is_known && has_room
    }

    /// A listing is complete: paths that it could read are forgotten.
    pub(crate) fn end_listing(&mut self) {
        self.listed = std::mem::take(&mut self.found);
    }

    /// All of them, some perhaps twice.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &UnreadablePath> {
        self.listed.iter().chain(&self.found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_pattern_or_a_part_of_the_path() {
        let selects = |text: &str, path: &str| PathFilter::parse(text).unwrap().selects(Path::new(path));
        assert!(selects("", "/var/log/a.log"));
        assert!(selects("log/a", "/var/log/a.log"));
        assert!(!selects("log/b", "/var/log/a.log"));
        assert!(selects("*.log", "/var/log/a.log"));
        assert!(selects("/var/*/a.{log,txt}", "/var/log/a.log"));
        assert!(!selects("/var/*.log", "/var/log/a.log"));
        assert!(PathFilter::parse("[a").is_err());
    }

    /// A path is told once, and forgotten when a listing could read it.
    #[test]
    fn unreadable_paths_are_those_of_the_last_listing() {
        let mut paths = UnreadablePaths::default();
        assert!(paths.add(Path::new("/a"), "denied".to_owned()));
        assert!(!paths.add(Path::new("/a"), "denied".to_owned()));
        paths.end_listing();
        assert!(!paths.add(Path::new("/a"), "denied".to_owned()), "still known");
        paths.end_listing();
        assert_eq!(paths.iter().count(), 1);
        paths.end_listing();
        assert_eq!(paths.iter().count(), 0);
        for n in 0..1000 {
            paths.add(Path::new(&format!("/{n}")), String::new());
        }
        assert_eq!(paths.iter().count(), UnreadablePaths::MOST);
    }
}
