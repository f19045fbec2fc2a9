//! The errors, as sentences.

use std::path::{Path, PathBuf};

/// Why the lake could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The operating system said no.
    #[error("{doing} `{}`: {source}", path.display())]
    Io {
        /// The operation: "writing".
        doing: &'static str,
        /// To which file or folder.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// Parquet could not encode or decode.
    #[error("{doing} `{}`: {source}", path.display())]
    Parquet {
        /// The operation.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// The error from parquet.
        source: parquet::errors::ParquetError,
    },
    /// Columns could not be put together.
    #[error("building the columns of a row group: {0}")]
    Columns(#[from] arrow::error::ArrowError),
    /// The slice of memory is too small.
    #[error("the lake writer was given {given} bytes of memory and needs at least {smallest}: give it more")]
    Slice {
        /// The given size, in bytes.
        given: u64,
        /// The least that it works in, in bytes.
        smallest: u64,
    },
    /// The node's name cannot be part of a file name.
    #[error("the lake's node name `{0}` must be 1 to 64 letters, digits, `_`, `-` or `.`")]
    Node(String),
    /// Another writer has this lake open.
    #[error("the lake `{}` is being written by another process: stop it, or use another folder", .0.display())]
    Locked(PathBuf),
    /// A file that was just written does not read back as it was written.
    #[error("`{}` does not read back as written ({what}): the disk or its file system is damaged", path.display())]
    ReadBack {
        /// The file.
        path: PathBuf,
        /// The difference.
        what: String,
    },
    /// A file of the lake is not as it was committed.
    #[error("`{}` is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The difference.
        what: String,
    },
    /// A text is not the position of a replay.
    #[error(
        "cannot read `{0}` as the position of a replay: give the line that a replay of this version wrote, or none to begin anew"
    )]
    Position(String),
    /// The position of a replay is of another table.
    #[error("the position `{position}` is not of a replay of {table}: replay its own table, or begin anew")]
    PositionTable {
        /// The position.
        position: String,
        /// The table that is to be replayed.
        table: &'static str,
    },
    /// The lake does not have the file that a position names, but others of its hour.
    #[error(
        "the lake has no such file as the position `{position}` names, but others of that hour: begin anew, or with a later hour"
    )]
    PositionFile {
        /// The position.
        position: String,
    },
    /// An earlier error made the writer forget what it had not committed.
    #[error("the lake writer failed before: call `recover` and push again from the sequence that it names")]
    Failed,
    /// The query asks for a column that the table does not have.
    #[error("the table {table} has no column `{column}`; it has: {known}")]
    Column {
        /// The table's name.
        table: &'static str,
        /// The column that was asked for.
        column: String,
        /// All that there are.
        known: String,
    },
    /// The query asks for what rows of the table do not have.
    #[error("the table {table} has no {what}: remove it from the query, or query another table")]
    Condition {
        /// The requested item.
        what: &'static str,
        /// The table's name.
        table: &'static str,
    },
    /// A label matcher cannot be read.
    #[error("cannot read the label matcher `{0}`: write `name=value` or `name!=value`")]
    Matcher(String),
    /// Rows could not be handed on.
    #[error("writing rows out: {0}")]
    Output(#[source] std::io::Error),
}

impl Error {
    pub(crate) fn io(doing: &'static str, path: &Path) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_path_buf();
        move |source| Error::Io { doing, path, source }
    }

    pub(crate) fn parquet(
        doing: &'static str,
        path: &Path,
    ) -> impl FnOnce(parquet::errors::ParquetError) -> Error {
        let path = path.to_path_buf();
        move |source| Error::Parquet { doing, path, source }
    }

    /// Whether it says that a file is not there.
    pub(crate) fn is_missing(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound)
    }
}
