//! The pairs of an object, noted when it is parsed, for who would have to read them from its map.

use super::{PARSE_JSON, parse};
use crate::any_value::Entry;
use crate::functions::all;
use crate::functions::encoded::Text;
use crate::key_index::KeyFilter;
use crate::machine::{Machine, Spare};
use crate::memory::{Mark, Room, Slice};
use crate::ottl::program::{Argument, Expression};
use crate::value::{Failure, Kind, Value};

/// The map of an argument. With a filter of its keys if `machine.spare.pairs` are its pairs, which spares who needs them to read
/// it.
pub(in crate::functions) fn map_and_pairs(
    machine: &mut Machine<'_>,
    argument: &Argument,
) -> Result<(Slice, Option<KeyFilter>), Failure> {
    match argument {
        Argument::Value(Expression::Call(call)) if std::ptr::eq(call.function, &raw const PARSE_JSON) => {
            let [target] = all(&call.arguments)?;
            let mut pairs = std::mem::take(&mut machine.spare.pairs);
            pairs.clear();
            let mut notes = Notes {
                pairs: &mut pairs,
                start: machine.memory.mark(),
                is_whole: true,
                keys: KeyFilter::default(),
            };
            let value = parse(machine, target, Some(&mut notes));
            let keys = notes.is_whole.then_some(notes.keys);
            machine.spare.pairs = pairs;
            match value? {
                Value::Map(map) => Ok((map, keys)),
                other => Err(Failure::Type { wanted: Kind::Map, found: other.kind() }),
            }
        }
        argument => machine.map_content(argument).map(|map| (map, None)),
    }
}

/// The pairs that an object becomes.
pub(super) struct Notes<'n> {
    pairs: &'n mut Vec<Entry>,
    pub(super) start: Mark,
    /// Whether they are all there, and where they were noted.
    pub(super) is_whole: bool,
    /// The keys, when all are there.
    pub(super) keys: KeyFilter,
}

/// The value of a member that was written. What has a length is so many bytes, at the end.
pub(super) enum Written {
    Plain(Value),
    Text(usize),
    List(usize),
    Map(usize),
}

impl Notes<'_> {
    /// Notes the pair that was written from `start` to the end.
    #[inline(always)]
    pub(super) fn note(&mut self, room: &Room<'_>, start: usize, name: Text<'_>, written: &Written) {
        let raw = self.start.slice(start, room.len());
        let end = raw.len as usize;
        let value = match *written {
            Written::Plain(value) => value,
            Written::Text(len) => Value::Text(raw.part(end - len, end)),
            Written::List(len) => Value::List(raw.part(end - len, end)),
            Written::Map(len) => Value::Map(raw.part(end - len, end)),
        };
        // The tag and the length of the pair, and of the key.
        let head = match end {
            0..0x82 => 2 + 2,
            0x82..0x4003 => 3 + 2,
            _ => 0,
        };
        let has_room = self.pairs.len() < self.pairs.capacity().min(Spare::PAIRS);
        if has_room && head > 0 && name.len() < 0x80 {
            self.pairs.push(Entry { key: raw.part(head, head + name.len()), value, raw });
        } else {
            self.is_whole = false;
        }
    }
}
