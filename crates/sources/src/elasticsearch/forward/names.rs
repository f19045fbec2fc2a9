//! The names of a body's items, kept after the body.

use crate::elasticsearch::answer::Name;
use crate::elasticsearch::rewrite::Defaults;
use tidegate_arena::{Arena, Share, Window};
use tidegate_wire::bulk::{Kind, checked_items};

/// The most bytes of names that are kept on the heap.
const FEW: usize = 1 << 10;
/// How many bytes come before a name: the kind, and two lengths.
const HEAD: usize = 9;

/// The names of a body's items, when the body is gone.
pub(super) enum Names {
    /// Few: within what a waiting request is charged for beside them.
    Few(Vec<u8>),
    Many(Window),
}

impl Names {
    /// Nothing where there is no memory for them, or they take most of the body.
    pub(super) fn of(arena: &Arena, body: &[u8], defaults: &Defaults) -> Option<Names> {
        let all = || checked_items(body).flatten().map(|item| Name::of(&item, defaults));
        let len: usize = all().map(|name| HEAD + name.index.len() + name.id.len()).sum();
        if len > body.len() / 2 {
            return None;
        }
        let mut names = match len <= FEW {
            true => Names::Few(Vec::with_capacity(len)),
            false => Names::Many(arena.try_window(Share::Ingest, len).ok()?),
        };
        for Name { kind, index, id } in all() {
            let at = Kind::ALL.iter().position(|known| *known == kind).unwrap_or_default();
            // A body is shorter than 4 GiB.
            let length = |text: &[u8]| u32::try_from(text.len()).unwrap_or(u32::MAX).to_le_bytes();
            for part in [&[at as u8][..], &length(index), &length(id), index, id] {
                match &mut names {
                    Names::Few(bytes) => bytes.extend_from_slice(part),
                    Names::Many(window) => window.append(part).ok()?,
                }
            }
        }
        Some(names)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Name<'_>> {
        let mut rest: &[u8] = match self {
            Names::Few(bytes) => bytes,
            Names::Many(window) => window,
        };
        std::iter::from_fn(move || {
            let (head, behind) = rest.split_first_chunk::<HEAD>()?;
            let [at, a, b, c, d, e, f, g, h] = *head;
            let length = |bytes| u32::from_le_bytes(bytes) as usize;
            let (index, behind) = behind.split_at_checked(length([a, b, c, d]))?;
            let (id, behind) = behind.split_at_checked(length([e, f, g, h]))?;
            rest = behind;
            Some(Name { kind: *Kind::ALL.get(usize::from(at))?, index, id })
        })
    }
}
