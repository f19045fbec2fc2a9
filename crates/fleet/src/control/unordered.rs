//! A hash of JSON that does not depend on the order of what is in it: agents put their components together from maps, in another order
//! each time.

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// The hash. Neither the order of the members of an object counts nor that of the elements of an array.
pub(super) fn unordered_hash(json: &RawValue) -> u64 {
    let mut reader = serde_json::Deserializer::from_str(json.get());
    // What is nested too deeply for the reader is compared as it is written.
    Hash.deserialize(&mut reader).unwrap_or_else(|_| xxh3_64(json.get().as_bytes()))
}

/// Reads a value, and keeps its hash alone.
#[derive(Clone, Copy)]
struct Hash;

impl<'de> DeserializeSeed<'de> for Hash {
    type Value = u64;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<u64, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Hash {
    type Value = u64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<u64, E> {
        Ok(xxh3_64_with_seed(b"", 1))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<u64, E> {
        Ok(xxh3_64_with_seed(&[u8::from(value)], 2))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
        Ok(xxh3_64_with_seed(&value.to_le_bytes(), 3))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
        Ok(xxh3_64_with_seed(&value.to_le_bytes(), 3))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<u64, E> {
        Ok(xxh3_64_with_seed(&value.to_bits().to_le_bytes(), 4))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u64, E> {
        Ok(xxh3_64_with_seed(text.as_bytes(), 5))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<u64, A::Error> {
        let mut sum = 6_u64;
        while let Some(element) = elements.next_element_seed(Hash)? {
            sum = sum.wrapping_add(mixed(element));
        }
        Ok(mixed(sum))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<u64, A::Error> {
        let mut sum = 7_u64;
        while let Some(name) = members.next_key::<Cow<'de, str>>()? {
            let value: u64 = members.next_value_seed(Hash)?;
            sum = sum.wrapping_add(xxh3_64_with_seed(name.as_bytes(), value));
        }
        Ok(mixed(sum))
    }
}

/// So that sums of hashes do not cancel each other.
fn mixed(hash: u64) -> u64 {
    xxh3_64_with_seed(&hash.to_le_bytes(), 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash(json: &str) -> u64 {
        unordered_hash(&RawValue::from_string(json.to_owned()).unwrap())
    }

    #[test]
    fn only_order_makes_no_difference() {
        let one =
            r#"[{"id": "a", "units": [{"id": 1, "type": "in"}, {"id": 2, "type": "out"}]}, {"id": "b"}]"#;
        let other = r#"[{"id":"b"},{"units":[{"type":"out","id":2},{"type":"in","id":1}],"id":"a"}]"#;
        assert_eq!(hash(one), hash(other));
        for different in [
            r#"[{"id": "a", "units": [{"id": 1, "type": "out"}, {"id": 2, "type": "in"}]}, {"id": "b"}]"#,
            r#"[{"id": "a", "units": [{"id": 1, "type": "in"}]}, {"id": "b", "units": [{"id": 2, "type": "out"}]}]"#,
            r#"[{"id": "a", "units": [{"id": 1, "type": "in"}, {"id": 2, "type": "out"}]}]"#,
            r#"[]"#,
        ] {
            assert_ne!(hash(one), hash(different), "{different}");
        }
        assert_ne!(hash(r#"[1, 1]"#), hash(r#"[2, 2]"#));
        assert_ne!(hash(r#"{"a": "b"}"#), hash(r#"{"b": "a"}"#));
        assert_ne!(hash(r#"["1"]"#), hash("[1]"));
        assert_ne!(hash("[[], []]"), hash("[[[]]]"));
        let deep = "[".repeat(500) + &"]".repeat(500);
        assert_eq!(hash(&deep), hash(&deep));
    }
}
