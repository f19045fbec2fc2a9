//! The answer to a `_bulk`: an entry for each item, in the shape that Elasticsearch gives to it.
//!
//! It is written while the body is checked, and paid for before the body is kept: so whoever is told that it was
//! kept is told so in full.

use super::fields::{Field, Fields};
use super::rewrite::Defaults;
use super::rights::Denied;
use tidegate_admission::{Gate, Rejection, elastic};
use tidegate_arena::{Arena, ChargeError as NoMemory, Share, Window};
use tidegate_http1::Reply;
use tidegate_wire::bulk::{Item, Kind, LineError};
use tidegate_wire::json;
use tidegate_wire::output::{Full, Output, SliceOutput};

/// The size of an entry without the names in it.
const ENTRY: usize = 384;
/// The same of an entry with an error in words of our own.
const SHORT_ENTRY: usize = 320;
/// How much the window grows at a time, at least.
const GROWTH: usize = 64 << 10;
/// Largest size of the text before the entries, and after them.
const FRAME: usize = 64;
const NO_ERRORS: &[u8] = b"\"errors\":false";
const ERRORS: &[u8] = b"\"errors\":true ";
/// Digits come at its end.
const TOOK: &[u8] = b"\"took\":         0";

/// An answer without its content.
pub(super) fn reply() -> Reply {
    Reply::new(200).content_type("application/json").headers(elastic::HEADERS)
}

/// The request's memory besides its answer: of the bodies' share, and of the decode share; and the length of its
/// body.
#[derive(Clone, Copy)]
pub(super) struct ReservedBytes {
    pub(super) ingest: usize,
    pub(super) decode: usize,
    pub(super) len: usize,
}

impl ReservedBytes {
    /// Why there were no `more` bytes beside that, with which nobody waits for more.
    pub(super) fn short(self, gate: &Gate, refused: NoMemory, more: usize) -> Rejection {
        gate.memory_rejection(refused, self.ingest.saturating_add(more), self.decode, self.len / 2)
    }
}

/// The entry of an item.
#[derive(Clone, Copy)]
pub(super) struct Name<'a> {
    pub(super) kind: Kind,
    /// As in the action, or in the address.
    pub(super) index: &'a [u8],
    /// As in the action.
    pub(super) id: &'a [u8],
}

impl<'a> Name<'a> {
    pub(super) fn of(item: &Item<'a>, defaults: &'a Defaults) -> Name<'a> {
        let index = item.action.index.or(defaults.index()).unwrap_or(b"null");
        Name { kind: item.action.kind, index, id: item.action.id.unwrap_or(b"null") }
    }

    /// How many bytes a short entry takes at most: without words of the destination.
    pub(super) fn entry_len(&self) -> usize {
        SHORT_ENTRY + self.index.len() + self.id.len() + 2
    }
}

/// An answer being written.
pub(super) struct Answer {
    window: Window,
    beside: ReservedBytes,
    fields: Fields,
    /// Where it says whether there are errors.
    errors_at: Option<usize>,
    errors: bool,
    entries: bool,
}

impl Answer {
    /// An answer to a request that holds what `beside` says.
    pub(super) fn new(
        arena: &Arena,
        gate: &Gate,
        fields: Fields,
        beside: ReservedBytes,
    ) -> Result<Answer, Rejection> {
        // Entries are about as long as small documents are, and shorter than others; it grows where they are not.
        let room = FRAME + ENTRY + beside.len / 8;
        let window =
            arena.try_window(Share::Ingest, room).or_else(|_| arena.try_window(Share::Ingest, GROWTH));
        let window = window.map_err(|refused| beside.short(gate, refused, GROWTH))?;
        let mut answer = Answer { window, beside, fields, errors_at: None, errors: false, entries: false };
        answer.put(gate, |out, fields| {
            out.put(b"{")?;
            if fields.has(Field::Errors) {
                out.put(NO_ERRORS)?;
            }
            if fields.has(Field::Took) {
                out.put(if fields.has(Field::Errors) { b",\"took\":0" } else { b"\"took\":0" })?;
            }
            Ok(())
        })?;
        answer.errors_at = fields.has(Field::Errors).then_some(1);
        Ok(answer)
    }

    /// An answer with room for short entries of `promised` bytes in all, of a request whose items are forwarded.
    pub(super) fn promised(
        arena: &Arena,
        gate: &Gate,
        fields: Fields,
        beside: ReservedBytes,
        promised: usize,
    ) -> Result<Answer, Rejection> {
        let window = arena.try_window(Share::Ingest, 3 * FRAME + promised);
        let window = window.map_err(|refused| beside.short(gate, refused, promised))?;
        let mut answer = Answer { window, beside, fields, errors_at: None, errors: false, entries: false };
        answer.put(gate, |out, fields| {
            out.put(b"{")?;
            if fields.has(Field::Errors) {
                out.put(NO_ERRORS)?;
            }
            if fields.has(Field::Took) {
                out.put(if fields.has(Field::Errors) { b"," } else { b"" })?;
                out.put(TOOK)?;
            }
            Ok(())
        })?;
        answer.errors_at = fields.has(Field::Errors).then_some(1);
        Ok(answer)
    }

    /// Writes the destination's answer for an item: `element`, or its selected fields. `promised` is the space that
    /// later entries need. Returns false, with nothing written, if the rest is too small.
    pub(super) fn element(&mut self, element: &[u8], failed: bool, promised: usize) -> bool {
        let len = element.len() + 2 * FRAME;
        let needed = len + promised + FRAME;
        if self.window.spare() < needed
            && self.window.try_reserve(needed.max(promised + GROWTH)).is_err()
            && self.window.try_reserve(needed).is_err()
        {
            return false;
        }
        self.errors |= failed;
        let (fields, before) = (self.fields, self.before());
        let mut out = SliceOutput::new(self.window.spare_mut());
        let written = out.put(before).and_then(|()| wanted(element, fields, &mut out));
        if let Ok(true) = written {
            let len = out.len();
            self.window.advance(len);
            self.entries = true;
        }
        written.is_ok()
    }

    /// Writes the outcome of an item whose element is missing from the destination's response, or incomplete: an
    /// error, if there is one, with its type and reason.
    pub(super) fn short(
        &mut self,
        gate: &Gate,
        name: Name<'_>,
        status: u16,
        error: Option<(&str, &str)>,
    ) -> Result<(), Rejection> {
        self.errors |= error.is_some();
        let digits = status.to_string();
        self.entry(gate, name, name.entry_len(), |entry| {
            entry.value(Field::Status, b"\"status\":", digits.as_bytes())?;
            let Some((kind, reason)) = error.filter(|_| entry.fields.has(Field::Error)) else {
                return Ok(());
            };
            entry.raw(Field::Error, b"\"error\":{\"type\":")?;
            json::string(kind.as_bytes(), |piece| entry.out.put(piece))?;
            entry.out.put(b",\"reason\":")?;
            json::string(reason.as_bytes(), |piece| entry.out.put(piece))?;
            entry.out.put(b"}")
        })
    }

    /// How many milliseconds it took.
    pub(super) fn took(&mut self, milliseconds: u128) {
        let Some(end) = self
            .fields
            .has(Field::Took)
            .then(|| 1 + if self.fields.has(Field::Errors) { NO_ERRORS.len() + 1 } else { 0 } + TOOK.len())
        else {
            return;
        };
        let digits = milliseconds.min(9_999_999_999).to_string();
        if let Some(place) = self.window.get_mut(end - digits.len()..end) {
            place.copy_from_slice(digits.as_bytes());
        }
    }

    /// The separator before the next entry, without its bracket.
    fn before(&self) -> &'static [u8] {
        let begun = self.fields.has(Field::Errors) || self.fields.has(Field::Took);
        match (self.entries, begun) {
            (true, _) => b",",
            (false, false) => b"\"items\":[",
            (false, true) => b",\"items\":[",
        }
    }

    /// The item is taken.
    pub(super) fn accept(
        &mut self,
        gate: &Gate,
        item: &Item<'_>,
        defaults: &Defaults,
    ) -> Result<(), Rejection> {
        let (result, status): (&[u8], &[u8]) = match item.action.kind {
            Kind::Index | Kind::Create => (b"created", b"201"),
            Kind::Update => (b"updated", b"200"),
            Kind::Delete => (b"deleted", b"200"),
        };
        self.entry(gate, Name::of(item, defaults), ENTRY, |entry| {
            entry.raw(Field::Version, b"\"_version\":1")?;
            entry.raw(Field::Result, b"\"result\":\"")?;
            if entry.fields.has(Field::Result) {
                entry.out.put(result)?;
                entry.out.put(b"\"")?;
            }
            entry.raw(Field::Shards, b"\"_shards\":{\"total\":1,\"successful\":1,\"failed\":0}")?;
            entry.raw(Field::SeqNo, b"\"_seq_no\":0")?;
            entry.raw(Field::PrimaryTerm, b"\"_primary_term\":1")?;
            entry.value(Field::Status, b"\"status\":", status)
        })
    }

    /// The item is left out, since its document is none.
    pub(super) fn reject(
        &mut self,
        gate: &Gate,
        item: &Item<'_>,
        defaults: &Defaults,
        error: LineError,
    ) -> Result<(), Rejection> {
        self.errors = true;
        // The words of an error have nothing that JSON escapes.
        let reason = format!("[line {}] failed to parse: {error}", item.number.saturating_add(1));
        self.entry(gate, Name::of(item, defaults), ENTRY, |entry| {
            entry.value(Field::Status, b"\"status\":", b"400")?;
            entry.raw(Field::Error, b"\"error\":{\"type\":\"document_parsing_exception\",\"reason\":\"")?;
            if entry.fields.has(Field::Error) {
                entry.out.put(reason.as_bytes())?;
                entry.out.put(b"\"}")?;
            }
            Ok(())
        })
    }

    /// The item is left out, since its sender may not do that.
    pub(super) fn deny(
        &mut self,
        gate: &Gate,
        item: &Item<'_>,
        defaults: &Defaults,
        denied: Denied,
    ) -> Result<(), Rejection> {
        self.errors = true;
        self.entry(gate, Name::of(item, defaults), ENTRY, |entry| {
            entry.value(Field::Status, b"\"status\":", b"403")?;
            entry.raw(Field::Error, b"\"error\":{\"type\":\"security_exception\",\"reason\":\"")?;
            if entry.fields.has(Field::Error) {
                entry.out.put(denied.reason().as_bytes())?;
                entry.out.put(b"\"}")?;
            }
            Ok(())
        })
    }

    /// The whole answer.
    pub(super) fn finish(mut self, gate: &Gate) -> Result<Window, Rejection> {
        if let Some(at) = self.errors_at.filter(|_| self.errors) {
            let place = self.window.get_mut(at..at + ERRORS.len()).unwrap_or_default();
            place.iter_mut().zip(ERRORS).for_each(|(to, from)| *to = *from);
        }
        let entries = self.entries;
        self.put(gate, |out, _| out.put(if entries { b"]}" } else { b"}" }))?;
        Ok(self.window)
    }

    /// An entry that takes `most` bytes beside its names.
    fn entry(
        &mut self,
        gate: &Gate,
        name: Name<'_>,
        most: usize,
        rest: impl Fn(&mut Entry<'_, '_>) -> Result<(), Full>,
    ) -> Result<(), Rejection> {
        let Name { kind, index, id } = name;
        self.make_room(gate, most + index.len() + id.len() + 2)?;
        let (fields, before) = (self.fields, self.before());
        let mut out = SliceOutput::new(self.window.spare_mut());
        let mut write = || {
            out.put(before)?;
            out.put(b"{\"")?;
            out.put(kind.name().as_bytes())?;
            out.put(b"\":{")?;
            let empty = out.len();
            let mut entry = Entry { out: &mut out, fields, first: true };
            entry.value(Field::Index, b"\"_index\":", index)?;
            entry.id(id)?;
            rest(&mut entry)?;
            let is_empty = out.len() == empty;
            out.put(b"}}")?;
            Ok::<bool, Full>(is_empty)
        };
        // Empty parts are left out, as Elasticsearch does when it filters.
        let is_empty = write().map_err(|_| gate.no_memory())?;
        if !is_empty {
            let len = out.len();
            self.window.advance(len);
            self.entries = true;
        }
        Ok(())
    }

    fn put(
        &mut self,
        gate: &Gate,
        write: impl FnOnce(&mut SliceOutput<'_>, Fields) -> Result<(), Full>,
    ) -> Result<(), Rejection> {
        self.make_room(gate, FRAME)?;
        let mut out = SliceOutput::new(self.window.spare_mut());
        write(&mut out, self.fields).map_err(|_| gate.no_memory())?;
        let len = out.len();
        self.window.advance(len);
        Ok(())
    }

    /// Holding the body, it does not wait.
    fn make_room(&mut self, gate: &Gate, bytes: usize) -> Result<(), Rejection> {
        if self.window.spare() >= bytes {
            return Ok(());
        }
        let grown = self.window.try_reserve(bytes.max(GROWTH)).or_else(|_| self.window.try_reserve(bytes));
        grown.map_err(|refused| self.beside.short(gate, refused, self.window.len().saturating_add(bytes)))
    }

    /// The request's total memory, including this.
    pub(super) fn beside(&self) -> ReservedBytes {
        ReservedBytes { ingest: self.beside.ingest.saturating_add(self.window.charged()), ..self.beside }
    }
}

/// One entry being written.
struct Entry<'a, 's> {
    out: &'a mut SliceOutput<'s>,
    fields: Fields,
    first: bool,
}

impl Entry<'_, '_> {
    /// `text` if the field is wanted, with what stands between it and the one before.
    fn raw(&mut self, field: Field, text: &[u8]) -> Result<(), Full> {
        if !self.fields.has(field) {
            return Ok(());
        }
        if !self.first {
            self.out.put(b",")?;
        }
        self.first = false;
        self.out.put(text)
    }

    fn value(&mut self, field: Field, name: &[u8], value: &[u8]) -> Result<(), Full> {
        self.raw(field, name)?;
        if self.fields.has(field) { self.out.put(value) } else { Ok(()) }
    }

    /// The id as it was sent; one that is a number becomes a text.
    fn id(&mut self, id: &[u8]) -> Result<(), Full> {
        let is_number = matches!(id.first(), Some(b'-' | b'0'..=b'9'));
        self.raw(Field::Id, b"\"_id\":")?;
        if !self.fields.has(Field::Id) {
            return Ok(());
        }
        if is_number {
            self.out.put(b"\"")?;
        }
        self.out.put(id)?;
        if is_number { self.out.put(b"\"") } else { Ok(()) }
    }
}

/// Writes an element of a response, or its wanted fields. Returns false, with nothing of it written, when none of them is
/// there.
fn wanted(element: &[u8], fields: Fields, out: &mut SliceOutput<'_>) -> Result<bool, Full> {
    if fields == Fields::ALL {
        out.put(element)?;
        return Ok(true);
    }
    let mut any = false;
    let read = tidegate_bulk::response::each_field(element, |action, name, value| {
        if !Field::named(name).is_some_and(|field| fields.has(field)) {
            return Ok(());
        }
        if any {
            out.put(b",\"")?;
        } else {
            out.put(b"{\"")?;
            out.put(action)?;
            out.put(b"\":{\"")?;
        }
        any = true;
        out.put(name)?;
        out.put(b"\":")?;
        out.put(value)
    });
    read?;
    if any {
        out.put(b"}}")?;
    }
    Ok(any)
}
