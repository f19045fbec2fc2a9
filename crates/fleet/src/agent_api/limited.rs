//! Lists of JSON that end with an error before they are long.

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// A list of at most `N` entries.
#[derive(Debug)]
pub(super) struct Limited<T, const N: usize>(pub(super) Vec<T>);

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
    fn a_list_is_as_long_as_it_may_be() {
        let read = |json: &str| serde_json::from_str::<Limited<u8, 2>>(json);
        assert_eq!(read("[1,2]").unwrap().0, [1, 2]);
        assert!(read("[1,2,3]").unwrap_err().to_string().contains("more than 2 entries"));
        assert!(serde_json::from_str::<Option<Limited<u8, 2>>>("null").unwrap().is_none());
    }
}
