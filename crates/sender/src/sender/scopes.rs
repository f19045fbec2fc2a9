//! The scopes that events name by number: as many as fit, encoded once.

use crate::encode::otlp;
use crate::record::Scope;
use crate::ring::EventOutput;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Scopes at most.
pub(crate) const SCOPES: usize = 64;
/// Name and version at most, together.
const LONGEST: usize = 256;

pub(crate) struct Scopes {
    encoded: Box<[OnceLock<Box<[u8]>>]>,
    /// The first place that nobody has.
    next: AtomicUsize,
}

impl Scopes {
    /// With the default scope as number 0.
    pub(crate) fn new(name: &str, version: &str) -> Scopes {
        let scopes =
            Scopes { encoded: (0..SCOPES).map(|_| OnceLock::new()).collect(), next: AtomicUsize::new(0) };
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
        let known =
            self.encoded.iter().position(|place| place.get().is_some_and(|known| **known == *encoded.0));
        let index = known.or_else(|| {
            let index = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |next| {
                (next < SCOPES).then_some(next + 1)
            });
            let index = index.ok()?;
            // Nobody else has this place, so nobody waits for another thread here, which a forked child may
            // not have. Two that add the same scope at the same time get two places.
            self.encoded.get(index)?.set(encoded.0.into_boxed_slice()).ok()?;
            Some(index)
        });
        Scope(index.and_then(|index| u16::try_from(index).ok()).unwrap_or(0))
    }

    /// The field of a scope in its message.
    pub(crate) fn encoded(&self, scope: usize) -> &[u8] {
        self.encoded.get(scope).and_then(OnceLock::get).map_or(&[], |encoded| encoded)
    }
}

/// For what is encoded once, before the first event.
pub(crate) struct Growing(pub(crate) Vec<u8>);

impl EventOutput for Growing {
    fn put(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }
}
