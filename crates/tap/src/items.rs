//! The items of a record, each a line: as many as there may be, and what is left out.

mod bulk;
mod intake;
mod otlp;
mod remote_write;

use crate::filter::TapFilter;
use crate::line::Line;
use crate::watch::{CaughtBody, CaughtRecord};
use tidegate_journal::{Meta, Protocol};
use tidegate_wire::remote_write::Version;

/// The most items of a record that are shown.
pub(crate) const SHOWN: u64 = 200;
/// The most items of a record that are looked at, to find those that are wanted.
const LOOKED_AT: u64 = 4096;

/// Why items of a record are not shown, though they might be wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RemainingItems {
    why: Option<&'static str>,
}

impl RemainingItems {
    pub(crate) const NOTHING: RemainingItems = RemainingItems { why: None };

    pub(crate) fn all(why: &'static str) -> RemainingItems {
        RemainingItems { why: Some(why) }
    }
}

/// The lines of a record.
pub(crate) struct Items<'a> {
    look: &'a TapFilter,
    start: &'a str,
    line: Line,
    out: &'a mut dyn FnMut(&str) -> bool,
    looked_at: u64,
    written: u64,
    no_room: u64,
}

impl<'a> Items<'a> {
    /// Lines that begin with `start`, of items that `filter` wants.
    pub(crate) fn new(
        look: &'a TapFilter,
        start: &'a str,
        out: &'a mut dyn FnMut(&str) -> bool,
    ) -> Items<'a> {
        Items { look, start, line: Line::default(), out, looked_at: 0, written: 0, no_room: 0 }
    }

    /// Lines that were written, and those for which there was no room.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.written, self.no_room)
    }

    /// Writes the items of a decompressed body, and says what was left out.
    pub(crate) fn walk(&mut self, meta: &Meta, raw: &[u8]) -> RemainingItems {
        match meta.protocol {
            Protocol::Otlp => otlp::walk(self, meta.signal, raw),
            Protocol::RemoteWrite1 => remote_write::walk(self, Version::V1, raw),
            Protocol::RemoteWrite2 => remote_write::walk(self, Version::V2, raw),
            Protocol::Intake => intake::walk(self, meta, raw),
            Protocol::Bulk => bulk::walk(self, meta, raw),
            _ => RemainingItems::all("this kind of record cannot be shown"),
        }
    }

    /// Writes an item that `fill` describes, if it is wanted; `None` when there were enough.
    fn item(&mut self, service: &[u8], name: &[u8], fill: impl FnOnce(&mut Line)) -> Option<()> {
        if self.looked_at >= LOOKED_AT || self.written + self.no_room >= SHOWN {
            return None;
        }
        self.looked_at += 1;
        let wanted =
            |wanted: &Option<String>, is: &[u8]| wanted.as_ref().is_none_or(|wanted| wanted.as_bytes() == is);
        if !wanted(&self.look.service, service) || !wanted(&self.look.name, name) {
            return Some(());
        }
        self.line.begin(self.start);
        fill(&mut self.line);
        let line = self.line.end();
        if self.look.contains.as_ref().is_none_or(|text| line.contains(text.as_str())) {
            if (self.out)(line) {
                self.written += 1;
            } else {
                self.no_room += 1;
            }
        }
        Some(())
    }

    /// Says of a record what it was, when not all of its items were looked at.
    pub(crate) fn say(&mut self, caught: &CaughtRecord, left: RemainingItems) {
        let Some(why) = left.why else { return };
        let meta = &caught.meta;
        self.line.begin(self.start);
        if meta.is_mixed() {
            self.line.text("signal", meta.signal.name().as_bytes());
        }
        self.line.plain("record", format_args!("\"{} in {}\"", meta.protocol.name(), meta.encoding.name()));
        self.line.plain("items", meta.items);
        match &caught.body {
            CaughtBody::Whole(body) => self.line.plain("bytes", body.len()),
            CaughtBody::TooLong(bytes) => self.line.plain("bytes", bytes),
            CaughtBody::NotRead => {}
        }
        self.line.plain("decompressed_bytes", meta.raw_len);
        self.line.plain("not_shown", u64::from(meta.items).saturating_sub(self.looked_at));
        self.line.text("why", why.as_bytes());
        if (self.out)(self.line.end()) {
            self.written += 1;
        } else {
            self.no_room += 1;
        }
    }
}

/// The note after the largest number of items.
fn enough(walked: Option<()>) -> RemainingItems {
    match walked {
        Some(()) => RemainingItems::NOTHING,
        None => RemainingItems::all("tap shows 200 items of a record, and examines 4,096"),
    }
}
