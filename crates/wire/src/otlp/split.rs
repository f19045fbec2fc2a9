//! Cutting a request that is too large for its receiver, and joining small ones.
//!
//! Joining needs no code: a request is one repeated field, so the bodies of two requests, one after the other,
//! are the body of a request with the resources of both (see [`joinable`]). Cutting is done at resources; at
//! the scopes of a resource that is too large alone; at the items of such a scope; and at the points of such a
//! metric. What encloses the cut (the resource, the scope, the metric's name) is written into each piece. Where that
//! leaves next to no room for anything else, a piece may be longer by what it encloses: it is too long anyhow, and one
//! with a single item each would say the same thousands of times.

use super::Signal;
use crate::output::{Full, Output};
use crate::proto::write::{self, bytes_len};
use crate::proto::{Key, Reader, WireType};

/// Whether the bodies of two requests of this signal, one after the other, are the body of a request with
/// the content of both.
///
/// Profiles refer to a dictionary that their request has only one of, by index: theirs are not.
#[must_use]
pub fn joinable(signal: Signal) -> bool {
    signal != Signal::Profiles
}

/// Levels from the request down to the points of a metric.
const LEVELS: usize = 5;
/// The part of a piece that is for its members in any case, of `max_bytes`.
const FOR_MEMBERS: usize = 8;

/// The pieces of a request.
#[derive(Debug, Clone)]
pub struct Split<'a> {
    signal: Signal,
    max_bytes: usize,
    /// The messages that are being cut, each within the one before, and how far each was read.
    open: [(Level<'a>, Reader<'a>); LEVELS],
    depth: Option<usize>,
}

/// A part of a request that is a request.
#[derive(Debug, Clone, Copy)]
pub struct Piece<'a> {
    signal: Signal,
    levels: [Level<'a>; LEVELS],
    depth: usize,
    /// Whole fields of the innermost level, as they stand in the body.
    members: &'a [u8],
}

/// A message of which only some members go into a piece, and all that is not a member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Level<'a> {
    pub(super) message: &'a [u8],
    /// Its field in the message around it.
    field: u32,
    /// How many bytes of it are not members.
    envelope: usize,
    /// Where those are, if they are in no more stretches than this; otherwise they are looked for again.
    stretches: [&'a [u8]; 3],
    scattered: bool,
}

/// Cuts the checked body `raw` into pieces of at most `max_bytes`. An item that is larger alone (with what
/// encloses it) is a piece by itself, which the caller can tell from [`Piece::len`]; and what encloses more than seven
/// eighths of that, where it has to be cut, has an eighth more. Resources and scopes without items are kept, but not
/// those that are too large themselves.
#[must_use]
pub fn split(signal: Signal, raw: &[u8], max_bytes: usize) -> Split<'_> {
    let request = Level::new(signal, 0, raw, 0);
    Split { signal, max_bytes, open: [(request, Reader::new(raw)); LEVELS], depth: Some(0) }
}

/// How many items are in the checked body `raw`: as [`check`](super::check) counts them, but without
/// looking into them.
#[must_use]
pub fn items(signal: Signal, raw: &[u8]) -> u64 {
    items_at(signal, 0, raw)
}

impl<'a> Iterator for Split<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        loop {
            let depth = self.depth?;
            let (_, mut reader) = *self.open.get(depth)?;
            let Some(first) = next_member(self.signal, depth, &mut reader) else {
                self.depth = depth.checked_sub(1);
                continue;
            };
            let mut piece = self.piece(depth, first.before.until(&reader));
            let (below, most) = (depth + 1, self.most(&piece));
            if piece.len() > most && below < levels(self.signal) {
                let level = Level::new(self.signal, below, first.payload, first.field);
                self.open.get_mut(depth)?.1 = reader;
                *self.open.get_mut(below)? = (level, Reader::new(first.payload));
                self.depth = Some(below);
                continue;
            }
            // As many of those that follow as there is room for.
            let mut ahead = reader;
            while let Some(member) = next_member(self.signal, depth, &mut ahead) {
                let longer = self.piece(depth, first.before.until(&ahead));
                if member.before.offset() != reader.offset() || longer.len() > most {
                    break;
                }
                piece = longer;
                reader = ahead;
            }
            self.open.get_mut(depth)?.1 = reader;
            return Some(piece);
        }
    }
}

impl<'a> Split<'a> {
    /// Passes over the first `items` items, and over what is before the next one without any.
    pub fn skip_items(&mut self, mut items: u64) {
        while items > 0
            && let Some(depth) = self.depth
            && let Some((_, mut reader)) = self.open.get(depth).copied()
        {
            let Some(member) = next_member(self.signal, depth, &mut reader) else {
                self.depth = depth.checked_sub(1);
                continue;
            };
            if let Some((_, place)) = self.open.get_mut(depth) {
                *place = reader;
            }
            let below = depth + 1;
            let is_message = below < levels(self.signal);
            let inside = if is_message { items_at(self.signal, below, member.payload) } else { 1 };
            if inside <= items {
                items -= inside;
            } else if let Some(place) = self.open.get_mut(below) {
                let level = Level::new(self.signal, below, member.payload, member.field);
                *place = (level, Reader::new(member.payload));
                self.depth = Some(below);
            }
        }
    }

    /// Has the pieces that follow be of at most so many bytes.
    pub fn limit(&mut self, max_bytes: usize) {
        self.max_bytes = max_bytes;
    }

    /// The most bytes of the piece that begins like this one.
    fn most(&self, piece: &Piece<'_>) -> usize {
        let enclosing = piece.enclosing();
        let for_members = self.max_bytes / FOR_MEMBERS;
        // At the top nothing encloses, but what no schema knows.
        if piece.depth == 0 || self.max_bytes.saturating_sub(enclosing) >= for_members {
            return self.max_bytes;
        }
        enclosing.saturating_add(for_members)
    }

    fn piece(&self, depth: usize, members: &'a [u8]) -> Piece<'a> {
        Piece { signal: self.signal, levels: self.open.map(|(level, _)| level), depth, members }
    }
}

impl<'a> Piece<'a> {
    /// How many bytes it has.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a piece is never empty")]
    pub fn len(&self) -> usize {
        usize::try_from(self.len_from(0)).unwrap_or(usize::MAX)
    }

    /// How many of its bytes enclose its members: resource, scope, what is said of a metric.
    #[must_use]
    pub fn enclosing(&self) -> usize {
        self.len().saturating_sub(self.members.len())
    }

    /// How many items are in it.
    #[must_use]
    pub fn items(&self) -> u64 {
        items_at(self.signal, self.depth, self.members)
    }

    /// The piece itself, where it stands in the body as it is: then it need not be written.
    #[must_use]
    pub fn as_bytes(&self) -> Option<&'a [u8]> {
        let [request, ..] = &self.levels;
        (self.depth == 0 && request.envelope == 0).then_some(self.members)
    }

    /// Writes it.
    ///
    /// # Errors
    /// [`Full`] when the output is; it then holds a part that is of no use.
    pub fn write(&self, out: &mut impl Output) -> Result<(), Full> {
        for (depth, level) in self.levels.iter().enumerate().take(self.depth + 1) {
            if depth > 0 {
                write::length(out, level.field, self.len_from(depth))?;
            }
            level.write_envelope(self.signal, depth, out)?;
        }
        out.put(self.members)
    }

    /// The length of the message at this depth.
    fn len_from(&self, depth: usize) -> u64 {
        let levels = self.levels.get(depth..=self.depth).unwrap_or_default();
        let inner = self.members.len() as u64;
        let (len, _) = levels.iter().rev().fold((inner, true), |(len, innermost), level| {
            (level.envelope as u64 + if innermost { len } else { bytes_len(len) }, false)
        });
        len
    }
}

impl<'a> Level<'a> {
    pub(super) fn new(signal: Signal, depth: usize, message: &'a [u8], field: u32) -> Self {
        let mut level = Self { message, field, envelope: 0, stretches: [&[]; 3], scattered: false };
        for (number, stretch) in stretches(signal, depth, message).enumerate() {
            level.envelope += stretch.len();
            match level.stretches.get_mut(number) {
                Some(place) => *place = stretch,
                None => level.scattered = true,
            }
        }
        level
    }

    /// Its field in the message around it.
    pub(super) fn field(&self) -> u32 {
        self.field
    }

    /// How many bytes of it are not members.
    pub(super) fn envelope(&self) -> usize {
        self.envelope
    }

    /// Writes all that is not a member.
    pub(super) fn write_envelope(
        &self,
        signal: Signal,
        depth: usize,
        out: &mut impl Output,
    ) -> Result<(), Full> {
        if self.scattered {
            return stretches(signal, depth, self.message).try_for_each(|stretch| out.put(stretch));
        }
        self.stretches.iter().try_for_each(|stretch| out.put(stretch))
    }
}

/// The bytes that are not members, in as many ranges as the members leave.
fn stretches(signal: Signal, depth: usize, message: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut reader = Reader::new(message);
    let mut ended = false;
    let all = std::iter::from_fn(move || {
        if ended {
            return None;
        }
        let from = reader;
        Some(match next_member(signal, depth, &mut reader) {
            Some(member) => from.until(&member.before),
            None => {
                ended = true;
                from.rest()
            }
        })
    });
    all.filter(|stretch| !stretch.is_empty())
}

/// A field that is what its message is about, and not what is said about all of them.
pub(super) struct Member<'a> {
    /// The cursor before it.
    pub(super) before: Reader<'a>,
    pub(super) field: u32,
    pub(super) payload: &'a [u8],
}

/// The next member of a message at this depth; the cursor stands behind it then.
#[inline]
pub(super) fn next_member<'a>(signal: Signal, depth: usize, reader: &mut Reader<'a>) -> Option<Member<'a>> {
    loop {
        let before = *reader;
        let key = reader.key().ok()??;
        if is_member(signal, depth, key) {
            return Some(Member { before, field: key.field, payload: reader.bytes(key).ok()? });
        }
        reader.skip(key).ok()?;
    }
}

pub(super) fn is_member(signal: Signal, depth: usize, key: Key) -> bool {
    let field = key.field;
    key.wire == WireType::Length
        && match depth {
            0 => field == 1,
            1 | 2 => field == 2,
            3 => signal == Signal::Metrics && matches!(field, 5 | 7 | 9 | 10 | 11),
            _ => field == 1,
        }
}

/// How many levels of the signal's requests have members.
pub(super) fn levels(signal: Signal) -> usize {
    if signal == Signal::Metrics { LEVELS } else { LEVELS - 2 }
}

/// Points of an encoded metric.
pub(super) fn items_of_metric(message: &[u8]) -> u64 {
    items_at(Signal::Metrics, 3, message)
}

/// Points of an encoded resource group of metrics.
pub(super) fn items_of_resource(message: &[u8]) -> u64 {
    items_at(Signal::Metrics, 1, message)
}

/// Items in a message of this depth. Calls itself once for each level.
pub(super) fn items_at(signal: Signal, depth: usize, message: &[u8]) -> u64 {
    if depth >= levels(signal) {
        return 1;
    }
    let mut reader = Reader::new(message);
    let mut items = 0;
    while let Some(member) = next_member(signal, depth, &mut reader) {
        let below = depth + 1;
        items += items_at(signal, below, member.payload);
    }
    items
}
