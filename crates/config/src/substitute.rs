//! `${NAME}`, `${NAME:-default}`, `${file:PATH}` and `$$` in scalar values.
//!
//! `$1` and `${1}` stay as they are: in the replacement of a regular expression they are groups, as in Prometheus' files. No
//! variable has such a name.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;

use crate::error::quote;

/// Looks up a variable; usually in the process's environment.
pub(crate) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Reads a file's content by its path.
pub(crate) type Files<'a> = &'a dyn Fn(&str) -> Result<String, FileError>;

/// The sources of substituted values.
#[derive(Clone, Copy)]
pub(crate) struct Substitutions<'a> {
    pub(crate) environment: Environment<'a>,
    pub(crate) files: Files<'a>,
}

/// The values that references stand for. They may be secrets wherever they stand, so `Debug` does not show them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Substituted {
    /// The values of environment variables, without defaults: those stand in the configuration.
    pub variables: Vec<String>,
    /// The contents of files.
    pub contents: Vec<String>,
    /// The paths of these files.
    pub(crate) files: Vec<String>,
}

impl Substituted {
    pub(crate) fn extend(&mut self, more: Substituted) {
        self.variables.extend(more.variables);
        self.contents.extend(more.contents);
        self.files.extend(more.files);
    }

    /// Each once.
    pub(crate) fn sorted(mut self) -> Substituted {
        for values in [&mut self.variables, &mut self.contents, &mut self.files] {
            values.sort_unstable();
            values.dedup();
        }
        self
    }
}

impl fmt::Debug for Substituted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "values of {} variables and {} files", self.variables.len(), self.contents.len())
    }
}

/// Why a file cannot be read, in words that do not quote its content.
pub(crate) struct FileError(String);

/// The prefix of a reference to a file.
const FILE: &str = "file:";

/// The longest value after substitution, in bytes.
pub(crate) const LONGEST_VALUE: usize = 64 << 10;

/// Why a value cannot be substituted.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SubstitutionError {
    pub(crate) message: String,
    pub(crate) help: String,
    /// The reference at fault, as bytes of the value.
    pub(crate) at: Range<usize>,
}

/// A file's content without trailing line ends: editors add one, and no secret has one.
pub(crate) fn read_file(path: &str) -> Result<String, FileError> {
    let unreadable = |error: io::Error| FileError(error.to_string());
    // Reading a pipe could block.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(FileError("it is not a file".to_owned()));
    }
    let mut bytes = Vec::new();
    #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
    File::open(path)
        .and_then(|file| file.take(LONGEST_VALUE as u64 + 1).read_to_end(&mut bytes))
        .map_err(unreadable)?;
    if bytes.len() > LONGEST_VALUE {
        return Err(FileError(format!("it is longer than {LONGEST_VALUE} bytes")));
    }
    let text = String::from_utf8(bytes).map_err(|_| FileError("it is not UTF-8".to_owned()))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Reads no file: for texts that are not the configuration of this machine.
pub(crate) fn no_file(_path: &str) -> Result<String, FileError> {
    Err(FileError("files are not read here".to_owned()))
}

/// The value with every reference replaced; appends what was inserted to `inserted`. The value of a variable and
/// the content of a file are inserted as they are: neither searched for further references nor read as YAML.
pub(crate) fn substitute(
    value: &str,
    outside: Substitutions<'_>,
    inserted: &mut Substituted,
) -> Result<String, SubstitutionError> {
    let mut out = String::new();
    let mut rest = value;
    while let Some(dollar) = rest.find('$') {
        let (plain, from_dollar) = rest.split_at(dollar);
        out.push_str(plain);
        let start = value.len() - from_dollar.len();
        if let Some(after) = from_dollar.strip_prefix("$$") {
            out.push('$');
            rest = after;
        } else if let Some(inside) = from_dollar.strip_prefix("${") {
            let Some((reference, after)) = inside.split_once('}') else {
                return Err(unclosed(start..value.len()));
            };
            rest = after;
            let at = start..value.len() - rest.len();
            match reference.strip_prefix(FILE) {
                None if is_group(reference) => out.push_str(value.get(at).unwrap_or_default()),
                Some(path) => {
                    let content = (outside.files)(path).map_err(|reason| unread(path, &reason, at))?;
                    out.push_str(&content);
                    inserted.contents.push(content);
                    inserted.files.push(path.to_owned());
                }
                None => inserted.variables.extend(resolve(reference, at, outside.environment, &mut out)?),
            }
        } else {
            out.push('$');
            rest = from_dollar.strip_prefix('$').unwrap_or_default();
        }
        if out.len() > LONGEST_VALUE {
            return Err(too_long(start..value.len()));
        }
    }
    out.push_str(rest);
    Ok(out)
}

/// Appends the value of a variable, or its default. Returns the value.
fn resolve(
    reference: &str,
    at: Range<usize>,
    environment: Environment<'_>,
    out: &mut String,
) -> Result<Option<String>, SubstitutionError> {
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    if !is_name(name) {
        let message = "this is not a valid reference to an environment variable".to_owned();
        let help = "write `${NAME}` or `${NAME:-default}`, with letters, digits and `_` in the name, \
                    `${file:PATH}` for the contents of a file, or `$$` for a dollar sign";
        return Err(SubstitutionError { message, help: help.to_owned(), at });
    }
    match (environment(name), default) {
        // As in a shell, the default also stands in for a variable that is set to nothing.
        (Some(held), default) if default.is_none() || !held.is_empty() => {
            out.push_str(&held);
            Ok(Some(held))
        }
        (_, Some(default)) => {
            out.push_str(default);
            Ok(None)
        }
        (_, None) => {
            let message = format!("the environment variable `{name}` is not set");
            let help = format!("set it, or give a default: `${{{name}:-default}}`");
            Err(SubstitutionError { message, help, at })
        }
    }
}

fn unread(path: &str, reason: &FileError, at: Range<usize>) -> SubstitutionError {
    let message = format!("the file {} cannot be read: {}", quote(path), reason.0);
    SubstitutionError { message, help: "check the path and its permissions".to_owned(), at }
}

/// Whether `${reference}` is a group of a regular expression.
fn is_group(reference: &str) -> bool {
    !reference.is_empty() && reference.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn unclosed(at: Range<usize>) -> SubstitutionError {
    let message = "`${` has no closing `}`".to_owned();
    SubstitutionError { message, help: "close it, or write `$$` for a dollar sign".to_owned(), at }
}

fn too_long(at: Range<usize>) -> SubstitutionError {
    let message = format!("the value is longer than {LONGEST_VALUE} bytes after substitution");
    SubstitutionError { message, help: "set the variable to a shorter value".to_owned(), at }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "HOST" => Some("prometheus".to_owned()),
            "EMPTY" => Some(String::new()),
            "SLY" => Some("${HOST}: {a: b}".to_owned()),
            _ => None,
        }
    }

    fn files(path: &str) -> Result<String, FileError> {
        match path {
            "/run/token" => Ok("s3cret".to_owned()),
            _ => Err(FileError("there is none".to_owned())),
        }
    }

    fn substitute(value: &str, environment: Environment<'_>) -> Result<String, SubstitutionError> {
        super::substitute(value, Substitutions { environment, files: &files }, &mut Substituted::default())
    }

    #[test]
    fn replaces_references_and_leaves_the_rest() {
        for (value, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("http://${HOST}:9090", "http://prometheus:9090"),
            ("${HOST}${HOST}", "prometheusprometheus"),
            ("${EMPTY}", ""),
            ("${EMPTY:-x}", "x"),
            ("${NONE:-}", ""),
            ("${NONE:-a:-b}", "a:-b"),
            ("$${HOST}", "${HOST}"),
            ("${1}-$2 ${10}", "${1}-$2 ${10}"),
            ("$$$$", "$$"),
            ("${1}-$1-$$1-$${1}-${10}${HOST}", "${1}-$1-$1-${1}-${10}prometheus"),
            ("5$ and $HOST$", "5$ and $HOST$"),
            ("${SLY}", "${HOST}: {a: b}"),
            ("é${HOST}é", "éprometheusé"),
            ("Bearer ${file:/run/token}", "Bearer s3cret"),
        ] {
            assert_eq!(substitute(value, &environment).as_deref(), Ok(expected), "{value}");
        }
    }

    /// Defaults stand in the configuration, where everybody reads them.
    #[test]
    fn lists_what_comes_from_outside() {
        let mut inserted = Substituted::default();
        let value = "http://${HOST}/${NONE:-plain}/${file:/run/token}?$${HOST}";
        super::substitute(value, Substitutions { environment: &environment, files: &files }, &mut inserted)
            .unwrap();
        assert_eq!(
            (&*inserted.variables, &*inserted.contents),
            (&["prometheus".to_owned()][..], &["s3cret".to_owned()][..])
        );
        assert_eq!(inserted.files, ["/run/token"]);
        assert_eq!(format!("{inserted:?}"), "values of 1 variables and 1 files");
    }

    #[test]
    fn says_which_reference_cannot_be_replaced() {
        for (value, at) in
            [("a${NONE}b", 1..8), ("${HOST", 0..6), ("x${}", 1..4), ("${1A}", 0..5), ("b${file:/x}", 1..11)]
        {
            assert_eq!(substitute(value, &environment).map_err(|error| error.at), Err(at), "{value}");
        }
    }

    #[test]
    fn a_value_cannot_grow_beyond_its_bound() {
        let long = |_: &str| Some("x".repeat(LONGEST_VALUE / 2));
        assert!(substitute("${A}${A}", &long).is_ok());
        assert!(substitute("${A}${A}${A}", &long).is_err());
    }

    #[test]
    fn a_file_is_read_without_its_last_line_end_and_within_bounds() {
        let folder = tempfile::tempdir().unwrap();
        let read = |content: &[u8]| {
            let path = folder.path().join("secret");
            std::fs::write(&path, content).unwrap();
            read_file(path.to_str().unwrap()).map_err(|FileError(reason)| reason)
        };
        assert_eq!(read(b"hunter2\n").as_deref(), Ok("hunter2"));
        assert_eq!(read(b"hunter2\r\n").as_deref(), Ok("hunter2"));
        assert_eq!(read(b" two\nlines").as_deref(), Ok(" two\nlines"));
        for content in [&b"\xffhunter2"[..], &vec![b'x'; LONGEST_VALUE + 1]] {
            let reason = read(content).unwrap_err();
            assert!(!reason.contains("hunter2") && !reason.contains("xx"), "{reason}");
        }
        assert!(read_file(folder.path().to_str().unwrap()).is_err(), "a folder is none");
        assert!(read_file("/nonexistent").is_err());
    }
}
