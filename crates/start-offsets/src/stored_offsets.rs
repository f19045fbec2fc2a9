//! The file of start offsets, in the data folder.

use crate::bounded::{self, ReadError};
use crate::prefix::Prefix;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};
use tidegate_files::Access;

/// The file, in the data folder.
const FILE: &str = "files-start-offsets";
/// The first line: format and version.
const HEADER: &str = "tidegate start offsets 1";
/// The most files, which bounds the memory of [`StartOffsets`](crate::StartOffsets).
pub const MOST_FILES: usize = 1 << 17;

/// Where reading of a file starts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredOffset {
    /// The file's path.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub path: Option<String>,
    /// Its device; without device and path, the first bytes alone identify it.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub device: Option<u64>,
    /// Its inode.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub inode: Option<u64>,
    /// Its first bytes.
    pub prefix: Prefix,
    /// The offset, in bytes.
    pub offset: u64,
}

/// Identifies a file: device and inode, or else the path and the first bytes.
type Key = (Option<(u64, u64)>, Option<String>, Option<Prefix>);

impl StoredOffset {
    fn key(&self) -> Key {
        match self.device.zip(self.inode) {
            Some(inode) => (Some(inode), None, None),
            None => (None, self.path.clone(), Some(self.prefix)),
        }
    }
}

/// Where reading of files starts, as it is stored in the data folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredOffsets {
    /// The files, each once.
    pub files: Vec<StoredOffset>,
}

impl StoredOffsets {
    /// Those in the data folder; none where nothing is stored.
    ///
    /// # Errors
    /// When the file cannot be read, or was written by another version.
    pub fn read(data: &Path) -> Result<StoredOffsets, ReadError> {
        let file = data.join(FILE);
        let text = match bounded::read(&file) {
            Ok(text) => text,
            Err(ReadError::Io { error, .. }) if error.kind() == ErrorKind::NotFound => {
                return Ok(StoredOffsets::default());
            }
            Err(error) => return Err(error),
        };
        parsed(&text).map(|files| StoredOffsets { files }).ok_or_else(|| {
            ReadError::format(
                &file,
                "it was not written by this version of tidegate: run `tidegate import checkpoints` again, or remove it to read \
                 files as `start_at` says",
            )
        })
    }

    /// Adds the files of an import, which replace those of earlier imports. Where it has a file twice, the lower offset counts:
    /// lines may come twice then, but none is left out.
    ///
    /// # Errors
    /// When there are more than [`MOST_FILES`]; then nothing is added.
    pub fn add(&mut self, files: Vec<StoredOffset>) -> Result<(), String> {
        let mut added: BTreeMap<Key, StoredOffset> = BTreeMap::new();
        for file in files {
            match added.entry(file.key()) {
                Entry::Occupied(mut other) if file.offset < other.get().offset => {
                    other.insert(file);
                }
                Entry::Occupied(_) => {}
                Entry::Vacant(place) => {
                    place.insert(file);
                }
            }
        }
        let mut all: BTreeMap<Key, StoredOffset> =
            self.files.iter().map(|file| (file.key(), file.clone())).collect();
        all.append(&mut added);
        if all.len() > MOST_FILES {
            return Err(format!(
                "these are checkpoints of {} files, and {MOST_FILES} can be imported",
                all.len()
            ));
        }
        self.files = all.into_values().collect();
        Ok(())
    }

    /// Stores them in the data folder, which is made if it is missing. The file belongs to the owner of the folder.
    ///
    /// # Errors
    /// Those of making the folder and of writing the file.
    pub fn write(&self, data: &Path) -> io::Result<PathBuf> {
        tidegate_files::create_folder(data, Access::Owner)?;
        let mut text = format!("{HEADER}\n");
        for file in &self.files {
            text.push_str(&serde_json::to_string(file)?);
            text.push('\n');
        }
        let file = data.join(FILE);
        tidegate_files::replace(&file, Access::Owner, text.as_bytes())?;
        let (owner, own) = (std::fs::metadata(data)?, std::fs::metadata(&file)?);
        if (owner.uid(), owner.gid()) != (own.uid(), own.gid()) {
            // Written by root for a gateway that runs as another user.
            chown(&file, Some(owner.uid()), Some(owner.gid()))?;
        }
        Ok(file)
    }
}

fn parsed(text: &[u8]) -> Option<Vec<StoredOffset>> {
    let mut lines = std::str::from_utf8(text).ok()?.lines();
    lines.next().filter(|line| *line == HEADER)?;
    let files: Vec<StoredOffset> =
        lines.map(|line| serde_json::from_str(line).ok()).collect::<Option<_>>()?;
    (files.len() <= MOST_FILES).then_some(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(inode: u64, first: &[u8], offset: u64) -> StoredOffset {
        let prefix = Prefix::of(first);
        StoredOffset { path: Some(format!("/{inode}")), device: Some(1), inode: Some(inode), prefix, offset }
    }

    /// A second import replaces offsets of the same files, and keeps the others.
    #[test]
    fn imports_add_up() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        let mut stored = StoredOffsets::read(&data).unwrap();
        let content = StoredOffset { path: None, device: None, inode: None, ..file(0, b"content", 5) };
        stored.add(vec![file(1, b"a", 1), file(2, b"b", 2), content.clone()]).unwrap();
        stored
            .add(vec![file(2, b"b", 21), file(2, b"b", 20), StoredOffset { offset: 6, ..content.clone() }])
            .unwrap();
        stored.write(&data).unwrap();
        let again = StoredOffsets::read(&data).unwrap();
        assert_eq!(again, stored);
        assert_eq!(again.files, [StoredOffset { offset: 6, ..content }, file(1, b"a", 1), file(2, b"b", 20)]);
    }

    #[test]
    fn other_versions_are_refused() {
        for text in [
            "",
            "tidegate start offsets 2\n",
            "tidegate start offsets 1\n{}\n",
            "tidegate start offsets 1\nx\n",
        ] {
            assert_eq!(parsed(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parsed(HEADER.as_bytes()), Some(vec![]));
    }
}
