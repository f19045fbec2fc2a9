//! The settings of a writer.

use crate::{Error, Retention};
use std::path::PathBuf;
use std::time::Duration;
use tidegate_files::Access;

/// Where to write, in how much memory, and how long to keep it.
#[derive(Debug, Clone)]
pub struct WriterSettings {
    /// The lake's folder; it is created when it is not there.
    pub dir: PathBuf,
    /// All the memory that the writer may hold, in bytes; at least [`Writer::smallest_slice`].
    ///
    /// [`Writer::smallest_slice`]: crate::Writer::smallest_slice
    pub slice: u64,
    /// How old rows may become before their file is closed and they can be read.
    pub file_age: Duration,
    /// How large a file may become, in bytes. It may become larger by what one batch has.
    pub file_bytes: u64,
    /// How long and how much to keep.
    pub retention: Retention,
    /// Names the journal whose sequences are pushed: a part of file names, and what sequences are compared
    /// under. A journal that begins again at 1 needs another name.
    pub node: String,
    /// The readers of the lake in addition to its owner.
    pub access: Access,
}

impl WriterSettings {
    /// A lake at `dir`: files of at most 128 MiB and 60 s.
    pub fn new(dir: impl Into<PathBuf>, slice: u64, node: impl Into<String>) -> WriterSettings {
        WriterSettings {
            dir: dir.into(),
            slice,
            file_age: Duration::from_secs(60),
            file_bytes: 128 << 20,
            retention: Retention::default(),
            node: node.into(),
            access: Access::Owner,
        }
    }

    pub(crate) fn check(&self) -> Result<(), Error> {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
        let fits = (1..=64).contains(&self.node.len()) && self.node.bytes().all(plain);
        if fits { Ok(()) } else { Err(Error::Node(self.node.clone())) }
    }
}
