//! What an agent says of itself: attributes as texts, of bounded length.

use super::read::{each, text};
use std::collections::BTreeMap;
use tidegate_wire::proto::{Malformed, Reader};

/// Bytes of all keys and values together. What is beyond is left out.
const LONGEST: usize = 4 << 10;

/// Attributes by key, identifying and others.
#[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub(crate) struct Attributes(pub(crate) BTreeMap<String, String>);

impl Attributes {
    /// Reads an agent's description: first the identifying attributes, so that others take no room from them.
    ///
    /// # Errors
    /// Where it is malformed.
    pub(crate) fn read(description: &[u8]) -> Result<Attributes, Malformed> {
        let mut attributes = Attributes::default();
        let mut left = LONGEST;
        for field in [1, 2] {
            each(&mut Reader::new(description), field, |mut pair| {
                let (mut name, mut value) = ("", None);
                while let Some(key) = pair.key()? {
                    match key.field {
                        1 => name = text(pair.bytes(key)?),
                        2 => value = scalar(pair.message(key)?)?,
                        _ => pair.skip(key)?,
                    }
                }
                let Some(value) = value else { return Ok(()) };
                let len = name.len() + value.len();
                if !name.is_empty() && len <= left && !attributes.0.contains_key(name) {
                    left -= len;
                    attributes.0.insert(name.to_owned(), value);
                }
                Ok(())
            })?;
        }
        Ok(attributes)
    }

    /// Whether all labels are among them.
    pub(crate) fn have_all(&self, labels: &BTreeMap<String, String>) -> bool {
        labels.iter().all(|(key, value)| self.0.get(key) == Some(value))
    }
}

/// A text, a number or a truth value as text; nothing for what has parts.
fn scalar(mut reader: Reader<'_>) -> Result<Option<String>, Malformed> {
    let mut value = None;
    while let Some(key) = reader.key()? {
        value = match key.field {
            1 => {
                let text = text(reader.bytes(key)?);
                (text.len() <= LONGEST).then(|| text.to_owned())
            }
            2 => Some((reader.varint(key)? != 0).to_string()),
            3 => Some(reader.varint(key)?.cast_signed().to_string()),
            4 => Some(f64::from_bits(reader.fixed64(key)?).to_string()),
            _ => {
                reader.skip(key)?;
                value
            }
        };
    }
    Ok(value)
}
