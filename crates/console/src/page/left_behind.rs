//! Cursors of sinks that are not configured any more.

use super::{Align, Block, Section, Table, TableCell, Tone};
use crate::human::{HumanCount, HumanDuration};
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
            TableCell::new(&*left.name).bad_if(left.items > 0),
            TableCell::new(HumanCount(left.items).to_string()),
            TableCell::new(Bytes(left.bytes).to_string()),
            left.age.map_or_else(TableCell::none, |age| TableCell::new(HumanDuration(age).to_string())),
            TableCell::new(&*left.command),
        ]
    };
    let say = "These sinks are no longer configured. The journal keeps their unsent items, in case they were renamed or return.";
    Some(Section {
        title: "Left behind",
        blocks: vec![
            Block::Say(TableCell::new(say).tone(Tone::Plain)),
            Block::Rows(Table { columns: COLUMNS, rows: left.iter().map(row).collect() }),
        ],
    })
}
