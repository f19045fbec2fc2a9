//! A record's bytes: a fixed header, the tenant, the recipient, a note, the body, and zeros up to the next multiple of 8.
use std::hash::{BuildHasher, Hasher, RandomState};

use crate::cursor::file::SINK_NAME_MAX;
use crate::meta::{Encoding, Meta, Protocol, Signal, Tenant};

/// The length of a header, in bytes.
pub(crate) const HEADER: usize = 64;
/// Records start at multiples of this, so that a search for the next one looks at one offset in eight.
pub(crate) const ALIGN: u64 = 8;
/// The longest note, in bytes.
pub(crate) const NOTE_MAX: usize = 2048;
/// The first bytes of every record. Not text and not valid UTF-8, so that text bodies hardly ever hold it.
pub(crate) const MAGIC: [u8; 4] = [0xF5, b'T', b'G', 0x9A];
/// The newest version of the format: of records with a recipient.
pub const VERSION: u8 = 2;
/// The version of all others, which earlier programs read too.
const WITHOUT_RECIPIENT: u8 = 1;

/// The version that the header at the start of `bytes` says, whatever follows it; `None` if there is no header.
pub(crate) fn version_of(bytes: &[u8; HEADER]) -> Option<u8> {
    (bytes.first_chunk() == Some(&MAGIC)).then_some(bytes[4])
}

/// A header as it is on disk. Codes are kept as numbers: a record whose header is whole but says something
/// that this version does not know can still be stepped over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    /// Which segment of which journal it belongs to: see [`key`]. Bytes that a client sent, or that an earlier
    /// segment left in the same file, can never pass for a record.
    pub(crate) key: u64,
    pub(crate) sequence: u64,
    pub(crate) items_before: u64,
    pub(crate) received_at_ns: u64,
    pub(crate) items: u32,
    pub(crate) body_len: u32,
    pub(crate) raw_len: u32,
    pub(crate) signal: u8,
    pub(crate) protocol: u8,
    pub(crate) encoding: u8,
    pub(crate) tenant_len: u8,
    /// Zero for a record that is for all sinks.
    pub(crate) recipient_len: u8,
    pub(crate) note_len: u16,
    /// CRC32C of tenant, recipient, note and body.
    pub(crate) crc: u32,
}

impl Header {
    /// The header of a record for all sinks without a note, whose tenant and body have the checksum `crc`.
    pub(crate) fn new(
        key: u64,
        sequence: u64,
        items_before: u64,
        meta: &Meta,
        body: u32,
        crc: u32,
    ) -> Header {
        Header {
            key,
            sequence,
            items_before,
            received_at_ns: meta.received_at_ns,
            items: meta.items,
            body_len: body,
            raw_len: meta.raw_len,
            signal: meta.signal as u8,
            protocol: meta.protocol as u8,
            encoding: meta.encoding as u8,
            // At most TENANT_MAX by the tenant's invariant.
            tenant_len: u8::try_from(meta.tenant.as_str().len()).unwrap_or(0),
            recipient_len: 0,
            note_len: 0,
            crc,
        }
    }

    pub(crate) fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let mut out = Encoder { bytes: &mut bytes, at: 0 };
        out.put(&MAGIC);
        let version = if self.recipient_len == 0 { WITHOUT_RECIPIENT } else { VERSION };
        out.put(&[version, self.signal, self.protocol, self.encoding]);
        out.put(&self.key.to_le_bytes());
        out.put(&self.sequence.to_le_bytes());
        out.put(&self.items_before.to_le_bytes());
        out.put(&self.received_at_ns.to_le_bytes());
        out.put(&self.items.to_le_bytes());
        out.put(&self.body_len.to_le_bytes());
        out.put(&self.raw_len.to_le_bytes());
        out.put(&[self.tenant_len, self.recipient_len]);
        out.put(&self.note_len.to_le_bytes());
        out.put(&self.crc.to_le_bytes());
        let (covered, sum) = bytes.split_at_mut(HEADER - 4);
        sum.copy_from_slice(&crc32c::crc32c(covered).to_le_bytes());
        bytes
    }

    /// The header at the start of `bytes`, if its magic, its version and its checksum say that it is one.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Header> {
        let bytes: &[u8; HEADER] = bytes.first_chunk()?;
        if bytes.first_chunk() != Some(&MAGIC) || !matches!(bytes[4], WITHOUT_RECIPIENT | VERSION) {
            return None;
        }
        let (covered, sum) = bytes.split_last_chunk::<4>()?;
        if crc32c::crc32c(covered) != u32::from_le_bytes(*sum) {
            return None;
        }
        let header = Header {
            key: u64_at(bytes, 8),
            sequence: u64_at(bytes, 16),
            items_before: u64_at(bytes, 24),
            received_at_ns: u64_at(bytes, 32),
            items: u32_at(bytes, 40),
            body_len: u32_at(bytes, 44),
            raw_len: u32_at(bytes, 48),
            signal: bytes[5],
            protocol: bytes[6],
            encoding: bytes[7],
            tenant_len: bytes[52],
            recipient_len: if bytes[4] == WITHOUT_RECIPIENT { 0 } else { bytes[53] },
            note_len: u16::from_le_bytes([bytes[54], bytes[55]]),
            crc: u32_at(bytes, 56),
        };
        let plausible = usize::from(header.note_len) <= NOTE_MAX
            && usize::from(header.tenant_len) <= crate::meta::TENANT_MAX
            && usize::from(header.recipient_len) <= SINK_NAME_MAX
            && header.items_before.checked_add(u64::from(header.items)).is_some()
            && header.sequence < u64::MAX;
        plausible.then_some(header)
    }

    /// Its metadata about the body; `None` if it uses codes unknown to this version.
    pub(crate) fn meta(&self, tenant: Tenant) -> Option<Meta> {
        Some(Meta {
            tenant,
            signal: Signal::from_u8(self.signal)?,
            protocol: Protocol::from_u8(self.protocol)?,
            encoding: Encoding::from_u8(self.encoding)?,
            items: self.items,
            raw_len: self.raw_len,
            received_at_ns: self.received_at_ns,
        })
    }

    /// The bytes between the header and the body.
    pub(crate) fn prefix(&self) -> usize {
        usize::from(self.tenant_len) + usize::from(self.recipient_len) + usize::from(self.note_len)
    }

    /// Everything from its magic to the next record's, in bytes.
    pub(crate) fn size(&self) -> u64 {
        size_of_record(self.prefix(), self.body_len)
    }

    /// The items of all records up to and with this one.
    pub(crate) fn items_after(&self) -> u64 {
        self.items_before + u64::from(self.items)
    }
}

/// A number that no client can guess.
pub(crate) fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// The mark in all records of the segment that begins with the record `first`, in the journal with the random
/// identity `salt`. It differs between any two segments, and cannot be guessed without the identity.
pub(crate) fn key(salt: u64, first: u64) -> u64 {
    salt ^ spread(first)
}

/// The identity of the journal whose segment `first` has the key `key`.
pub(crate) fn salt_of(key: u64, first: u64) -> u64 {
    key ^ spread(first)
}

/// One to one, and no two results alike in few bits only.
fn spread(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// A record's size on disk, in bytes.
pub(crate) fn size_of_record(prefix: usize, body: u32) -> u64 {
    (HEADER as u64 + prefix as u64 + u64::from(body)).next_multiple_of(ALIGN)
}

/// CRC32C of what a header's checksum covers.
pub(crate) fn checksum(tenant: &Tenant, recipient: &str, note: &[u8], body: &[u8]) -> u32 {
    let mut sum = crc32c::crc32c(tenant.as_str().as_bytes());
    for part in [recipient.as_bytes(), note, body] {
        sum = crc32c::crc32c_append(sum, part);
    }
    sum
}

/// Writes fields one behind the other.
pub(crate) struct Encoder<'a> {
    pub(crate) bytes: &'a mut [u8],
    pub(crate) at: usize,
}

impl Encoder<'_> {
    pub(crate) fn put(&mut self, field: &[u8]) {
        if let Some(room) = self.bytes.get_mut(self.at..self.at + field.len()) {
            room.copy_from_slice(field);
        }
        self.at += field.len();
    }
}

/// The little-endian number at `at`, zero when there are too few bytes.
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |field| u64::from_le_bytes(*field))
}

/// The little-endian number at `at`, zero when there are too few bytes.
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..).and_then(|rest| rest.first_chunk()).map_or(0, |field| u32::from_le_bytes(*field))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// A written record reads back, and every single flipped bit is detected.
        #[test]
        fn headers_round_trip(
            longs in any::<[u64; 3]>(), items_before in 0..u64::MAX / 2, ints in any::<[u32; 4]>(),
            codes in any::<[u8; 3]>(), lens in (0u8..=128, 0u8..=64, 0u16..=2048), flip in 0usize..512,
        ) {
            let [key, sequence, received_at_ns] = longs;
            let [items, body_len, raw_len, crc] = ints;
            let [signal, protocol, encoding] = codes;
            let (tenant_len, recipient_len, note_len) = lens;
            let sequence = sequence >> 1;
            let header = Header {
                key, sequence, items_before, received_at_ns, items, body_len, raw_len, signal, protocol,
                encoding, tenant_len, recipient_len, note_len, crc,
            };
            let mut bytes = header.encode();
            prop_assert_eq!(Header::decode(&bytes), Some(header));
            prop_assert_eq!(header.size() % ALIGN, 0);
            bytes[flip / 8] ^= 1 << (flip % 8);
            prop_assert_eq!(Header::decode(&bytes), None);
        }
    }
}
