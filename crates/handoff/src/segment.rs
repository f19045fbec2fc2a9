//! Segments: their names, and their heads.

use crate::address::{ADDRESS_MAX, is_valid};
use crate::totals::{Totals, u16_at, u32_at, u64_at};

/// The length of a head, in bytes.
pub(crate) const HEAD: usize = 512;
/// The version of the layout.
pub(crate) const VERSION: u32 = 1;
const MAGIC: [u8; 4] = [0xF5, b'T', b'G', 0xA1];
const SUFFIX: &str = ".seg";
/// Not read any more, and kept for people.
const DAMAGED: &str = ".damaged";
/// Digits of a number in a name: as many as the largest has.
const DIGITS: usize = 20;
/// The highest number of a segment that is found. None is ever reached by counting.
const NUMBER_MAX: u64 = u64::MAX / 2;
/// Where the address is, behind its length.
const ADDRESS: usize = 50;

/// The name of segment `number` of the member whose files begin with `prefix`.
pub(crate) fn file_name(prefix: &str, number: u64) -> String {
    format!("{prefix}.{number:0DIGITS$}{SUFFIX}")
}

/// The name that it has when it is set aside.
pub(crate) fn damaged_name(prefix: &str, number: u64) -> String {
    format!("{prefix}.{number:0DIGITS$}{DAMAGED}")
}

/// Whether a file was set aside.
pub(crate) fn is_damaged(name: &str) -> bool {
    split(name, DAMAGED).is_some()
}

/// The prefix and the number that the name of a segment says.
pub(crate) fn parse_name(name: &str) -> Option<(&str, u64)> {
    split(name, SUFFIX)
}

fn split<'a>(name: &'a str, suffix: &str) -> Option<(&'a str, u64)> {
    let (prefix, digits) = name.strip_suffix(suffix)?.rsplit_once('.')?;
    let plain = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !plain || prefix.is_empty() {
        return None;
    }
    // There have to be numbers behind it.
    digits.parse().ok().filter(|number| *number <= NUMBER_MAX).map(|number| (prefix, number))
}

/// The first bytes of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SegmentHead {
    pub(crate) key: u64,
    pub(crate) number: u64,
    /// Everything before its first record.
    pub(crate) before: Totals,
    pub(crate) address: String,
}

/// The meaning of the first bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Decoded<T> {
    /// It is whole.
    Whole(T),
    /// It is whole, and of another version.
    OtherVersion(u32),
    /// It is damaged, or was never written to the end.
    Broken,
}

impl<T> Decoded<T> {
    pub(crate) fn whole(self) -> Option<T> {
        if let Decoded::Whole(content) = self { Some(content) } else { None }
    }
}

impl SegmentHead {
    pub(crate) fn encode(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        let len = u16::try_from(self.address.len()).unwrap_or(0);
        let fields: [(usize, &[u8]); 7] = [
            (0, &MAGIC),
            (4, &VERSION.to_le_bytes()),
            (8, &self.key.to_le_bytes()),
            (16, &self.number.to_le_bytes()),
            (24, &self.before.encode()),
            (48, &len.to_le_bytes()),
            (ADDRESS, self.address.as_bytes()),
        ];
        for (at, field) in fields {
            if let Some(place) = bytes.get_mut(at..at + field.len()) {
                place.copy_from_slice(field);
            }
        }
        let (covered, sum) = bytes.split_at_mut(HEAD - 4);
        sum.copy_from_slice(&crc32c::crc32c(covered).to_le_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Decoded<SegmentHead> {
        let Some(bytes) = bytes.first_chunk::<HEAD>() else { return Decoded::Broken };
        let Some((covered, sum)) = bytes.split_last_chunk::<4>() else { return Decoded::Broken };
        if bytes.first_chunk() != Some(&MAGIC) || crc32c::crc32c(covered) != u32::from_le_bytes(*sum) {
            return Decoded::Broken;
        }
        match u32_at(bytes, 4) {
            Some(VERSION) => Self::fields(bytes).map_or(Decoded::Broken, Decoded::Whole),
            version => Decoded::OtherVersion(version.unwrap_or(0)),
        }
    }

    fn fields(bytes: &[u8; HEAD]) -> Option<SegmentHead> {
        let len = usize::from(u16_at(bytes, 48)?).min(ADDRESS_MAX);
        let address = str::from_utf8(bytes.get(ADDRESS..ADDRESS + len)?).ok()?.to_owned();
        Some(SegmentHead {
            key: u64_at(bytes, 8)?,
            number: u64_at(bytes, 16)?,
            before: Totals::decode(bytes.get(24..)?)?,
            address: is_valid(&address).then_some(address)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        let prefix = crate::address::file_prefix("a.b:1");
        for number in [0, 42, NUMBER_MAX] {
            assert_eq!(parse_name(&file_name(&prefix, number)), Some((&*prefix, number)));
            assert_eq!(parse_name(&damaged_name(&prefix, number)), None);
            assert!(is_damaged(&damaged_name(&prefix, number)) && !is_damaged(&file_name(&prefix, number)));
        }
        for other in [
            "",
            ".seg",
            "a.1.seg",
            "lock",
            "cursors.0",
            ".00000000000000000001.seg",
            "a.-0000000000000000001.seg",
        ] {
            assert_eq!(parse_name(other), None, "{other}");
        }
        assert_eq!(parse_name(&file_name("a", NUMBER_MAX + 1)), None);
    }

    #[test]
    fn heads_read_back_and_say_their_version() {
        let head = SegmentHead {
            key: 7,
            number: 42,
            before: Totals { records: 1, items: 2, bytes: 3 },
            address: "a".repeat(ADDRESS_MAX),
        };
        let bytes = head.encode();
        assert_eq!(SegmentHead::decode(&bytes), Decoded::Whole(head));
        for at in 0..HEAD {
            let mut garbled = bytes;
            garbled[at] ^= 4;
            assert_eq!(SegmentHead::decode(&garbled), Decoded::Broken);
            assert_eq!(SegmentHead::decode(&bytes[..at]), Decoded::Broken);
        }
        assert_eq!(SegmentHead::decode(&with_version(bytes, 9)), Decoded::OtherVersion(9));
    }

    fn with_version(mut bytes: [u8; HEAD], version: u32) -> [u8; HEAD] {
        bytes[4..8].copy_from_slice(&version.to_le_bytes());
        let sum = crc32c::crc32c(&bytes[..HEAD - 4]);
        bytes[HEAD - 4..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }
}
