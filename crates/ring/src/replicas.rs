//! The members that hold one key.

use std::fmt;
use std::ops::Deref;

/// The largest replication factor.
pub const MAX_REPLICATION: usize = 7;

/// The members that hold one key, the first replica first.
///
/// A member is there twice if a ring lists its address twice.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Replicas {
    members: [u16; MAX_REPLICATION],
    len: u8,
}

impl Replicas {
    /// Adds a replica; none beyond [`MAX_REPLICATION`].
    pub(crate) fn push(&mut self, member: u16) {
        if let Some(free) = self.members.get_mut(usize::from(self.len)) {
            *free = member;
            self.len += 1;
        }
    }
}

impl Deref for Replicas {
    type Target = [u16];

    fn deref(&self) -> &[u16] {
        self.members.get(..usize::from(self.len)).unwrap_or_default()
    }
}

impl fmt::Debug for Replicas {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl FromIterator<u16> for Replicas {
    fn from_iter<I: IntoIterator<Item = u16>>(members: I) -> Self {
        let mut replicas = Replicas::default();
        members.into_iter().take(MAX_REPLICATION).for_each(|member| replicas.push(member));
        replicas
    }
}
