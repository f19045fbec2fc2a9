//! SQLite's write-ahead log: pages of committed transactions that are not in the database's file yet.

use std::collections::HashMap;

const HEADER: usize = 32;
const FRAME_HEADER: usize = 24;

/// The pages of the committed transactions in a log.
#[derive(Debug, Default)]
pub(super) struct WalPages<'a> {
    pages: HashMap<u32, &'a [u8]>,
    /// The length of the database after the last transaction, in pages.
    len: Option<u32>,
}

impl<'a> WalPages<'a> {
    /// Those of `log`, up to the last commit whose checksums are right. A log of other pages has none: it is an earlier one's.
    pub(super) fn read(log: &'a [u8], page_size: usize) -> WalPages<'a> {
        let mut committed = WalPages::default();
        let Some((is_big_endian, salts, mut sum)) = header(log, page_size) else { return committed };
        let mut pending = Vec::new();
        let frames = log.get(HEADER..).unwrap_or_default();
        for frame in frames.chunks_exact(FRAME_HEADER + page_size) {
            let Some((head, page)) = frame.split_at_checked(FRAME_HEADER) else { break };
            let (Some(number), Some(len)) = (word(head, 0, true), word(head, 4, true)) else { break };
            sum = checksum(head.get(..8).unwrap_or_default(), is_big_endian, sum);
            sum = checksum(page, is_big_endian, sum);
            let is_valid = head.get(8..16) == Some(salts)
                && (word(head, 16, true), word(head, 20, true)) == (Some(sum.0), Some(sum.1));
            if !is_valid {
                break;
            }
            pending.push((number, page));
            if len > 0 {
                committed.pages.extend(pending.drain(..));
                committed.len = Some(len);
            }
        }
        committed
    }

    /// The newest content of a page, if the log has it.
    pub(super) fn get(&self, number: u32) -> Option<&'a [u8]> {
        self.pages.get(&number).copied()
    }

    pub(super) fn pages(&self) -> Option<u32> {
        self.len
    }
}

/// The byte order of checksums, the salts, and the header's checksum.
fn header(log: &[u8], page_size: usize) -> Option<(bool, &[u8], (u32, u32))> {
    let is_big_endian = match word(log, 0, true)? {
        0x377f_0682 => false,
        0x377f_0683 => true,
        _ => return None,
    };
    if usize::try_from(word(log, 8, true)?).ok()? != page_size {
        return None;
    }
    let sum = checksum(log.get(..24)?, is_big_endian, (0, 0));
    ((word(log, 24, true)?, word(log, 28, true)?) == sum).then_some((is_big_endian, log.get(16..24)?, sum))
}

fn checksum(bytes: &[u8], is_big_endian: bool, (mut one, mut two): (u32, u32)) -> (u32, u32) {
    for pair in bytes.chunks_exact(8) {
        let words = word(pair, 0, is_big_endian).zip(word(pair, 4, is_big_endian));
        let (first, second) = words.unwrap_or_default();
        one = one.wrapping_add(first).wrapping_add(two);
        two = two.wrapping_add(second).wrapping_add(one);
    }
    (one, two)
}

fn word(bytes: &[u8], at: usize, is_big_endian: bool) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(if is_big_endian { u32::from_be_bytes(*bytes) } else { u32::from_le_bytes(*bytes) })
}
