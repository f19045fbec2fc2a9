//! Looks start offsets up.

use crate::bounded::ReadError;
use crate::prefix::{PREFIX_LEN, Prefix};
use crate::stored_offsets::StoredOffsets;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use xxhash_rust::xxh3::xxh3_64;

/// The start offsets in the data folder. Files are found by device and inode, then by their first bytes with their path, then by
/// their first bytes alone; each only while the file begins with the bytes that it began with when the offset was stored.
///
/// They are for the first time that an input is listed: a file that appears later may begin like one that is gone.
#[derive(Debug, Clone, Default)]
pub struct StartOffsets {
    /// By device and inode, in this order.
    by_inode: Vec<(u64, u64, Start)>,
    /// By the hash of the path, in this order.
    by_path: Vec<(u64, Start)>,
    /// Of files that are known by their first bytes alone: longest first, then by hash.
    by_content: Vec<Start>,
}

#[derive(Debug, Clone, Copy)]
struct Start {
    prefix: Prefix,
    offset: u64,
}

impl StartOffsets {
    /// Those in the data folder; none where nothing is stored.
    ///
    /// # Errors
    /// When the file cannot be read, or was written by another version.
    pub fn read(data: &Path) -> Result<StartOffsets, ReadError> {
        Ok(StartOffsets::of(&StoredOffsets::read(data)?))
    }

    fn of(stored: &StoredOffsets) -> StartOffsets {
        let mut offsets = StartOffsets::default();
        for file in &stored.files {
            let start = Start { prefix: file.prefix, offset: file.offset };
            match (file.device.zip(file.inode), &file.path) {
                (Some((device, inode)), _) => offsets.by_inode.push((device, inode, start)),
                (None, None) => offsets.by_content.push(start),
                (None, Some(_)) => {}
            }
            // Files that are made under one path one after the other often begin alike, but seldom for so long.
            if let Some(path) = file.path.as_ref().filter(|_| file.prefix.len() == PREFIX_LEN) {
                offsets.by_path.push((xxh3_64(path.as_bytes()), start));
            }
        }
        offsets.by_inode.sort_by_key(|(device, inode, _)| (*device, *inode));
        offsets.by_path.sort_by_key(|(path, _)| *path);
        // An empty prefix is that of every file.
        offsets.by_content.retain(|start| !start.prefix.is_empty());
        offsets.by_content.sort_by_key(|start| (usize::MAX - start.prefix.len(), start.prefix.hash()));
        offsets.by_inode.shrink_to_fit();
        offsets.by_path.shrink_to_fit();
        offsets.by_content.shrink_to_fit();
        offsets
    }

    /// The memory that they take, in bytes.
    pub fn bytes(&self) -> usize {
        self.by_inode.capacity() * size_of::<(u64, u64, Start)>()
            + self.by_path.capacity() * size_of::<(u64, Start)>()
            + self.by_content.capacity() * size_of::<Start>()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_inode.is_empty() && self.by_path.is_empty() && self.by_content.is_empty()
    }

    /// The offset at which reading of a file starts: `first` are its first bytes, [`PREFIX_LEN`] or all that it has.
    pub fn find(&self, path: &Path, device: u64, inode: u64, first: &[u8]) -> Option<u64> {
        self.of_inode(device, inode, first)
            .or_else(|| self.of_path(path, first))
            .or_else(|| self.of_content(first))
            .map(|start| start.offset)
    }

    fn of_inode(&self, device: u64, inode: u64, first: &[u8]) -> Option<Start> {
        let at = self
            .by_inode
            .binary_search_by_key(&(device, inode), |(device, inode, _)| (*device, *inode))
            .ok()?;
        let (_, _, start) = self.by_inode.get(at)?;
        start.prefix.is_of(first).then_some(*start)
    }

    fn of_path(&self, path: &Path, first: &[u8]) -> Option<Start> {
        let path = xxh3_64(path.as_os_str().as_bytes());
        let from = self.by_path.partition_point(|(hash, _)| *hash < path);
        let same = self.by_path.iter().skip(from).take_while(|(hash, _)| *hash == path);
        same.map(|(_, start)| *start).find(|start| start.prefix.is_of(first))
    }

    /// Of the files that begin alike, the one with the longest prefix.
    fn of_content(&self, first: &[u8]) -> Option<Start> {
        let mut rest = self.by_content.as_slice();
        while let Some(longest) = rest.first() {
            let len = longest.prefix.len();
            let (same, shorter) = rest.split_at(rest.partition_point(|start| start.prefix.len() == len));
            if let Some(first) = first.get(..len)
                && let Ok(at) =
                    same.binary_search_by_key(&Prefix::of(first).hash(), |start| start.prefix.hash())
            {
                return same.get(at).copied();
            }
            rest = shorter;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stored_offsets::StoredOffset;

    fn stored(path: Option<&str>, inode: Option<u64>, first: &[u8], offset: u64) -> StoredOffset {
        StoredOffset {
            path: path.map(str::to_owned),
            device: inode.map(|_| 1),
            inode,
            prefix: Prefix::of(first),
            offset,
        }
    }

    /// A file is found after a rename, on another device, and by its content; and none that begins otherwise.
    #[test]
    fn finds_a_file() {
        let files = vec![
            stored(Some("/a"), Some(10), b"first of a", 100),
            stored(Some("/long"), Some(12), &[b'x'; 2000], 200),
            stored(Some("/empty"), Some(11), b"", 0),
            stored(None, None, b"content", 7),
            stored(None, None, b"content that is longer", 22),
            stored(None, None, b"", 9),
        ];
        let offsets = StartOffsets::of(&StoredOffsets { files });
        assert!(offsets.bytes() >= 6 * size_of::<Start>());
        let find =
            |path: &str, device, inode, first: &[u8]| offsets.find(Path::new(path), device, inode, first);
        assert_eq!(find("/a", 1, 10, b"first of a, and more"), Some(100));
        assert_eq!(find("/a.1", 1, 10, b"first of a"), Some(100), "it was renamed");
        assert_eq!(find("/a", 2, 99, b"first of a"), None, "a later file may begin so");
        assert_eq!(find("/long", 2, 99, &[b'x'; 1024]), Some(200), "the device has another number");
        assert_eq!(find("/other", 2, 99, &[b'x'; 1024]), None);
        assert_eq!(find("/b", 2, 10, b"first of a"), None);
        assert_eq!(find("/a", 1, 10, b"another"), None, "it was replaced");
        assert_eq!(find("/a", 1, 10, b"first"), None, "it was truncated");
        assert_eq!(find("/empty", 1, 11, b"new lines"), Some(0));
        assert_eq!(find("/x", 1, 1, b"content that is longer, really"), Some(22));
        assert_eq!(find("/x", 1, 1, b"content that"), Some(7));
        assert_eq!(find("/x", 1, 1, b""), None);
    }
}
