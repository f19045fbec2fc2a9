//! Arrays and maps in each other as JSON, keys sorted, without a call for each level.

use super::text::{BufferFull, Text};
use crate::otlp::attribute::{AnyValue, KeyValue, MAX_DEPTH, next_member};

/// Entries of maps that are open at a time. A label is no place for more: what has them has no room.
const ENTRIES: usize = 1024;
/// Most heap bytes.
pub(super) const BYTES: usize =
    ENTRIES * size_of::<ByteRange>() + MAX_DEPTH.next_power_of_two() * size_of::<Open>();

/// The stack of one value at a time. It holds positions and not slices, so that it can be kept between values.
#[derive(Debug, Default)]
pub(super) struct NestingStack {
    open: Vec<Open>,
    /// The entries of the maps that are open, sorted.
    entries: Vec<ByteRange>,
}

/// A stretch of the outermost array or map.
#[derive(Debug, Clone, Copy)]
struct ByteRange {
    start: u32,
    end: u32,
}

/// An open container.
#[derive(Debug, Clone, Copy)]
enum Open {
    /// An array of which this is left.
    Array { rest: ByteRange, begun: bool },
    /// A map whose entries are those from `first` on, of which `next` comes next.
    Map { first: u32, next: u32 },
}

impl ByteRange {
    /// Where `part` is in `whole`, of which it is a part.
    fn of(whole: &[u8], part: &[u8]) -> Self {
        let start = (part.as_ptr() as usize).saturating_sub(whole.as_ptr() as usize);
        // Bodies are shorter than 4 GiB.
        let narrow = |at: usize| u32::try_from(at).unwrap_or(u32::MAX);
        Self { start: narrow(start), end: narrow(start + part.len()) }
    }

    fn of_whole(self, whole: &[u8]) -> &[u8] {
        whole.get(self.start as usize..self.end as usize).unwrap_or_default()
    }
}

impl NestingStack {
    /// Writes an array or a map.
    pub(super) fn write(&mut self, value: AnyValue<'_>, out: &mut Text) -> Result<(), BufferFull> {
        self.open.clear();
        self.entries.clear();
        let whole = match value {
            AnyValue::Array(array) => array.message(),
            AnyValue::Map(map) => map.message(),
            scalar => return out.json(scalar),
        };
        self.any(whole, value, out)?;
        while let Some(open) = self.open.last_mut() {
            match open {
                Open::Array { rest, begun } => {
                    let mut left = rest.of_whole(whole);
                    let Some(member) = next_member(&mut left) else {
                        self.open.pop();
                        out.put(b"]")?;
                        continue;
                    };
                    *rest = ByteRange::of(whole, left);
                    if std::mem::replace(begun, true) {
                        out.put(b",")?;
                    }
                    self.any(whole, AnyValue::read(member).unwrap_or(AnyValue::Empty), out)?;
                }
                Open::Map { first, next } => {
                    let Some(entry) = self.entries.get(*next as usize) else {
                        self.entries.truncate(*first as usize);
                        self.open.pop();
                        out.put(b"}")?;
                        continue;
                    };
                    if next > first {
                        out.put(b",")?;
                    }
                    *next += 1;
                    let entry = KeyValue::read(entry.of_whole(whole));
                    let Some(KeyValue { key, value }) = entry else { continue };
                    out.json_string(key)?;
                    out.put(b":")?;
                    self.any(whole, value, out)?;
                }
            }
        }
        Ok(())
    }

    /// Writes a value, or opens it. What nests deeper than a checked body is `null`.
    fn any(&mut self, whole: &[u8], value: AnyValue<'_>, out: &mut Text) -> Result<(), BufferFull> {
        match value {
            AnyValue::Array(_) | AnyValue::Map(_) if self.open.len() >= MAX_DEPTH => out.put(b"null"),
            AnyValue::Array(array) => {
                self.open.push(Open::Array { rest: ByteRange::of(whole, array.message()), begun: false });
                out.put(b"[")
            }
            AnyValue::Map(map) => {
                let first = self.entries.len();
                let mut rest = map.message();
                while let Some(member) = next_member(&mut rest) {
                    if self.entries.len() >= ENTRIES {
                        return Err(BufferFull);
                    }
                    self.entries.push(ByteRange::of(whole, member));
                }
                self.sort(whole, first);
                // Fewer than `ENTRIES`.
                let first = u32::try_from(first).unwrap_or(u32::MAX);
                self.open.push(Open::Map { first, next: first });
                out.put(b"{")
            }
            scalar => out.json(scalar),
        }
    }

    /// Sorts the entries from `first` on by their keys; of one key the last stays.
    fn sort(&mut self, whole: &[u8], first: usize) {
        let key =
            |entry: &ByteRange| KeyValue::read(entry.of_whole(whole)).map_or(&[][..], |entry| entry.key);
        let Some(entries) = self.entries.get_mut(first..) else { return };
        // The last of one key comes first, and is the one that stays.
        entries.sort_unstable_by(|one, two| key(one).cmp(key(two)).then(two.start.cmp(&one.start)));
        let mut kept = 0usize;
        for at in 0..entries.len() {
            let Some(entry) = entries.get(at).copied() else { break };
            let before = kept.checked_sub(1).and_then(|before| entries.get(before));
            if before.is_some_and(|before| key(before) == key(&entry)) {
                continue;
            }
            if let Some(place) = entries.get_mut(kept) {
                *place = entry;
                kept += 1;
            }
        }
        self.entries.truncate(first + kept);
    }
}
