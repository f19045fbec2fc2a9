//! The framing of TLS: where records end (RFC 8446, section 5.1).

/// The head of a record: its type, a version, its length.
pub(crate) const HEAD: usize = 5;
/// The most bytes of a record's content as it is sent (RFC 5246, section 6.2.3).
const CONTENT: usize = (16 << 10) + (2 << 10);
/// The longest record.
pub(crate) const LONGEST: usize = HEAD + CONTENT;
/// The most plain bytes of a record.
pub(crate) const PLAIN: usize = 16 << 10;
/// The smallest overhead of encryption.
const TAG: usize = 16;
/// The type of a record that begins a handshake.
pub(crate) const HANDSHAKE: u8 = 22;

/// The record at the front of some bytes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Front {
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
    let [_, _, _, high, low] = head.first_chunk::<HEAD>()?;
    Some(HEAD + usize::from(u16::from_be_bytes([*high, *low])))
}

/// Looks at the front of `bytes`: at most `most` records, with at most `room` plain bytes.
pub(crate) fn front(bytes: &[u8], most: usize, room: usize) -> Front {
    let (mut end, mut plain) = (0, 0_usize);
    for _ in 0..most {
        let rest = bytes.get(end..).unwrap_or_default();
        let Some([kind, major, _, high, low]) = rest.first_chunk::<HEAD>() else { break };
        let content = usize::from(u16::from_be_bytes([*high, *low]));
        // Change cipher spec, alert, handshake, application data; any version 3.x.
        if !(20..=23).contains(kind) || *major != 3 || content > CONTENT {
            // Earlier output is sent first.
            return if end == 0 { Front::Broken } else { Front::Whole(end) };
        }
        if rest.len() < HEAD + content {
            break;
        }
        plain += content.saturating_sub(TAG);
        if plain > room {
            return if end == 0 { Front::Short(plain) } else { Front::Whole(end) };
        }
        end += HEAD + content;
    }
    if end == 0 { Front::Part } else { Front::Whole(end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: u8, content: usize) -> Vec<u8> {
        let [.., high, low] = content.to_be_bytes();
        let mut record = vec![kind, 3, 3, high, low];
        record.resize(HEAD + content, 0);
        record
    }

    #[test]
    fn only_whole_records_with_room_are_taken() {
        let two = [record(23, 116), record(23, 1016)].concat();
        assert_eq!(front(&two, 9, 1100), Front::Whole(two.len()));
        assert_eq!(front(&two, 9, 1099), Front::Whole(121));
        assert_eq!(front(&two, 1, 9999), Front::Whole(121));
        assert_eq!(front(&two, 9, 99), Front::Short(100));
        assert_eq!(front(&two[..two.len() - 1], 9, 9999), Front::Whole(121));
        for cut in 0..121 {
            assert_eq!(front(&two[..cut], 9, 9999), Front::Part);
        }
        assert_eq!(front(&record(23, CONTENT), 9, CONTENT), Front::Whole(LONGEST));
        for broken in [record(23, CONTENT + 1), record(24, 1), record(19, 1), b"GET / HTTP/1.1\r\n".to_vec()]
        {
            assert_eq!(front(&broken, 9, 9999), Front::Broken);
            let after = [record(23, 20), broken].concat();
            assert_eq!(front(&after, 9, 9999), Front::Whole(25));
        }
    }
}
