//! Reads the pairs of one bucket of a bbolt database, in which the Collector's `file_storage` keeps its data.
//!
//! Promise: a damaged file is an error, and takes no more than a pass over its pages. Source: `internal/common` of
//! go.etcd.io/bbolt. Integers are little-endian, as on every machine that the Collector runs on today.

const MAGIC: u32 = 0xED0C_DAED;
const VERSION: u32 = 2;
const PAGE_HEADER: usize = 16;
const ELEMENT: usize = 16;
const META: u16 = 0x04;
const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
/// A leaf's element that is a bucket.
const BUCKET: u32 = 0x01;
const BUCKET_HEADER: usize = 16;
const DEEPEST: usize = 64;
/// Page sizes of systems, in the order in which they are tried for the second meta page.
const PAGE_SIZES: [usize; 5] = [4096, 8192, 16384, 32768, 65536];

type Result<T> = std::result::Result<T, String>;

/// A key and its value.
pub(crate) type Pair<'a> = (&'a [u8], &'a [u8]);

/// The pairs of the bucket `name` of a database's file; `None` if there is no such bucket.
///
/// # Errors
/// When it is no such database, or damaged.
pub(crate) fn bucket<'a>(bytes: &'a [u8], name: &[u8]) -> Result<Option<Vec<Pair<'a>>>> {
    let meta = newest_meta(bytes).ok_or("it is no bbolt database")?;
    let database = Database { bytes, page_size: meta.page_size };
    let mut found = None;
    database.walk(Tree::Page(meta.root), &mut |key, value, flags| {
        if key == name && flags & BUCKET != 0 {
            found = Some(value);
        }
    })?;
    let Some(bucket) = found else { return Ok(None) };
    let root = u64_at(bucket, 0).ok_or_else(damaged)?;
    // A small bucket is a page inside its value.
    let tree = match root {
        0 => Tree::Inline(bucket.get(BUCKET_HEADER..).ok_or_else(damaged)?),
        page => Tree::Page(page),
    };
    let mut pairs = Vec::new();
    database.walk(tree, &mut |key, value, flags| {
        if flags & BUCKET == 0 {
            pairs.push((key, value));
        }
    })?;
    Ok(Some(pairs))
}

struct Meta {
    page_size: usize,
    root: u64,
    transaction: u64,
}

/// The meta page with the highest transaction, of those whose checksums are right.
fn newest_meta(bytes: &[u8]) -> Option<Meta> {
    let first = meta(bytes, 0);
    let sizes = first.as_ref().map_or(&PAGE_SIZES[..], |meta| std::slice::from_ref(&meta.page_size));
    let second = sizes.iter().find_map(|size| meta(bytes, *size));
    match (first, second) {
        (Some(first), Some(second)) if second.transaction > first.transaction => Some(second),
        (Some(first), _) => Some(first),
        (None, second) => second,
    }
}

fn meta(bytes: &[u8], at: usize) -> Option<Meta> {
    let page = bytes.get(at..)?;
    let meta = page.get(PAGE_HEADER..PAGE_HEADER + 64)?;
    let is_meta = u16_at(page, 8)? & META != 0 && u32_at(meta, 0)? == MAGIC && u32_at(meta, 4)? == VERSION;
    let sum = u64_at(meta, 56)?;
    let is_intact = sum == fnv1a(meta.get(..56)?);
    let page_size = usize::try_from(u32_at(meta, 8)?).ok().filter(|size| *size >= 512)?;
    (is_meta && is_intact).then_some(Meta {
        page_size,
        root: u64_at(meta, 16)?,
        transaction: u64_at(meta, 48)?,
    })
}

/// The hash FNV-1a.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

/// A tree's root.
enum Tree<'a> {
    Page(u64),
    Inline(&'a [u8]),
}

struct Database<'a> {
    bytes: &'a [u8],
    page_size: usize,
}

impl<'a> Database<'a> {
    /// A page with those that continue it.
    fn page(&self, number: u64) -> Result<&'a [u8]> {
        let at = usize::try_from(number).ok().and_then(|number| number.checked_mul(self.page_size));
        let rest = at.and_then(|at| self.bytes.get(at..)).ok_or_else(damaged)?;
        let continued = u32_at(rest, 12).ok_or_else(damaged)? as usize;
        let len = continued.checked_add(1).and_then(|pages| pages.checked_mul(self.page_size));
        len.and_then(|len| rest.get(..len)).ok_or_else(damaged)
    }

    /// Calls `each` with the key, value and flags of each element.
    fn walk(&self, tree: Tree<'a>, each: &mut dyn FnMut(&'a [u8], &'a [u8], u32)) -> Result<()> {
        let mut open = Vec::new();
        let mut next = Some(match tree {
            Tree::Page(number) => (self.page(number)?, 0),
            Tree::Inline(page) => (page, 0),
        });
        let mut left = self.bytes.len() / self.page_size + 1;
        while let Some((page, depth)) = next {
            // Each page is in one place of one tree.
            left = left.checked_sub(1).ok_or_else(damaged)?;
            let flags = u16_at(page, 8).ok_or_else(damaged)?;
            let count = usize::from(u16_at(page, 10).ok_or_else(damaged)?);
            for index in 0..count {
                let element = page.get(PAGE_HEADER + index * ELEMENT..).ok_or_else(damaged)?;
                if flags & LEAF != 0 {
                    let (key, value, flags) = leaf(element).ok_or_else(damaged)?;
                    each(key, value, flags);
                } else if flags & BRANCH != 0 && depth < DEEPEST {
                    open.push((u64_at(element, 8).ok_or_else(damaged)?, depth + 1));
                } else {
                    return Err(damaged());
                }
            }
            next = match open.pop() {
                Some((number, depth)) => Some((self.page(number)?, depth)),
                None => None,
            };
        }
        Ok(())
    }
}

/// The key, value and flags of a leaf's element, whose position counts from the element.
fn leaf(element: &[u8]) -> Option<(&[u8], &[u8], u32)> {
    let length = |at| Some(u32_at(element, at)? as usize);
    let (flags, at, key, value) = (u32_at(element, 0)?, length(4)?, length(8)?, length(12)?);
    let (key, rest) = element.get(at..)?.split_at_checked(key)?;
    Some((key, rest.get(..value)?, flags))
}

fn damaged() -> String {
    "the database is damaged".to_owned()
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn meta_page(transaction: u64, root: u64) -> Vec<u8> {
        let mut page = vec![0; PAGE_HEADER];
        page[8] = META as u8;
        for word in [MAGIC, VERSION, 4096, 0] {
            page.extend_from_slice(&word.to_le_bytes());
        }
        for word in [root, 0, 0, 0, transaction] {
            page.extend_from_slice(&word.to_le_bytes());
        }
        let sum = fnv1a(&page[PAGE_HEADER..]);
        page.extend_from_slice(&sum.to_le_bytes());
        page.resize(4096, 0);
        page
    }

    /// A leaf with these elements: flags, key, value.
    fn leaf_page(elements: &[(u32, &[u8], &[u8])]) -> Vec<u8> {
        let mut page = vec![0; PAGE_HEADER];
        page[8] = LEAF as u8;
        page[10] = elements.len() as u8;
        let mut at = elements.len() * ELEMENT;
        for (index, (flags, key, value)) in elements.iter().enumerate() {
            for word in [*flags, (at - index * ELEMENT) as u32, key.len() as u32, value.len() as u32] {
                page.extend_from_slice(&word.to_le_bytes());
            }
            at += key.len() + value.len();
        }
        elements.iter().for_each(|(_, key, value)| page.extend_from_slice(&[*key, *value].concat()));
        page
    }

    fn padded(mut page: Vec<u8>) -> Vec<u8> {
        page.resize(4096, 0);
        page
    }

    /// A bucket inside its value, and one with a page of its own; the newer meta page counts.
    #[test]
    fn buckets() {
        let inline = [vec![0; BUCKET_HEADER], leaf_page(&[(0, b"k", b"v")])].concat();
        let mut own = vec![0; BUCKET_HEADER];
        own[0] = 3;
        let root = padded(leaf_page(&[(BUCKET, b"default", &inline), (BUCKET, b"own", &own)]));
        let pairs = padded(leaf_page(&[(0, b"a", b"1"), (0, b"b", b"2")]));
        let empty = padded(leaf_page(&[]));
        let bytes = [meta_page(1, 4), meta_page(2, 2), root, pairs, empty].concat();
        assert_eq!(bucket(&bytes, b"default").unwrap().unwrap(), [(&b"k"[..], &b"v"[..])]);
        assert_eq!(bucket(&bytes, b"own").unwrap().unwrap(), [(&b"a"[..], &b"1"[..]), (b"b", b"2")]);
        assert_eq!(bucket(&bytes, b"none").unwrap(), None);
        // Without the first meta page, the second is found by the usual lengths of pages.
        let torn = [vec![0; 4096], bytes[4096..].to_vec()].concat();
        assert!(bucket(&torn, b"own").unwrap().is_some());
        assert!(bucket(&[0; 8192], b"own").is_err());
    }

    proptest! {
        /// Whatever the pages are, reading ends.
        #[test]
        fn damaged_databases_are_errors(mut page in proptest::collection::vec(any::<u8>(), 4096), flags in 1_u8..3) {
            page[8..16].copy_from_slice(&[flags, 0, 4, 0, 0, 0, 0, 0]);
            let bytes = [meta_page(1, 2), meta_page(2, 2), page].concat();
            let _ = bucket(&bytes, b"default");
        }
    }
}
