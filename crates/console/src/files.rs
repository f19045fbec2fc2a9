//! `/files`: the files that sources follow. The query of a request, and the answer to it.

use serde::Serialize;
use std::fmt;
use std::pin::Pin;

/// The most files of an answer.
pub const MOST_FILES: usize = 500;
/// The most bytes of text in an answer, but for its first file: as markup or JSON it may become six times as long.
pub const LONGEST_FILES: usize = 48 << 10;
/// Memory of the longest answer, in bytes: the report, and the page made of it. One is made at a time. Those that start sources
/// which follow files set it aside.
pub const FILES_BYTES: usize = 768 << 10;
/// The files of an answer without `limit`.
const USUAL_FILES: usize = 100;
/// The longest pattern and the longest place, in bytes.
const LONGEST_VALUE: usize = 1024;

/// Which files are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesQuery {
    /// Those of this source; `None` for all sources.
    pub source: Option<String>,
    /// Those whose paths match this pattern or contain this text; all if it is empty.
    pub pattern: String,
    /// Which of these are in the answer.
    pub order: FilesOrder,
    /// Most files in the answer: 1 to [`MOST_FILES`].
    pub limit: usize,
}

/// Which of the selected files are in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilesOrder {
    /// Those with the most lag, the largest first.
    Lag,
    /// A page of all, in no order that means anything: the first one, or the one at this place, which an answer has as
    /// [`next`](FilesReport::next).
    Page(Option<String>),
}

/// The files that sources follow.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FilesReport {
    /// The sources that follow files.
    pub sources: Vec<FollowingSource>,
    /// The files.
    pub files: Vec<FollowedFile>,
    /// The place of the next page, if there is one: the parameter `after`.
    pub next: Option<String>,
}

/// A source that follows files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct FollowingSource {
    /// Its name.
    pub name: &'static str,
    /// Files known.
    pub known: u64,
    /// Files that the query selects.
    pub matching: u64,
    /// Bytes of these that are not durable yet.
    pub lag_bytes: u64,
    /// Files without a name that are still open.
    pub held: u64,
    /// Their length: disk space that their deletion has not freed.
    pub held_bytes: u64,
    /// Files that are not read, because `max_files` others are.
    pub untracked: u64,
    /// Paths of the patterns that cannot be read.
    pub unreadable: Vec<UnreadablePath>,
}

/// A path that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct UnreadablePath {
    /// The file or directory.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// A file that a source follows.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct FollowedFile {
    /// The source.
    pub source: &'static str,
    /// Its input.
    pub input: String,
    /// Its path.
    pub path: String,
    /// Its state: `reading`, `idle`, `rotated`, `deleted`, `copy`, `compressed` or `skipped`.
    pub state: &'static str,
    /// How far it is durable, in bytes; decompressed ones for a compressed file.
    pub offset: u64,
    /// Its length in bytes.
    pub size: u64,
    /// Bytes that are not durable yet.
    pub lag_bytes: u64,
    /// Records since it was found.
    pub records: u64,
    /// Records a second, averaged over ten seconds.
    pub records_per_second: f32,
    /// Why it is not read, or could not be read the last time.
    pub reason: Option<String>,
}

/// Files being collected.
pub type FilesFuture<'a> = Pin<Box<dyn Future<Output = Result<FilesReport, FilesError>> + Send + 'a>>;

/// Why there is no answer, in a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilesError {
    /// The query cannot be understood.
    Query(String),
    /// It may work later.
    Later(String),
}

impl fmt::Display for FilesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (FilesError::Query(words) | FilesError::Later(words)) = self;
        f.write_str(words)
    }
}

impl FilesQuery {
    /// The query of a request: `match=*.log&limit=20`.
    ///
    /// # Errors
    /// In a sentence.
    pub fn parse(query: &str) -> Result<FilesQuery, String> {
        let (mut source, mut pattern, mut after) = (None, String::new(), None);
        let (mut sort, mut limit) = (None, USUAL_FILES);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let text = || {
                decoded(value).filter(|value| value.len() <= LONGEST_VALUE).ok_or_else(|| {
                    format!(
                        "the value of `{:.32}` is longer than {LONGEST_VALUE} bytes, or not UTF-8",
                        name.escape_debug()
                    )
                })
            };
            match name {
                "source" => source = Some(text()?).filter(|source| !source.is_empty()),
                "match" => pattern = text()?,
                "after" => after = Some(text()?),
                "sort" if value == "lag" => sort = Some(true),
                "sort" if value == "none" => sort = Some(false),
                "sort" => {
                    return Err("the parameter `sort` is `lag`, or `none` for pages of all files".to_owned());
                }
                "limit" => {
                    let parsed = value.parse().ok().filter(|limit| (1..=MOST_FILES).contains(limit));
                    limit = parsed
                        .ok_or_else(|| format!("the parameter `limit` is a number from 1 to {MOST_FILES}"))?;
                }
                "format" => {}
                _ => {
                    return Err(format!(
                        "unknown parameter `{:.32}`; there are match, source, sort, limit, after, format",
                        name.escape_debug()
                    ));
                }
            }
        }
        let order = match (sort, after) {
            (Some(true), Some(_)) => return Err("`after` needs `sort=none`".to_owned()),
            (_, Some(after)) => FilesOrder::Page(Some(after)),
            (Some(false), None) => FilesOrder::Page(None),
            (Some(true) | None, None) => FilesOrder::Lag,
        };
        Ok(FilesQuery { source, pattern, order, limit })
    }
}

/// A value of a query: `+` and per cent stand for other characters.
fn decoded(value: &str) -> Option<String> {
    let mut bytes = Vec::new();
    let mut rest = value.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
                let (high, low) = (digit(rest.next())?, digit(rest.next())?);
                u8::try_from(high * 16 + low).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_select_files() {
        let query = FilesQuery::parse("match=%2Fvar%2F*.log&source=file&limit=7&format=json").unwrap();
        assert_eq!(query.pattern, "/var/*.log");
        assert_eq!((query.source.as_deref(), query.limit, query.order), (Some("file"), 7, FilesOrder::Lag));
        let query = FilesQuery::parse("after=file%3A8").unwrap();
        assert_eq!(query.order, FilesOrder::Page(Some("file:8".to_owned())));
        assert_eq!(FilesQuery::parse("sort=none").unwrap().order, FilesOrder::Page(None));
        assert_eq!(FilesQuery::parse("").unwrap().limit, USUAL_FILES);
    }

    #[test]
    fn mistakes_are_told() {
        let long = format!("match={}", "a".repeat(2000));
        for bad in
            ["limit=0", "limit=501", "sort=size", "x=1", "match=%ff", "match=%4", &long, "after=a&sort=lag"]
        {
            assert!(FilesQuery::parse(bad).is_err(), "{bad}");
        }
    }
}
