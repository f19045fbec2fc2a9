//! Selects the resource attributes that become labels of a stream.

use super::value;
use crate::loki::names::{LABELS, is_label, is_of_label};
use crate::loki::{MAX_LABELS, SCOPE};
use crate::otlp::{AnyValue, Attributes, Resource, Scope};
use crate::output::{Counter, Full, Output};

/// The longest value of a label that Loki takes unless it is told otherwise (`max_label_value_length`). Longer ones become
/// metadata.
const LONGEST_VALUE: u64 = 2048;
/// The longest name (`max_label_name_length`).
const LONGEST_NAME: usize = 1024;
/// The labels of a stream that has no others: Loki wants one.
const WITHOUT: &str = "{service_name=\"unknown_service\"}";

/// Which resource attributes become labels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRules(Box<[LabelRule]>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct LabelRule {
    attribute: Box<str>,
    label: Box<str>,
}

impl LabelRules {
    /// The names of the attributes that become labels by default.
    pub fn default_attributes() -> impl Iterator<Item = &'static str> {
        LABELS.iter().map(|(attribute, _)| *attribute)
    }

    /// Makes these attributes labels, of which the first [`MAX_LABELS`] count. Of two that become the same label, the first.
    #[must_use]
    pub fn new<'a>(attributes: impl IntoIterator<Item = &'a str>) -> LabelRules {
        let mut rules = Vec::<LabelRule>::new();
        for attribute in attributes {
            let mut label = Vec::new();
            write_name(attribute.as_bytes(), |piece| {
                label.extend_from_slice(piece);
                Ok(())
            })
            .unwrap_or_default();
            let label = String::from_utf8(label).unwrap_or_default();
            let is_known = rules.iter().any(|rule| *rule.label == label);
            if !is_known && !label.is_empty() && label.len() <= LONGEST_NAME && rules.len() < MAX_LABELS {
                rules.push(LabelRule { attribute: attribute.into(), label: label.into() });
            }
        }
        LabelRules(rules.into())
    }
}

impl Default for LabelRules {
    fn default() -> Self {
        Self::new(Self::default_attributes())
    }
}

/// The labels of a stream.
#[derive(Default)]
pub(super) struct StreamLabels<'a> {
    labels: Vec<(&'a [u8], AnyValue<'a>)>,
    /// The attributes of the resource that are labels, a bit for each.
    used: u128,
    /// Whether the records came from a stream of Loki.
    is_stream: bool,
}

impl<'a> StreamLabels<'a> {
    /// Most heap bytes.
    pub(super) const BYTES: usize = MAX_LABELS.next_power_of_two() * size_of::<(&[u8], AnyValue<'_>)>();

    /// Selects the labels of records of this resource and scope.
    pub(super) fn set(&mut self, resource: Resource<'a>, scope: &Scope<'_>, rules: &'a LabelRules) {
        self.labels.clear();
        self.used = 0;
        self.is_stream = scope.name == SCOPE.as_bytes();
        if self.is_stream {
            for (index, attribute) in resource.attributes().take(MAX_LABELS).enumerate() {
                self.add(label_of(attribute.key), attribute.value, index);
            }
            return;
        }
        for rule in &rules.0 {
            let of_rule = |(_, key): &(usize, &[u8])| *key == rule.attribute.as_bytes();
            let keys = resource.attributes().take(MAX_LABELS).map(|attribute| attribute.key);
            // Of an attribute that a sender repeats, the last counts.
            let Some((index, _)) = keys.enumerate().filter(of_rule).last() else { continue };
            let Some(attribute) = resource.attributes().nth(index) else { continue };
            self.add(rule.label.as_bytes(), attribute.value, index);
        }
    }

    fn add(&mut self, name: &'a [u8], value: AnyValue<'a>, index: usize) {
        let mut len = Counter::default();
        let fits = value::text(value, &mut len).is_ok() && (1..=LONGEST_VALUE).contains(&len.bytes());
        let is_free = !self.labels.iter().any(|(known, _)| *known == name);
        if fits && is_free && is_label(name) && name.len() <= LONGEST_NAME {
            self.labels.push((name, value));
            self.used |= 1 << index;
        }
    }

    /// Whether the attribute of the resource with this index is a label.
    pub(super) fn has(&self, index: usize) -> bool {
        u32::try_from(index)
            .ok()
            .and_then(|index| self.used.checked_shr(index))
            .is_some_and(|bits| bits & 1 == 1)
    }

    /// Whether the records came from a stream of Loki.
    pub(super) fn is_stream(&self) -> bool {
        self.is_stream
    }

    /// Writes them as Prometheus does.
    pub(super) fn write(&self, out: &mut impl Output) -> Result<(), Full> {
        if self.labels.is_empty() {
            return out.put(WITHOUT.as_bytes());
        }
        let mut before: &[u8] = b"{";
        for (name, value) in &self.labels {
            out.put(before)?;
            out.put(name)?;
            out.put(b"=\"")?;
            value::text(*value, &mut Quoted(out))?;
            out.put(b"\"")?;
            before = b", ";
        }
        out.put(b"}")
    }
}

/// The attributes of a resource that are not labels.
pub(super) fn others<'a>(
    attributes: Attributes<'a>,
    labels: &StreamLabels<'_>,
) -> impl Iterator<Item = (&'a [u8], AnyValue<'a>)> {
    let numbered = attributes.enumerate().filter(|(index, _)| !labels.has(*index));
    numbered.map(|(_, attribute)| (attribute.key, attribute.value))
}

/// The label that became this attribute.
fn label_of(attribute: &[u8]) -> &[u8] {
    let known = LABELS.iter().find(|(name, _)| name.as_bytes() == attribute);
    known.map_or(attribute, |(_, label)| label.as_bytes())
}

/// Gives the name of an attribute as Prometheus can have it: other characters become underscores, and a digit in front
/// gets `key_` before it.
pub(super) fn write_name(name: &[u8], mut put: impl FnMut(&[u8]) -> Result<(), Full>) -> Result<(), Full> {
    if name.first().is_some_and(u8::is_ascii_digit) {
        put(b"key_")?;
    }
    let mut rest = name;
    while !rest.is_empty() {
        let len = rest.iter().take_while(|byte| is_of_label(**byte)).count();
        let (plain, other) = rest.split_at_checked(len).unwrap_or((rest, &[]));
        put(plain)?;
        if other.is_empty() {
            break;
        }
        put(b"_")?;
        // The other bytes of the same character.
        let more = other.iter().skip(1).take_while(|byte| **byte & 0xc0 == 0x80).count();
        rest = other.get(1 + more..).unwrap_or_default();
    }
    Ok(())
}

/// Writes into a string as Go quotes it.
struct Quoted<'o, O>(&'o mut O);

impl<O: Output> Output for Quoted<'_, O> {
    fn put(&mut self, mut bytes: &[u8]) -> Result<(), Full> {
        loop {
            let is_plain = |byte: &&u8| !matches!(byte, b'"' | b'\\' | 0..0x20 | 0x7f);
            let len = bytes.iter().take_while(is_plain).count();
            let (plain, rest) = bytes.split_at_checked(len).unwrap_or((bytes, &[]));
            self.0.put(plain)?;
            let Some((byte, rest)) = rest.split_first() else { return Ok(()) };
            match byte {
                b'"' => self.0.put(b"\\\"")?,
                b'\\' => self.0.put(b"\\\\")?,
                b'\n' => self.0.put(b"\\n")?,
                byte => {
                    self.0.put(b"\\x")?;
                    crate::json::write::hex(&[*byte], self.0)?;
                }
            }
            bytes = rest;
        }
    }
}
