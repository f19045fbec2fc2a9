//! The framing of TLS: where records end (RFC 8446, section 5.1).

/// The head of a record: its type, a version, its length.
pub(crate) const RECORD_HEADER_LEN: usize = 5;
/// The most bytes of a record's content as it is sent (RFC 5246, section 6.2.3).
const MAX_CIPHERTEXT: usize = (16 << 10) + (2 << 10);
/// The longest record.
pub(crate) const MAX_RECORD: usize = RECORD_HEADER_LEN + MAX_CIPHERTEXT;
/// The most plain bytes of a record.
pub(crate) const MAX_PLAINTEXT: usize = 16 << 10;
/// The smallest overhead of encryption.
const MIN_OVERHEAD: usize = 16;
/// The type of a record that begins a handshake.
pub(crate) const HANDSHAKE: u8 = 22;

/// The record at the front of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RecordHeader {
    /// So many bytes of whole records, whose plain bytes have room.
    Whole(usize),
    /// A whole record, with more plain bytes than there is room for.
    Short(usize),
    /// The rest of a record is still to come.
    Part,
    /// No record.
    Broken,
}

/// How long the record is that begins with `head`, with that; nothing while that cannot be told.
pub(crate) fn whole(head: &[u8]) -> Option<usize> {
    let [_, _, _, high, low] = head.first_chunk::<RECORD_HEADER_LEN>()?;
    Some(RECORD_HEADER_LEN + usize::from(u16::from_be_bytes([*high, *low])))
}

/// Looks at the front of `bytes`: at most `most` records, with at most `room` plain bytes.
pub(crate) fn front(bytes: &[u8], most: usize, room: usize) -> RecordHeader {
    let (mut end, mut plain) = (0, 0_usize);
    for _ in 0..most {
        let rest = bytes.get(end..).unwrap_or_default();
        let Some([kind, major, _, high, low]) = rest.first_chunk::<RECORD_HEADER_LEN>() else { break };
        let content = usize::from(u16::from_be_bytes([*high, *low]));
        // Change cipher spec, alert, handshake, application data; any version 3.x.
        if !(20..=23).contains(kind) || *major != 3 || content > MAX_CIPHERTEXT {
            // Earlier output is sent first.
            return if end == 0 { RecordHeader::Broken } else { RecordHeader::Whole(end) };
        }
        if rest.len() < RECORD_HEADER_LEN + content {
            break;
        }
        plain += content.saturating_sub(MIN_OVERHEAD);
        if plain > room {
            return if end == 0 { RecordHeader::Short(plain) } else { RecordHeader::Whole(end) };
        }
        end += RECORD_HEADER_LEN + content;
    }
    if end == 0 { RecordHeader::Part } else { RecordHeader::Whole(end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, content: usize) -> Vec<u8> {
        let [.., high, low] = content.to_be_bytes();
        let mut record = vec![kind, 3, 3, high, low];
        record.resize(RECORD_HEADER_LEN + content, 0);
        record
    }

    #[test]
    fn only_whole_records_with_room_are_taken() {
        let two = [record(23, 116), record(23, 1016)].concat();
        assert_eq!(front(&two, 9, 1100), RecordHeader::Whole(two.len()));
        assert_eq!(front(&two, 9, 1099), RecordHeader::Whole(121));
        assert_eq!(front(&two, 1, 9999), RecordHeader::Whole(121));
        assert_eq!(front(&two, 9, 99), RecordHeader::Short(100));
        assert_eq!(front(&two[..two.len() - 1], 9, 9999), RecordHeader::Whole(121));
        for cut in 0..121 {
            assert_eq!(front(&two[..cut], 9, 9999), RecordHeader::Part);
        }
        assert_eq!(front(&record(23, MAX_CIPHERTEXT), 9, MAX_CIPHERTEXT), RecordHeader::Whole(MAX_RECORD));
        for broken in
            [record(23, MAX_CIPHERTEXT + 1), record(24, 1), record(19, 1), b"GET / HTTP/1.1\r\n".to_vec()]
        {
            assert_eq!(front(&broken, 9, 9999), RecordHeader::Broken);
            let after = [record(23, 20), broken].concat();
            assert_eq!(front(&after, 9, 9999), RecordHeader::Whole(25));
        }
    }
}
