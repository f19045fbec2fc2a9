//! Reads whole files against a bound.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// The bound on files of other programs, in bytes. A Filebeat registry of 100,000 files has some 40 MiB.
pub(crate) const LONGEST: u64 = 512 << 20;

/// Why checkpoints cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The file cannot be read.
    #[error("reading {}: {error}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error.
        error: io::Error,
    },
    /// The file is no such file.
    #[error("{}: {what}", path.display())]
    Format {
        /// The file or folder.
        path: PathBuf,
        /// The error, and its remedy.
        what: String,
    },
}

impl ReadError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> ReadError {
        let path = path.to_owned();
        move |error| ReadError::Io { path, error }
    }

    pub(crate) fn format(path: &Path, what: impl Into<String>) -> ReadError {
        ReadError::Format { path: path.to_owned(), what: what.into() }
    }
}

/// The content of the file at `path`.
///
/// # Errors
/// When it cannot be read, or is longer than [`LONGEST`].
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(ReadError::io(path))?;
    #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(ReadError::io(path))?;
    if bytes.len() as u64 > LONGEST {
        return Err(ReadError::format(path, format!("it is longer than {} MiB", LONGEST >> 20)));
    }
    Ok(bytes)
}

/// Adds the path to an error about the content of a file.
pub(crate) fn of_file<T>(path: &Path, result: Result<T, String>) -> Result<T, ReadError> {
    result.map_err(|what| ReadError::format(path, what))
}
