//! Ids of agents: UUIDs.

use std::fmt;
use std::str::FromStr;

/// The id of an agent: a UUID (RFC 9562).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
// Bytes rather than a number, whose alignment would make everything that has an id larger.
pub struct AgentId([u8; 16]);

/// A text that is no UUID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an id of an agent is a UUID, such as 6f9619ff-8b86-4011-b42d-00cf4fc964ff")]
pub struct InvalidAgentId;

/// Where the hyphens are.
const HYPHENS: [usize; 4] = [8, 13, 18, 23];
const TEXT_LEN: usize = 36;

impl AgentId {
    /// A new one, by chance (version 4).
    pub fn random() -> AgentId {
        let random: u128 = rand::random();
        let number = (random & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
        AgentId(number.to_be_bytes())
    }

    /// Its bytes, as keys of the state have them.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    /// The id with these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> AgentId {
        AgentId(bytes)
    }

    /// A number that spreads ids over `shards`.
    pub fn shard(self, shards: usize) -> usize {
        // Ids may be given by agents, which do not choose them by chance.
        let mixed = xxhash_rust::xxh3::xxh3_64(&self.to_bytes());
        usize::try_from(mixed % shards.max(1) as u64).unwrap_or(0)
    }
}

impl FromStr for AgentId {
    type Err = InvalidAgentId;

    fn from_str(text: &str) -> Result<AgentId, InvalidAgentId> {
        if text.len() != TEXT_LEN {
            return Err(InvalidAgentId);
        }
        let mut number = 0_u128;
        for (at, byte) in text.bytes().enumerate() {
            if HYPHENS.contains(&at) {
                if byte != b'-' {
                    return Err(InvalidAgentId);
                }
                continue;
            }
            let digit = char::from(byte).to_digit(16).ok_or(InvalidAgentId)?;
            number = number << 4 | u128::from(digit);
        }
        Ok(AgentId(number.to_be_bytes()))
    }
}

impl fmt::Display for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = u128::from_be_bytes(self.0);
        let part = |from: u32, digits: u32| number >> (from * 4) & ((1 << (digits * 4)) - 1);
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            part(24, 8),
            part(20, 4),
            part(16, 4),
            part(12, 4),
            part(0, 12)
        )
    }
}

impl fmt::Debug for AgentId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_id_is_read_as_it_is_written(number: u128) {
            let id = AgentId(number.to_be_bytes());
            prop_assert_eq!(id.to_string().parse(), Ok(id));
            prop_assert_eq!(AgentId::from_bytes(id.to_bytes()), id);
        }

        #[test]
        fn other_texts_are_refused(text in "[0-9a-fg-]{30,40}") {
            if let Ok(id) = text.parse::<AgentId>() {
                prop_assert_eq!(id.to_string(), text);
            }
        }
    }

    #[test]
    fn a_random_id_says_that_it_is_random() {
        let id = AgentId::random().to_string();
        assert_eq!(id.as_bytes()[14], b'4', "{id}");
        assert!(b"89ab".contains(&id.as_bytes()[19]), "{id}");
    }
}
