//! Tells files apart: by inode while they are open, by their first and last bytes across restarts and copies.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// How many bytes of the beginning, and before an offset, tell a file apart.
pub(crate) const SAMPLE: usize = 1024;

/// A file of this machine, for as long as it exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// The device that it is on.
    pub device: u64,
    /// Its inode on that device.
    pub inode: u64,
}

impl FileId {
    /// Bytes of a key.
    pub(crate) const KEY: usize = 17;

    pub(crate) fn of(metadata: &Metadata) -> FileId {
        FileId { device: metadata.dev(), inode: metadata.ino() }
    }

    /// The key of its checkpoint, for a source whose keys begin with `kind`.
    pub(crate) fn key(self, kind: u8) -> [u8; FileId::KEY] {
        let mut key = [0; FileId::KEY];
        let (first, rest) = key.split_at_mut(1);
        let (device, inode) = rest.split_at_mut(8);
        first.copy_from_slice(&[kind]);
        device.copy_from_slice(&self.device.to_be_bytes());
        inode.copy_from_slice(&self.inode.to_be_bytes());
        key
    }

    /// The file of a checkpoint's `key`.
    pub(crate) fn from_key(kind: u8, key: &[u8]) -> Option<FileId> {
        let rest = key.strip_prefix(&[kind])?;
        let (device, inode) = rest.split_at_checked(8)?;
        Some(FileId {
            device: u64::from_be_bytes(device.try_into().ok()?),
            inode: u64::from_be_bytes(inode.try_into().ok()?),
        })
    }
}

/// A hash of the first bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub(crate) struct Head {
    pub(crate) hash: u64,
    /// How many bytes, at most [`SAMPLE`].
    pub(crate) len: u16,
}

impl Head {
    /// The head of a file that begins with `bytes`.
    pub(crate) fn of(bytes: &[u8]) -> Head {
        let bytes = bytes.get(..SAMPLE).unwrap_or(bytes);
        Head { hash: xxh3_64(bytes), len: u16::try_from(bytes.len()).unwrap_or_default() }
    }

    /// Whether a file that begins with `bytes` (all of it, or its first [`SAMPLE`]) begins as this one did.
    pub(crate) fn fits(self, bytes: &[u8]) -> bool {
        let first = bytes.get(..usize::from(self.len));
        self.len == 0 || first.is_some_and(|bytes| Head::of(bytes).hash == self.hash)
    }

    /// Whether it can no longer change while the file is only appended to.
    pub(crate) fn is_full(self) -> bool {
        usize::from(self.len) == SAMPLE
    }
}

/// A hash of the last bytes before an offset.
pub(crate) fn tail_hash(bytes: &[u8]) -> u64 {
    xxh3_64(bytes)
}

/// A hash of a path.
pub(crate) fn path_hash(path: &Path) -> u32 {
    let [a, b, c, d, ..] = xxh3_64(path.as_os_str().as_encoded_bytes()).to_be_bytes();
    u32::from_be_bytes([a, b, c, d])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A head fits the file that it was taken from however much that grows, and no file that begins differently.
    #[test]
    fn fits_what_was_appended_to() {
        let long = vec![b'a'; 5000];
        for len in [0, 1, 100, 1023, 1024, 1025, 4999] {
            let head = Head::of(&long[..len]);
            assert!(head.fits(&long), "{len}");
            assert_eq!(head.is_full(), len >= 1024);
            assert_eq!(head.fits(&vec![b'b'; 5000]), len == 0);
        }
        assert!(!Head::of(b"abc").fits(b"ab"));
    }

    #[test]
    fn keys_name_files() {
        let id = FileId { device: 7, inode: u64::MAX };
        assert_eq!(FileId::from_key(b'f', &id.key(b'f')), Some(id));
        assert_eq!(FileId::from_key(b'k', &id.key(b'f')), None);
        assert_eq!(FileId::from_key(b'f', b"f123"), None);
    }
}
