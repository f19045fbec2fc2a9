//! Formats of log lines, as the transform processor of the Collector reads them: CEF, LEEF, the Common and the Extended Log
//! Format. Their names have dots: `cef.version`.

mod cef;
mod clf;
mod elf;
mod leef;

use super::encoded::{ELEMENT, KEY, MAP, Opening, VALUE, close, open};
use super::members::{Known, Names, finish, remove_from};
use super::{all, converter, optional, required};
use crate::memory::Room;
use crate::ottl::signature::Signature;
use crate::value::Failure;
use tidegate_wire::output::Output;
use tidegate_wire::proto::write;

pub(super) static CONVERTERS: &[&Signature] =
    &[&cef::PARSE_CEF, &clf::PARSE_CLF, &elf::PARSE_ELF, &leef::PARSE_LEEF];

/// A map of texts that is being written at the end of the room. Of entries with the same key the last counts.
struct Texts<'r, 'm> {
    room: &'r mut Room<'m>,
    /// Where the map begins.
    begin: usize,
    /// Where the text of the next entry begins.
    start: usize,
    names: Names,
}

impl<'r, 'm> Texts<'r, 'm> {
    fn new(room: &'r mut Room<'m>) -> Texts<'r, 'm> {
        let start = room.len();
        Texts { room, begin: start, start, names: Names::default() }
    }

    /// Appends to the text of the next entry.
    fn text(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        Ok(self.room.put(bytes)?)
    }

    /// Makes an entry of the text.
    fn entry(&mut self, key: &[u8]) -> Result<(), Failure> {
        if self.names.add(key) == Known::Maybe {
            self.start -= remove_from(self.room, self.begin..self.start, key);
        }
        finish(self.room, self.start, key)?;
        self.start = self.room.len();
        Ok(())
    }

    /// Makes an entry of `text`.
    fn put(&mut self, key: &[u8], text: &[u8]) -> Result<(), Failure> {
        self.text(text)?;
        self.entry(key)
    }

    /// Ends the map.
    fn end(self) -> Result<(), Failure> {
        self.names.settle(self.room, self.begin)
    }
}

/// Begins an entry whose value is a map or a list, by its field in `AnyValue`.
fn open_entry(room: &mut Room<'_>, key: &[u8], field: u32) -> Result<[Opening; 3], Failure> {
    let entry = open(room, ELEMENT)?;
    write::bytes(room, KEY, key)?;
    let value = open(room, VALUE)?;
    Ok([entry, value, open(room, field)?])
}

/// Begins an element of a list that is a map.
fn open_map(room: &mut Room<'_>) -> Result<[Opening; 2], Failure> {
    Ok([open(room, ELEMENT)?, open(room, MAP)?])
}

/// Ends what was begun, the innermost first.
fn close_all<const N: usize>(room: &mut Room<'_>, openings: [Opening; N]) -> Result<(), Failure> {
    openings.into_iter().rev().try_for_each(|opening| close(room, opening))
}
