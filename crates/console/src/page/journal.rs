//! The journal.

use super::{Block, Cell, Gauge, Part, Section, Tone};
use crate::human::{Count, Of, Span, percent};
use crate::status::Journal;
use tidegate_arena::Bytes;

pub(super) fn gauge(journal: &Journal) -> Gauge {
    let used = percent(journal.bytes, journal.quota);
    let words = format!("{} on disk of {} ({used:.0} %)", Bytes(journal.bytes), Bytes(journal.quota));
    let parts = vec![Part { name: "journal".to_owned(), percent: used, bytes: journal.bytes }];
    Gauge { name: "journal", words, parts, marks: Vec::new() }
}

pub(super) fn section(journal: &Journal) -> Section {
    let mut blocks = Vec::new();
    if let Some(trouble) = &journal.trouble {
        blocks.push(Block::Say(Cell::new(format!("It takes nothing: {trouble}.")).tone(Tone::Bad)));
    }
    blocks.push(Block::Facts(vec![
        ("folder", Cell::new(&*journal.dir)),
        ("acknowledged after", Cell::new(&*journal.durability)),
        ("on disk", Cell::new(format!("{} in {}", Bytes(journal.bytes), Of(journal.segments, "segment")))),
        ("quota", quota(journal)),
        ("oldest record", journal.oldest_age.map_or_else(Cell::none, |age| Cell::new(Span(age).to_string()))),
        ("next record", Cell::count(journal.head)),
        ("items, ever", items(journal)),
        ("syncs", syncs(journal)),
        ("damaged", damaged(journal)),
    ]));
    Section { title: "Journal", blocks }
}

fn quota(journal: &Journal) -> Cell {
    let quota = Bytes(journal.quota);
    match journal.full_in {
        Some(time) => Cell::new(format!("{quota}, full in {} if this goes on", Span(time))).tone(Tone::Bad),
        None => Cell::new(quota.to_string()),
    }
}

fn items(journal: &Journal) -> Cell {
    let total = Count(journal.items_total);
    match journal.items_per_second {
        Some(rate) => Cell::new(format!("{total}, lately {} a second", Count(rate.round() as u64))),
        None => Cell::new(total.to_string()),
    }
}

fn syncs(journal: &Journal) -> Cell {
    match journal.syncs.count {
        0 => Cell::new("none"),
        count => Cell::new(format!("{}, {} on average", Count(count), Span(journal.syncs.mean))),
    }
}

fn damaged(journal: &Journal) -> Cell {
    let damage = &journal.damage;
    if *damage == Default::default() {
        return Cell::new("nothing").tone(Tone::Good);
    }
    let text = format!(
        "{}, {}; {} set aside",
        Of(damage.records, "record"),
        Bytes(damage.bytes),
        Of(damage.quarantined_segments, "segment")
    );
    Cell::new(text).tone(Tone::Bad)
}
