//! A file of addresses: one a line, or a list in JSON or YAML.

use std::io::Read;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tidegate_wire::json::Cursor;

/// The longest file, in bytes: some five thousand URLs.
pub(crate) const LONGEST: u64 = 256 << 10;

/// A file of members cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error("reading the file of members {0}: {1}")]
    Read(PathBuf, std::io::Error),
    /// It is longer than any that makes sense.
    #[error("the file of members {0} is longer than 256 KiB")]
    Length(PathBuf),
    /// It is neither lines of UTF-8 nor a list of strings.
    #[error(
        "the file of members {0}: it has neither one address a line nor a list of addresses in JSON or YAML"
    )]
    Form(PathBuf),
    /// An entry is no address.
    #[error("the file of members {file}: {entry:?}: {reason}")]
    Address {
        /// The file.
        file: PathBuf,
        /// Its text.
        entry: String,
        /// The mistake in it.
        reason: String,
    },
    /// It names no address.
    #[error("the file of members {0} is empty")]
    Empty(PathBuf),
}

/// The identity of a file: it changes when the file is written or replaced.
pub(crate) type Stamp = Option<(SystemTime, u64, u64)>;

/// The stamp of the file at `path` now; that of the file behind it where it is a link, as in a mounted ConfigMap.
pub(crate) fn stamp(path: &Path) -> Stamp {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len(), meta.ino()))
}

/// The addresses in the file, each of which `check` accepts.
///
/// # Errors
/// [`FileError`].
pub(crate) fn read(path: &Path, check: fn(&str) -> Result<(), String>) -> Result<Vec<String>, FileError> {
    let failed = |error| FileError::Read(path.to_owned(), error);
    let file = std::fs::File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    if length > LONGEST {
        return Err(FileError::Length(path.to_owned()));
    }
    let mut text = vec![0; usize::try_from(length).unwrap_or(0)];
    (&file).read_exact(&mut text).map_err(failed)?;
    let form = || FileError::Form(path.to_owned());
    let entries = parse(&text).ok_or_else(form)?;
    for entry in &entries {
        let failed = |reason| FileError::Address { file: path.to_owned(), entry: entry.clone(), reason };
        check(entry).map_err(failed)?;
    }
    if entries.is_empty() {
        return Err(FileError::Empty(path.to_owned()));
    }
    Ok(entries)
}

/// The entries of a file: nothing where it has another form.
fn parse(text: &[u8]) -> Option<Vec<String>> {
    let text = std::str::from_utf8(text).ok()?;
    if text.trim_start().starts_with('[') {
        return json_list(text);
    }
    let mut entries = Vec::new();
    for line in text.lines() {
        entries.extend(entry(line)?);
    }
    Some(entries)
}

/// The entry on a line, of a list in YAML or bare: `Some(None)` where there is none.
fn entry(line: &str) -> Option<Option<String>> {
    let line = line.trim();
    if line.is_empty() || line == "---" || line.starts_with('#') {
        return Some(None);
    }
    let line = line.strip_prefix("- ").unwrap_or(line).trim_start();
    for quote in ['"', '\''] {
        if let Some(rest) = line.strip_prefix(quote) {
            let (quoted, after) = rest.split_once(quote)?;
            let after = after.trim_start();
            return (after.is_empty() || after.starts_with('#')).then(|| Some(quoted.to_owned()));
        }
    }
    let bare = line.find(" #").and_then(|at| line.get(..at)).unwrap_or(line).trim_end();
    // Addresses have no spaces: this is something else.
    (!bare.contains(char::is_whitespace)).then(|| Some(bare.to_owned()))
}

fn json_list(text: &str) -> Option<Vec<String>> {
    let mut cursor = Cursor::new(text.as_bytes());
    let mut entries = Vec::new();
    cursor.expect(b'[').ok()?;
    while !cursor.take(b']') {
        if !entries.is_empty() {
            cursor.expect(b',').ok()?;
        }
        cursor.peek();
        entries.push(std::str::from_utf8(cursor.plain_string()?).ok()?.to_owned());
    }
    cursor.end().ok()?;
    Some(entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_lists_say_the_same() {
        for text in [
            "a:1\nhttp://b/x#y\n",
            "# members\n\n  a:1  \r\nhttp://b/x#y # the second\n",
            "---\n- a:1\n- \"http://b/x#y\" # quoted\n",
            "  - 'a:1'\n  - http://b/x#y",
            "[\"a:1\", \"http://b/x#y\"]",
            "\n[ \"a:1\"\n,\n\"http://b/x#y\" ]\n",
        ] {
            assert_eq!(parse(text.as_bytes()).unwrap(), ["a:1", "http://b/x#y"], "{text:?}");
        }
    }

    #[test]
    fn other_forms_are_refused() {
        for text in ["members: a:1", "- a: b", "[\"a:1\"", "[1]", "[\"a\",]", "\"a", "\"a\" b", "[\"a\"] x"] {
            assert_eq!(parse(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(parse(b"\xff"), None);
        assert!(parse(b"# nobody\n").unwrap().is_empty());
    }
}
