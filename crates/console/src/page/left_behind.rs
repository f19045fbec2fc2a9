//! Cursors of sinks that are not configured any more.

use super::{Align, Block, Cell, Section, Table, Tone};
use crate::human::{Count, Span};
use crate::status::LeftBehind;
use tidegate_arena::Bytes;

const COLUMNS: &[(&str, Align)] = &[
    ("name", Align::Left),
    ("items not sent", Align::Right),
    ("journal behind it", Align::Right),
    ("oldest", Align::Right),
    ("if it is gone for good", Align::Left),
];

/// Nothing where there are none.
pub(super) fn section(left: &[LeftBehind]) -> Option<Section> {
    if left.is_empty() {
        return None;
    }
    let row = |left: &LeftBehind| {
        vec![
            Cell::new(&*left.name).bad_if(left.items > 0),
            Cell::new(Count(left.items).to_string()),
            Cell::new(Bytes(left.bytes).to_string()),
            left.age.map_or_else(Cell::none, |age| Cell::new(Span(age).to_string())),
            Cell::new(&*left.command),
        ]
    };
    let say = "These are not configured any more, and the journal keeps what they have not sent, in case they were \
               renamed or come back.";
    Some(Section {
        title: "Left behind",
        blocks: vec![
            Block::Say(Cell::new(say).tone(Tone::Plain)),
            Block::Rows(Table { columns: COLUMNS, rows: left.iter().map(row).collect() }),
        ],
    })
}
