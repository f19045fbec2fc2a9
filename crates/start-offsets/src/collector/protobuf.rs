//! The list of known files as protobuf (`checkpoint.proto`).

use super::KnownFile;

/// The files of a `MetadataList`; `None` if it is damaged.
pub(super) fn known_files(message: &[u8]) -> Option<Vec<KnownFile>> {
    let mut known = Vec::new();
    fields(message, &mut |number, field| {
        if number == 1 {
            known.push(known_file(field.bytes()?)?);
        }
        Some(())
    })?;
    Some(known)
}

fn known_file(message: &[u8]) -> Option<KnownFile> {
    let mut file = KnownFile::default();
    fields(message, &mut |number, field| {
        match number {
            1 => fields(field.bytes()?, &mut |number, field| {
                if number == 1 {
                    file.first_bytes = field.bytes()?.to_vec();
                }
                Some(())
            })?,
            2 => file.offset = field.integer()?,
            4 => file.attributes = serde_json::from_slice(field.bytes()?).unwrap_or_default(),
            8 => file.file_type = String::from_utf8_lossy(field.bytes()?).into_owned(),
            _ => {}
        }
        Some(())
    })?;
    Some(file)
}

enum Field<'a> {
    Integer(u64),
    Bytes(&'a [u8]),
    Fixed,
}

impl<'a> Field<'a> {
    fn bytes(&self) -> Option<&'a [u8]> {
        match self {
            Field::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }

    fn integer(&self) -> Option<u64> {
        match self {
            Field::Integer(value) => Some(*value),
            _ => None,
        }
    }
}

fn fields<'a>(mut message: &'a [u8], each: &mut dyn FnMut(u64, Field<'a>) -> Option<()>) -> Option<()> {
    while !message.is_empty() {
        let tag = varint(&mut message)?;
        let field = match tag & 7 {
            0 => Field::Integer(varint(&mut message)?),
            2 => {
                let len = usize::try_from(varint(&mut message)?).ok()?;
                Field::Bytes(take(&mut message, len)?)
            }
            1 => take(&mut message, 8).map(|_| Field::Fixed)?,
            5 => take(&mut message, 4).map(|_| Field::Fixed)?,
            _ => return None,
        };
        each(tag >> 3, field)?;
    }
    Some(())
}

fn take<'a>(message: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, rest) = message.split_at_checked(len)?;
    *message = rest;
    Some(taken)
}

fn varint(message: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = message.split_first()?;
        *message = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
