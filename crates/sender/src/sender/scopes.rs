//! The scopes that events name by number: as many as fit, encoded once.

use crate::encode::otlp;
use crate::record::Scope;
use crate::ring::Out;
use std::sync::OnceLock;

/// Scopes at most.
pub(crate) const SCOPES: usize = 64;
/// Name and version at most, together.
const LONGEST: usize = 256;

pub(crate) struct Scopes {
    encoded: Box<[OnceLock<Box<[u8]>>]>,
}

impl Scopes {
    /// With the default scope as number 0.
    pub(crate) fn new(name: &str, version: &str) -> Scopes {
        let scopes = Scopes { encoded: (0..SCOPES).map(|_| OnceLock::new()).collect() };
        let name = if name.is_empty() { "tidegate-sender" } else { name };
        scopes.add(name, version);
        scopes
    }

    pub(crate) const MEMORY: usize = SCOPES * (LONGEST + 32);

    pub(crate) fn add(&self, name: &str, version: &str) -> Scope {
        if name.len() + version.len() > LONGEST {
            return Scope::default();
        }
        let mut encoded = Growing(Vec::new());
        otlp::scope(&mut encoded, name, version);
        for (index, place) in self.encoded.iter().enumerate() {
            // Another thread may have just taken this place, for the same scope or another one.
            let there = place.get_or_init(|| encoded.0.clone().into_boxed_slice());
            if **there == *encoded.0 {
                return Scope(u16::try_from(index).unwrap_or(0));
            }
        }
        Scope::default()
    }

    /// The field of a scope in its message.
    pub(crate) fn encoded(&self, scope: usize) -> &[u8] {
        self.encoded.get(scope).and_then(OnceLock::get).map_or(&[], |encoded| encoded)
    }
}

/// For what is encoded once, before the first event.
pub(crate) struct Growing(pub(crate) Vec<u8>);

impl Out for Growing {
    fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}
