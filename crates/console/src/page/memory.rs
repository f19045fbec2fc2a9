//! Memory: reservations and use.

use super::{Align, Block, Gauge, GaugePart, Section, Table, TableCell};
use crate::human::{HumanCount, percent};
use crate::status::{DeclaredLine, Memory, ShareLine};
use tidegate_arena::Bytes;

pub(super) fn gauge(memory: &Memory) -> Gauge {
    let limit = memory.limit;
    let part = |name: &str, bytes| GaugePart { name: name.to_owned(), percent: percent(bytes, limit), bytes };
    // Reservations for everything but payload, then the holders of payload; the rest is free.
    let mut parts = vec![part("declared overhead", memory.overhead())];
    parts.extend(memory.payload.shares.iter().map(|share| part(&share.name, share.used)));
    parts.push(part("hot pages", memory.payload.idle));
    let (words, marks) = match &memory.resident {
        Some(resident) => {
            let (now, peak) = (percent(resident.now, limit), percent(resident.peak, limit));
            let words = format!(
                "{} resident of {} ({now:.0} %), at most {} so far",
                Bytes(resident.now),
                Bytes(limit),
                Bytes(resident.peak)
            );
            (words, vec![("resident now", now), ("resident at most", peak)])
        }
        None => (format!("limit {}; what is resident is not known here", Bytes(limit)), Vec::new()),
    };
    Gauge { name: "memory", words, parts, marks }
}

pub(super) fn section(memory: &Memory) -> Section {
    let mut rows: Vec<Vec<TableCell>> = memory.declared.iter().map(declared).collect();
    rows.push(total("all overhead", memory.overhead()));
    let mut shares: Vec<Vec<TableCell>> = memory.payload.shares.iter().map(share).collect();
    shares.push(all_shares(memory));
    let blocks = vec![
        Block::Facts(facts(memory)),
        Block::About("declared overhead".to_owned()),
        Block::Rows(Table {
            columns: &[
                ("owner", Align::Left),
                ("at most", Align::Right),
                ("each", Align::Right),
                ("declared", Align::Right),
                ("used", Align::Right),
                ("peak", Align::Right),
                ("what", Align::Left),
            ],
            rows,
        }),
        Block::About("payload shares".to_owned()),
        Block::Rows(Table {
            columns: &[
                ("share", Align::Left),
                ("floor", Align::Right),
                ("at most", Align::Right),
                ("used", Align::Right),
                ("peak", Align::Right),
                ("waiting", Align::Right),
            ],
            rows: shares,
        }),
    ];
    Section { title: "Memory", blocks }
}

fn facts(memory: &Memory) -> Vec<(&'static str, TableCell)> {
    let mut facts = vec![("limit", TableCell::new(format!("{}, {}", Bytes(memory.limit), memory.origin)))];
    if let Some(resident) = &memory.resident {
        let text = format!(
            "{}: {} private, {} of files",
            Bytes(resident.now),
            Bytes(resident.anonymous),
            Bytes(resident.file)
        );
        facts.push(("resident", TableCell::new(text).bad_if(resident.now > memory.limit)));
        facts
            .push(("resident at most", TableCell::bytes(resident.peak).bad_if(resident.peak > memory.limit)));
    }
    let (open, limit) = (memory.connections_open, memory.connections_limit);
    facts.push(("heap", TableCell::bytes(memory.heap_live)));
    facts.push((
        "connections",
        TableCell::new(format!("{} of {}", HumanCount(open), HumanCount(limit)))
            .bad_if(open >= limit && limit > 0),
    ));
    facts
}

fn declared(line: &DeclaredLine) -> Vec<TableCell> {
    let over = |used: Option<u64>| used.is_some_and(|used| used > line.declared);
    vec![
        TableCell::new(&*line.owner),
        TableCell::count(line.count),
        TableCell::bytes(line.each),
        TableCell::bytes(line.declared),
        TableCell::maybe_bytes(line.used).bad_if(over(line.used)),
        TableCell::maybe_bytes(line.peak).bad_if(over(line.peak)),
        TableCell::new(&*line.what),
    ]
}

fn total(name: &str, bytes: u64) -> Vec<TableCell> {
    let nothing = || TableCell::new("");
    vec![TableCell::new(name), nothing(), nothing(), TableCell::bytes(bytes), nothing(), nothing(), nothing()]
}

fn share(share: &ShareLine) -> Vec<TableCell> {
    vec![
        TableCell::new(&*share.name),
        TableCell::bytes(share.floor),
        TableCell::bytes(share.at_most),
        TableCell::bytes(share.used),
        TableCell::bytes(share.peak),
        TableCell::count(share.waiting).bad_if(share.waiting > 0),
    ]
}

/// The peaks of shares are of different moments, so they have no sum.
fn all_shares(memory: &Memory) -> Vec<TableCell> {
    let payload = &memory.payload;
    let used = format!("{} + {} hot", Bytes(payload.used()), Bytes(payload.idle));
    vec![
        TableCell::new("all payload"),
        TableCell::new(""),
        TableCell::bytes(payload.total),
        TableCell::new(used),
        TableCell::new(""),
        TableCell::new(""),
    ]
}
