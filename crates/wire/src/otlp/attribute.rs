//! Attributes and their values, and those who have them everywhere: resources and scopes.

use crate::proto::{Messages, Reader, WireType, low32};

/// How deep arrays and maps may nest in a value. Nothing that walks over a value calls itself for each level, so this
/// bounds what its list of open ones takes, and not a stack. It is more than anybody sends: Elasticsearch stops at a
/// thousand levels of JSON, and common protobuf decoders at thirty of these.
pub const MAX_DEPTH: usize = 1000;

/// A name and a value. Names and texts of a checked body are UTF-8; readers that need `str` check again
/// what they keep.
#[derive(Debug, Clone, Copy)]
pub struct KeyValue<'a> {
    /// The name.
    pub key: &'a [u8],
    /// The value.
    pub value: AnyValue<'a>,
}

/// A value of an attribute, or the body of a log record.
#[derive(Debug, Clone, Copy)]
pub enum AnyValue<'a> {
    /// None was set, or it is an index into the dictionary of profiles, which other signals must read so.
    Empty,
    /// A string.
    Text(&'a [u8]),
    /// A boolean.
    Bool(bool),
    /// An integer.
    Int(i64),
    /// The bits of a double.
    Double(u64),
    /// Bytes.
    Bytes(&'a [u8]),
    /// An array of values of any kind.
    Array(Array<'a>),
    /// Names and values.
    Map(Map<'a>),
}

/// An encoded `ArrayValue`.
#[derive(Debug, Clone, Copy)]
pub struct Array<'a>(&'a [u8]);

/// An encoded `KeyValueList`.
#[derive(Debug, Clone, Copy)]
pub struct Map<'a>(&'a [u8]);

/// Attributes, in order.
#[derive(Debug, Clone)]
pub struct Attributes<'a>(Messages<'a>);

/// Values of an array, in order.
#[derive(Debug, Clone)]
pub struct Values<'a>(Messages<'a>);

/// The sender.
#[derive(Debug, Clone, Copy, Default)]
pub struct Resource<'a> {
    message: &'a [u8],
    /// Attributes that the sender left out.
    pub dropped_attributes: u32,
}

/// The library that made the items.
#[derive(Debug, Clone, Copy, Default)]
pub struct Scope<'a> {
    message: &'a [u8],
    /// Its name.
    pub name: &'a [u8],
    /// Its version.
    pub version: &'a [u8],
    /// Attributes that the sender left out.
    pub dropped_attributes: u32,
}

/// Which of a resource's attributes identify what (in development).
#[derive(Debug, Clone, Copy, Default)]
pub struct EntityRef<'a> {
    message: &'a [u8],
    /// The schema that the keys are of.
    pub schema_url: &'a [u8],
    /// The kind of entity.
    pub kind: &'a [u8],
}

impl<'a> Attributes<'a> {
    /// The attributes that are in `field` of `message`.
    pub(super) fn new(message: &'a [u8], field: u32) -> Self {
        Self(Messages::new(message, field))
    }

    /// The value of the attribute `key`: the last one's, if senders repeat what they must not repeat.
    #[must_use]
    pub fn find(&self, key: &[u8]) -> Option<AnyValue<'a>> {
        self.clone().filter(|attribute| attribute.key == key).last().map(|attribute| attribute.value)
    }
}

impl<'a> Iterator for Attributes<'a> {
    type Item = KeyValue<'a>;

    #[inline]
    fn next(&mut self) -> Option<KeyValue<'a>> {
        let message = self.0.next()?;
        plain(message).or_else(|| KeyValue::read(message))
    }
}

impl<'a> Iterator for Values<'a> {
    type Item = AnyValue<'a>;

    fn next(&mut self) -> Option<AnyValue<'a>> {
        self.0.next().and_then(AnyValue::read)
    }
}

/// The next occurrence of field 1, where arrays and maps have their members; `rest` is what comes behind it then.
pub(super) fn next_member<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let mut reader = Reader::new(rest);
    loop {
        let key = reader.key().ok()??;
        if key.field == 1 && key.wire == WireType::Length {
            let member = reader.bytes(key).ok()?;
            *rest = reader.rest();
            return Some(member);
        }
        reader.skip(key).ok()?;
    }
}

impl<'a> Array<'a> {
    /// Its encoded message.
    pub(super) fn message(&self) -> &'a [u8] {
        self.0
    }

    /// Its values, in order.
    #[must_use]
    pub fn values(&self) -> Values<'a> {
        Values(Messages::new(self.0, 1))
    }
}

impl<'a> Map<'a> {
    /// Its encoded message.
    pub(super) fn message(&self) -> &'a [u8] {
        self.0
    }

    /// Its entries, in order.
    #[must_use]
    pub fn entries(&self) -> Attributes<'a> {
        Attributes::new(self.0, 1)
    }
}

/// A key and a value in this order, both shorter than 128 bytes, and nothing else: as every known encoder
/// writes them when they are short.
#[inline(always)]
pub(super) fn plain_parts(message: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[0x0a, key_len], rest) = message.split_first_chunk()? else { return None };
    let (key, rest) = rest.split_at_checked(usize::from(key_len))?;
    let (&[0x12, value_len], value) = rest.split_first_chunk()? else { return None };
    let plain = key_len < 0x80 && value_len < 0x80 && value.len() == usize::from(value_len);
    plain.then_some((key, value))
}

#[inline(always)]
fn plain(message: &[u8]) -> Option<KeyValue<'_>> {
    let (key, value) = plain_parts(message)?;
    let value = match value {
        [0x0a, len, text @ ..] if *len < 0x80 && usize::from(*len) == text.len() => AnyValue::Text(text),
        [0x10, byte] if *byte < 0x80 => AnyValue::Bool(*byte != 0),
        [0x18, byte] if *byte < 0x80 => AnyValue::Int(i64::from(*byte)),
        value => AnyValue::read(value)?,
    };
    Some(KeyValue { key, value })
}

impl<'a> KeyValue<'a> {
    #[inline(never)]
    pub(super) fn read(message: &'a [u8]) -> Option<Self> {
        let mut read = Self { key: &[], value: AnyValue::Empty };
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            match key.field {
                1 => read.key = reader.bytes(key).ok()?,
                2 => read.value = AnyValue::read(reader.bytes(key).ok()?)?,
                _ => reader.skip(key).ok()?,
            }
        }
        Some(read)
    }
}

impl<'a> AnyValue<'a> {
    /// Reads an encoded `AnyValue`; of several members the last counts. `None` where it is malformed.
    #[must_use]
    #[inline(never)]
    pub fn read(message: &'a [u8]) -> Option<Self> {
        let mut read = Self::Empty;
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            read = match key.field {
                1 => Self::Text(reader.bytes(key).ok()?),
                2 => Self::Bool(reader.varint(key).ok()? != 0),
                3 => Self::Int(reader.varint(key).ok()?.cast_signed()),
                4 => Self::Double(reader.fixed64(key).ok()?),
                5 => Self::Array(Array(reader.bytes(key).ok()?)),
                6 => Self::Map(Map(reader.bytes(key).ok()?)),
                7 => Self::Bytes(reader.bytes(key).ok()?),
                8 => {
                    reader.varint(key).ok()?;
                    Self::Empty
                }
                _ => {
                    reader.skip(key).ok()?;
                    continue;
                }
            };
        }
        Some(read)
    }
}

impl<'a> Resource<'a> {
    pub(super) fn read(message: &'a [u8]) -> Option<Self> {
        let mut read = Self { message, dropped_attributes: 0 };
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            match key.field {
                2 => read.dropped_attributes = low32(reader.varint(key).ok()?),
                _ => reader.skip(key).ok()?,
            }
        }
        Some(read)
    }

    /// Its encoded message.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// Its attributes.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.message, 1)
    }

    /// Its entities.
    pub fn entity_refs(&self) -> impl Iterator<Item = EntityRef<'a>> + Clone + use<'a> {
        Messages::new(self.message, 3).map_while(EntityRef::read)
    }
}

impl<'a> Scope<'a> {
    pub(super) fn read(message: &'a [u8]) -> Option<Self> {
        let mut read = Self { message, ..Self::default() };
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            match key.field {
                1 => read.name = reader.bytes(key).ok()?,
                2 => read.version = reader.bytes(key).ok()?,
                4 => read.dropped_attributes = low32(reader.varint(key).ok()?),
                _ => reader.skip(key).ok()?,
            }
        }
        Some(read)
    }

    /// Its encoded message.
    #[must_use]
    pub fn message(&self) -> &'a [u8] {
        self.message
    }

    /// Its attributes.
    #[must_use]
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes::new(self.message, 3)
    }
}

impl<'a> EntityRef<'a> {
    fn read(message: &'a [u8]) -> Option<Self> {
        let mut read = Self { message, ..Self::default() };
        let mut reader = Reader::new(message);
        while let Some(key) = reader.key().ok()? {
            match key.field {
                1 => read.schema_url = reader.bytes(key).ok()?,
                2 => read.kind = reader.bytes(key).ok()?,
                _ => reader.skip(key).ok()?,
            }
        }
        Some(read)
    }

    /// Names of the attributes that identify the entity.
    #[must_use]
    pub fn id_keys(&self) -> Messages<'a> {
        Messages::new(self.message, 3)
    }

    /// Names of the attributes that describe it.
    #[must_use]
    pub fn description_keys(&self) -> Messages<'a> {
        Messages::new(self.message, 4)
    }
}
