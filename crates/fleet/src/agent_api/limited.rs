//! Lists and texts of JSON that end with an error before they are long.

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// A list of at most `N` entries.
#[derive(Debug)]
pub(super) struct Limited<T, const N: usize>(pub(super) Vec<T>);

/// A text of at most [`LONGEST_TEXT`] bytes. The body is charged, and copies of its texts are not.
#[derive(Debug)]
pub(super) struct ShortText(pub(super) String);

/// The longest text that is copied from a body, in bytes.
const LONGEST_TEXT: usize = 512;

struct ShortTextVisitor;

impl<'de> Deserialize<'de> for ShortText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(ShortTextVisitor)
    }
}

impl Visitor<'_> for ShortTextVisitor {
    type Value = ShortText;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a text of at most {LONGEST_TEXT} bytes")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ShortText, E> {
        match text.len() <= LONGEST_TEXT {
            true => Ok(ShortText(text.to_owned())),
            false => Err(E::custom(format!("a text has more than {LONGEST_TEXT} bytes"))),
        }
    }
}

struct LimitedVisitor<T, const N: usize>(PhantomData<T>);

impl<'de, T: Deserialize<'de>, const N: usize> Deserialize<'de> for Limited<T, N> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(LimitedVisitor(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>, const N: usize> Visitor<'de> for LimitedVisitor<T, N> {
    type Value = Limited<T, N>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a list of at most {N} entries")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut entries: A) -> Result<Self::Value, A::Error> {
        let mut list = Vec::new();
        while let Some(entry) = entries.next_element()? {
            if list.len() == N {
                return Err(A::Error::custom(format!("a list has more than {N} entries")));
            }
            list.push(entry);
        }
        Ok(Limited(list))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_as_long_as_it_may_be() {
        let read = |len: usize| serde_json::from_str::<ShortText>(&format!("\"{}\"", "x".repeat(len)));
        assert_eq!(read(LONGEST_TEXT).unwrap().0.len(), LONGEST_TEXT);
        assert!(read(LONGEST_TEXT + 1).unwrap_err().to_string().contains("more than 512 bytes"));
        assert_eq!(serde_json::from_str::<ShortText>("\"a\\nb\"").unwrap().0, "a\nb");
    }

    #[test]
    fn a_list_is_as_long_as_it_may_be() {
        let read = |json: &str| serde_json::from_str::<Limited<u8, 2>>(json);
        assert_eq!(read("[1,2]").unwrap().0, [1, 2]);
        assert!(read("[1,2,3]").unwrap_err().to_string().contains("more than 2 entries"));
        assert!(serde_json::from_str::<Option<Limited<u8, 2>>>("null").unwrap().is_none());
    }
}
