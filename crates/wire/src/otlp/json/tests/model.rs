//! Random requests as trees, which write themselves as JSON in any of its forms, and as protobuf in the plain,
//! recursive way.

use std::fmt::Write;

use super::super::schema::{Field, Kind, Message, Rule};

/// A value, and for objects which table it is of.
pub(super) enum Node {
    Object(Vec<(&'static Field, Node)>),
    Array(Vec<Node>),
    Text(String),
    Bytes(Vec<u8>),
    Bool(bool),
    Double(f64),
    Whole(i128),
}

/// Numbers from a seed.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    pub(super) fn below(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    fn bits(&mut self) -> u64 {
        let bits = self.below(1 << 31) << 33 ^ self.below(1 << 31) << 11 ^ self.below(1 << 31);
        bits >> self.below(64)
    }
}

/// A request of `root`, of any shape.
pub(super) fn request(root: &'static Message, seed: u64) -> Node {
    object(root, &mut Dice(seed), 0)
}

fn object(message: &'static Message, dice: &mut Dice, depth: u32) -> Node {
    let mut members = Vec::<(&'static Field, Node)>::new();
    let start = dice.below(message.fields.len() as u64);
    for index in 0..message.fields.len() as u64 {
        let field = &message.fields[((start + index) % message.fields.len() as u64) as usize];
        let is_wanted = if depth < 4 { dice.below(5) > 0 } else { dice.below(u64::from(depth)) == 0 };
        let is_deep = depth > 12 && matches!(field.kind, Kind::Message(_));
        if is_deep || !is_wanted || members.iter().any(|(other, _)| other.choice == field.choice) {
            continue;
        }
        let node = if field.rule == Rule::Repeated {
            Node::Array((0..dice.below(4)).map(|_| value(field, dice, depth)).collect())
        } else {
            value(field, dice, depth)
        };
        members.push((field, node));
    }
    Node::Object(members)
}

fn value(field: &'static Field, dice: &mut Dice, depth: u32) -> Node {
    let signed = |dice: &mut Dice| i128::from(dice.bits() as i64) * if dice.below(2) == 0 { 1 } else { -1 };
    let bytes = |dice: &mut Dice, len: u64| (0..len).map(|_| dice.below(256) as u8).collect::<Vec<_>>();
    match field.kind {
        Kind::Message(message) => object(message, dice, depth + 1),
        Kind::String => {
            let len = dice.below(20) * if dice.below(20) == 0 { 20 } else { 1 };
            Node::Text(
                (0..len)
                    .map(|_| {
                        ['a', 'Z', ' ', '/', '"', '\\', '\n', '\u{1}', 'é', '€', '🦀']
                            [dice.below(11) as usize]
                    })
                    .collect(),
            )
        }
        Kind::Id(len) => {
            let len = if dice.below(4) == 0 { 0 } else { len as u64 };
            Node::Bytes(bytes(dice, len))
        }
        Kind::Bytes => {
            let len = dice.below(20);
            Node::Bytes(bytes(dice, len))
        }
        Kind::Bool => Node::Bool(dice.below(2) == 0),
        Kind::Double => Node::Double(match dice.below(8) {
            0 => f64::NAN,
            1 => f64::INFINITY,
            2 => f64::NEG_INFINITY,
            3 => 0.0,
            4 => -0.0,
            5 => f64::from_bits(dice.bits() >> 2),
            _ => dice.below(1000) as f64 / 8.0,
        }),
        Kind::Fixed64 | Kind::Uint64 => Node::Whole(i128::from(dice.bits())),
        Kind::SignedFixed64 | Kind::Int64 => {
            Node::Whole(signed(dice).clamp(i64::MIN.into(), i64::MAX.into()))
        }
        Kind::Fixed32 | Kind::Uint32 => Node::Whole(i128::from(dice.bits() as u32)),
        Kind::Zigzag32 | Kind::Enum => Node::Whole(signed(dice).clamp(i32::MIN.into(), i32::MAX.into())),
    }
}

impl Node {
    /// Writes it as JSON, in a form that `dice` chooses.
    pub(super) fn json(&self, kind: Option<Kind>, dice: &mut Dice, out: &mut String) {
        let space = |dice: &mut Dice, out: &mut String| {
            if dice.below(6) == 0 {
                out.push_str([" ", "\n\t", "\r\n  "][dice.below(3) as usize]);
            }
        };
        space(dice, out);
        match self {
            Self::Object(members) => {
                out.push('{');
                let mut first = true;
                let mut comma = |out: &mut String| {
                    if !std::mem::take(&mut first) {
                        out.push(',');
                    }
                };
                for (field, node) in members {
                    if dice.below(15) == 0 {
                        comma(out);
                        let unknown = [
                            r#""x_unknown":{"a":[1,-2.5e3,{"b":null,"c":[]},"\u00e9\"",{}],"d":true}"#,
                            r#" "resource_spans" : [ ] "#,
                            r#""":false"#,
                            r#""name\u0000":"x""#,
                        ];
                        out.push_str(unknown[dice.below(4) as usize]);
                    }
                    comma(out);
                    space(dice, out);
                    match dice.below(20) {
                        0 => write!(
                            out,
                            "\"\\u{:04x}{}\"",
                            u32::from(field.name.as_bytes()[0]),
                            &field.name[1..]
                        )
                        .unwrap(),
                        _ => write!(out, "\"{}\"", field.name).unwrap(),
                    }
                    space(dice, out);
                    out.push(':');
                    node.json(Some(field.kind), dice, out);
                }
                space(dice, out);
                out.push('}');
            }
            Self::Array(nodes) => {
                out.push('[');
                for (index, node) in nodes.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    node.json(kind, dice, out);
                }
                space(dice, out);
                out.push(']');
            }
            Self::Text(text) => quoted(text, dice, out),
            Self::Bytes(bytes) if matches!(kind, Some(Kind::Id(_))) => {
                let upper = dice.below(2) == 0;
                let hex = bytes
                    .iter()
                    .map(|byte| if upper { format!("{byte:02X}") } else { format!("{byte:02x}") });
                write!(out, "\"{}\"", hex.collect::<String>()).unwrap();
            }
            Self::Bytes(bytes) => {
                write!(out, "\"{}\"", base64(bytes, dice.below(2) == 0, dice.below(2) == 0)).unwrap()
            }
            Self::Bool(bool) => write!(out, "{bool}").unwrap(),
            Self::Double(value) if value.is_nan() => out.push_str("\"NaN\""),
            Self::Double(value) if value.is_infinite() => {
                out.push_str(if *value > 0.0 { "\"Infinity\"" } else { "\"-Infinity\"" });
            }
            Self::Double(value) => match dice.below(3) {
                0 => write!(out, "{value:?}").unwrap(),
                1 => write!(out, "{value:e}").unwrap(),
                _ => write!(out, "\"{value}\"").unwrap(),
            },
            Self::Whole(value) if matches!(kind, Some(Kind::Enum)) => write!(out, "{value}").unwrap(),
            Self::Whole(value) => match dice.below(4) {
                0 => write!(out, "{value}").unwrap(),
                1 => write!(out, "{value}.0").unwrap(),
                2 if *value != 0 => write!(out, "\"{value}0e-1\"").unwrap(),
                _ => write!(out, "\"{value}\"").unwrap(),
            },
        }
        space(dice, out);
    }

    /// Writes it as protobuf: the content of an object, or the value of a field without its key.
    pub(super) fn protobuf(&self, kind: Option<Kind>, out: &mut Vec<u8>) {
        let varint = |value: u64, out: &mut Vec<u8>| prost::encoding::encode_varint(value, out);
        match self {
            Self::Object(members) => {
                for (field, node) in members {
                    node.field(field, out);
                }
            }
            Self::Array(_) => unreachable!("arrays are written by their field"),
            Self::Text(text) => out.extend(text.as_bytes()),
            Self::Bytes(bytes) => out.extend(bytes),
            Self::Bool(bool) => out.push(u8::from(*bool)),
            Self::Double(value) => out.extend(value.to_le_bytes()),
            Self::Whole(value) => match kind.unwrap() {
                Kind::Fixed64 | Kind::SignedFixed64 => out.extend((*value as u64).to_le_bytes()),
                Kind::Fixed32 => out.extend((*value as u32).to_le_bytes()),
                Kind::Zigzag32 => varint(u64::from((value << 1 ^ value >> 31) as u32), out),
                _ => varint(*value as u64, out),
            },
        }
    }

    fn field(&self, field: &Field, out: &mut Vec<u8>) {
        let mut key = Vec::new();
        prost::encoding::encode_varint(u64::from(field.key()), &mut key);
        let mut write = |node: &Self| {
            let mut value = Vec::new();
            node.protobuf(Some(field.kind), &mut value);
            let is_zero = value.iter().all(|&byte| byte == 0);
            let is_text = matches!(field.kind, Kind::String);
            let is_id = matches!(field.kind, Kind::Id(_));
            let is_zero = if is_text || is_id { value.is_empty() } else { is_zero };
            if field.rule == Rule::Plain && is_zero || is_id && value.is_empty() {
                return;
            }
            out.extend(&key);
            if field.key() & 7 == 2 {
                prost::encoding::encode_varint(value.len() as u64, out);
            }
            out.extend(value);
        };
        match self {
            Self::Array(nodes) if nodes.is_empty() => {}
            Self::Array(nodes) if matches!(field.kind, Kind::Message(_) | Kind::String) => {
                nodes.iter().for_each(write);
            }
            Self::Array(nodes) => {
                let mut packed = Vec::new();
                nodes.iter().for_each(|node| node.protobuf(Some(field.kind), &mut packed));
                out.extend(&key);
                prost::encoding::encode_varint(packed.len() as u64, out);
                out.extend(packed);
            }
            node => write(node),
        }
    }
}

fn quoted(text: &str, dice: &mut Dice, out: &mut String) {
    out.push('"');
    for char in text.chars() {
        match char {
            '"' | '\\' => out.extend(['\\', char]),
            '/' if dice.below(2) == 0 => out.push_str("\\/"),
            '\n' if dice.below(2) == 0 => out.push_str("\\n"),
            _ if char < ' ' || dice.below(10) == 0 => {
                for unit in char.encode_utf16(&mut [0; 2]) {
                    write!(out, "\\u{unit:04X}").unwrap();
                }
            }
            _ => out.push(char),
        }
    }
    out.push('"');
}

pub(super) fn base64(bytes: &[u8], for_urls: bool, padded: bool) -> String {
    let alphabet: Vec<char> = ('A'..='Z')
        .chain('a'..='z')
        .chain('0'..='9')
        .chain(if for_urls { ['-', '_'] } else { ['+', '/'] })
        .collect();
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let word = chunk.iter().chain(&[0, 0]).take(3).fold(0u32, |sum, &byte| sum << 8 | u32::from(byte));
        for place in 0..=chunk.len() {
            out.push(alphabet[(word >> (18 - 6 * place) & 63) as usize]);
        }
        if padded {
            out.push_str(&"=".repeat(3 - chunk.len()));
        }
    }
    out
}
