//! The journal.

use super::{Block, Gauge, GaugePart, Section, TableCell, Tone};
use crate::human::{HumanCount, HumanDuration, Plural, percent};
use crate::status::Journal;
use tidegate_arena::Bytes;

pub(super) fn gauge(journal: &Journal) -> Gauge {
    let used = percent(journal.bytes, journal.quota);
    let words = format!("{} on disk of {} ({used:.0} %)", Bytes(journal.bytes), Bytes(journal.quota));
    let parts = vec![GaugePart { name: "journal".to_owned(), percent: used, bytes: journal.bytes }];
    Gauge { name: "journal", words, parts, marks: Vec::new() }
}

pub(super) fn section(journal: &Journal) -> Section {
    let mut blocks = Vec::new();
    if let Some(trouble) = &journal.trouble {
        blocks.push(Block::Say(TableCell::new(format!("It accepts nothing: {trouble}.")).tone(Tone::Bad)));
    }
    blocks.push(Block::Facts(vec![
        ("folder", TableCell::new(&*journal.dir)),
        ("acknowledged after", TableCell::new(&*journal.durability)),
        (
            "on disk",
            TableCell::new(format!("{} in {}", Bytes(journal.bytes), Plural(journal.segments, "segment"))),
        ),
        ("quota", quota(journal)),
        (
            "oldest record",
            journal
                .oldest_age
                .map_or_else(TableCell::none, |age| TableCell::new(HumanDuration(age).to_string())),
        ),
        ("next record", TableCell::count(journal.head)),
        ("items, ever", items(journal)),
        ("syncs", syncs(journal)),
        ("damaged", damaged(journal)),
    ]));
    Section { title: "Journal", blocks }
}

fn quota(journal: &Journal) -> TableCell {
    let quota = Bytes(journal.quota);
    match journal.full_in {
        Some(time) => TableCell::new(format!("{quota}, full in {} if this goes on", HumanDuration(time)))
            .tone(Tone::Bad),
        None => TableCell::new(quota.to_string()),
    }
}

fn items(journal: &Journal) -> TableCell {
    let total = HumanCount(journal.items_total);
    match journal.items_per_second {
        Some(rate) => TableCell::new(format!("{total}, lately {} a second", HumanCount(rate.round() as u64))),
        None => TableCell::new(total.to_string()),
    }
}

fn syncs(journal: &Journal) -> TableCell {
    match journal.syncs.count {
        0 => TableCell::new("none"),
        count => {
            TableCell::new(format!("{}, {} on average", HumanCount(count), HumanDuration(journal.syncs.mean)))
        }
    }
}

fn damaged(journal: &Journal) -> TableCell {
    let damage = &journal.damage;
    if *damage == Default::default() {
        return TableCell::new("nothing").tone(Tone::Good);
    }
    let text = format!(
        "{}, {}; {} set aside",
        Plural(damage.records, "record"),
        Bytes(damage.bytes),
        Plural(damage.quarantined_segments, "segment")
    );
    TableCell::new(text).tone(Tone::Bad)
}
