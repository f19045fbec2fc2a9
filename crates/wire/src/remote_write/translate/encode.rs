//! Messages that both versions encode alike.

use crate::output::{Full, Output};
use crate::proto::Reader;
use crate::proto::write::{self, Encode};
use crate::remote_write::histogram::{Histogram, field};
use crate::remote_write::item::Sample;

/// A float sample; the start timestamp is written where it is set, which callers for 1.0 leave out.
impl Encode for Sample {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        write::fixed64(out, 1, self.bits)?;
        write::varint(out, 2, self.timestamp.cast_unsigned())?;
        match self.start_timestamp {
            0 => Ok(()),
            start => write::varint(out, 3, start.cast_unsigned()),
        }
    }

    fn encoded_len(&self) -> Result<u64, Full> {
        let timestamp = write::varint_len(self.timestamp.cast_unsigned());
        let start = match self.start_timestamp {
            0 => 0,
            start => 1 + write::varint_len(start.cast_unsigned()),
        };
        Ok(9 + 1 + timestamp + start)
    }
}

/// A native histogram with another start timestamp (none for 0); all else is copied as it was sent.
pub(super) struct WithStart<'a>(pub(super) Histogram<'a>, pub(super) i64);

impl Encode for WithStart<'_> {
    fn encode(&self, out: &mut impl Output) -> Result<(), Full> {
        let mut reader = Reader::new(self.0.message());
        let mut copied = reader;
        loop {
            let before = reader;
            let Ok(Some(key)) = reader.key() else { break };
            if reader.skip(key).is_err() {
                break;
            }
            if key.field == field::START_TIMESTAMP {
                out.put(copied.until(&before))?;
                copied = reader;
            }
        }
        out.put(copied.until(&reader))?;
        match self.1 {
            0 => Ok(()),
            start => write::varint(out, field::START_TIMESTAMP, start.cast_unsigned()),
        }
    }
}
