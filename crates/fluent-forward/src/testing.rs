//! A second implementation of MessagePack, which only writes, and random values.

use proptest::collection::vec;
use proptest::prelude::*;

/// A value of MessagePack.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Nil,
    Bool(bool),
    /// Negative.
    Int(i64),
    Unsigned(u64),
    Double(f64),
    Text(Vec<u8>),
    Bytes(Vec<u8>),
    Array(Vec<Value>),
    Map(Vec<(Value, Value)>),
    Extension(i8, Vec<u8>),
}

impl Value {
    pub(crate) fn text(text: &str) -> Value {
        Value::Text(text.as_bytes().to_vec())
    }

    /// A map with texts as keys.
    pub(crate) fn map<const N: usize>(members: [(&str, Value); N]) -> Value {
        Value::Map(members.into_iter().map(|(key, value)| (Value::text(key), value)).collect())
    }

    pub(crate) fn encoded(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Value::Nil => out.push(0xc0),
            Value::Bool(value) => out.push(0xc2 + u8::from(*value)),
            Value::Int(value) if *value >= -32 => out.extend((*value as i8).to_be_bytes()),
            Value::Int(value) => sized(out, value.unsigned_abs(), [0xd0, 0xd1, 0xd2, 0xd3], |width| {
                value.to_be_bytes()[8 - width..].to_vec()
            }),
            Value::Unsigned(value) if *value < 0x80 => out.push(*value as u8),
            Value::Unsigned(value) => sized(out, *value, [0xcc, 0xcd, 0xce, 0xcf], |width| {
                value.to_be_bytes()[8 - width..].to_vec()
            }),
            Value::Double(value) => {
                out.push(0xcb);
                out.extend(value.to_be_bytes());
            }
            Value::Text(text) => {
                match text.len() {
                    len @ 0..32 => out.push(0xa0 | len as u8),
                    len => len_of(out, len, [0xd9, 0xda, 0xdb]),
                }
                out.extend(text);
            }
            Value::Bytes(bytes) => {
                len_of(out, bytes.len(), [0xc4, 0xc5, 0xc6]);
                out.extend(bytes);
            }
            Value::Array(values) => {
                match values.len() {
                    len @ 0..16 => out.push(0x90 | len as u8),
                    len => len_of(out, len, [0, 0xdc, 0xdd]),
                }
                values.iter().for_each(|value| value.put(out));
            }
            Value::Map(members) => {
                match members.len() {
                    len @ 0..16 => out.push(0x80 | len as u8),
                    len => len_of(out, len, [0, 0xde, 0xdf]),
                }
                members.iter().for_each(|(key, value)| {
                    key.put(out);
                    value.put(out);
                });
            }
            Value::Extension(kind, bytes) => {
                match [1, 2, 4, 8, 16].iter().position(|len| *len == bytes.len()) {
                    Some(fixed) => out.push(0xd4 + fixed as u8),
                    None => len_of(out, bytes.len(), [0xc7, 0xc8, 0xc9]),
                }
                out.extend(kind.to_be_bytes());
                out.extend(bytes);
            }
        }
    }
}

/// A number in the least width that also has its sign.
fn sized(out: &mut Vec<u8>, size: u64, heads: [u8; 4], bytes: impl Fn(usize) -> Vec<u8>) {
    // A signed number of a width has one bit less.
    let bits = 64 - size.leading_zeros() + u32::from(heads[0] == 0xd0);
    let (head, width) = match bits {
        0..=8 => (heads[0], 1),
        9..=16 => (heads[1], 2),
        17..=32 => (heads[2], 4),
        _ => (heads[3], 8),
    };
    out.push(head);
    out.extend(bytes(width));
}

/// A length with one, two or four bytes. Without a form of one byte its head is 0.
fn len_of(out: &mut Vec<u8>, len: usize, heads: [u8; 3]) {
    match len {
        0..0x100 if heads[0] != 0 => out.extend([heads[0], len as u8]),
        0..0x1_0000 => {
            out.push(heads[1]);
            out.extend((len as u16).to_be_bytes());
        }
        _ => {
            out.push(heads[2]);
            out.extend((len as u32).to_be_bytes());
        }
    }
}

pub(crate) fn text() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        4 => "[a-z]{0,9}".prop_map(String::into_bytes),
        1 => "[a-zäöü]{30,40}".prop_map(String::into_bytes),
        1 => vec(any::<u8>(), 0..9),
        1 => (250usize..300).prop_map(|len| vec![b'x'; len]),
    ]
}

/// Any value, seldom deep.
pub(crate) fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => Just(Value::Nil),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => (i64::MIN..0).prop_map(Value::Int),
        1 => (-40_000i64..0).prop_map(Value::Int),
        1 => any::<u64>().prop_map(Value::Unsigned),
        1 => (0u64..70_000).prop_map(Value::Unsigned),
        1 => (-1e9..1e9).prop_map(Value::Double),
        4 => text().prop_map(Value::Text),
        1 => text().prop_map(Value::Bytes),
        1 => (any::<i8>(), vec(any::<u8>(), 0..20)).prop_map(|(kind, bytes)| Value::Extension(kind, bytes)),
    ];
    leaf.prop_recursive(4, 40, 20, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..20).prop_map(Value::Array),
            vec((text().prop_map(Value::Text), inner), 0..20).prop_map(Value::Map),
        ]
    })
}
