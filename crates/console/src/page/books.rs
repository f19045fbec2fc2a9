//! The balance sheet.

use super::{Align, Block, Section, Table, TableCell, Tone};
use crate::human::HumanCount;
use tidegate_ledger::{Balance, PipelineBalance, SinkBalance, SourceBalance};

/// The verdict, and the blocks about requests.
const REQUESTS: usize = 3;

pub(super) fn section(books: &Balance) -> Section {
    let journal = &books.journal;
    let mut blocks = vec![
        Block::Say(verdict(books)),
        Block::About("requests: received = accepted + refused + open".to_owned()),
        Block::Rows(Table {
            columns: &[
                ("source", Align::Left),
                ("received", Align::Right),
                ("accepted", Align::Right),
                ("refused", Align::Right),
                ("open", Align::Right),
                ("difference", Align::Right),
            ],
            rows: books.sources.iter().map(source).collect(),
        }),
        Block::About("items since start: accepted ≤ appended ≤ accepted + handed over".to_owned()),
        Block::Rows(Table {
            columns: &[
                ("journal", Align::Left),
                ("accepted", Align::Right),
                ("appended", Align::Right),
                ("handed over", Align::Right),
                ("difference", Align::Right),
            ],
            rows: vec![vec![
                TableCell::new("journal"),
                TableCell::count(journal.accepted),
                TableCell::count(journal.appended),
                TableCell::count(journal.handed_over),
                difference(journal.difference),
            ]],
        }),
        Block::About(
            "items since attached: accepted = delivered + passed over + queued + dropped; replayed ones are among them".to_owned(),
        ),
        Block::Rows(Table {
            columns: &[
                ("sink", Align::Left),
                ("accepted", Align::Right),
                ("delivered", Align::Right),
                ("passed over", Align::Right),
                ("queued", Align::Right),
                ("dropped", Align::Right),
                ("replayed", Align::Right),
                ("difference", Align::Right),
            ],
            rows: books.sinks.iter().map(sink).collect(),
        }),
    ];
    let with_pipelines = books.sources.iter().filter(|source| source.pipeline != PipelineBalance::default());
    let with_pipelines: Vec<_> = with_pipelines.map(pipeline).collect();
    if !with_pipelines.is_empty() {
        let equation = "items by the pipelines of sources: received = accepted + filtered + sampled out";
        let rows = Block::Rows(Table {
            columns: &[
                ("source", Align::Left),
                ("received", Align::Right),
                ("accepted", Align::Right),
                ("filtered", Align::Right),
                ("sampled out", Align::Right),
                ("difference", Align::Right),
            ],
            rows: with_pipelines,
        });
        // Behind the requests of the sources.
        blocks.splice(REQUESTS..REQUESTS, [Block::About(equation.to_owned()), rows]);
    }
    Section { title: "Books", blocks }
}

fn verdict(books: &Balance) -> TableCell {
    match books.difference() {
        0 => TableCell::new("The books close.").tone(Tone::Good),
        off => {
            let text = format!(
                "THE BOOKS DO NOT CLOSE: {} unexplained. This is a mistake in the program, please report it.",
                HumanCount(off)
            );
            TableCell::new(text).tone(Tone::Bad)
        }
    }
}

fn source(source: &SourceBalance) -> Vec<TableCell> {
    vec![
        TableCell::new(&*source.name),
        TableCell::count(source.received),
        TableCell::count(source.accepted),
        by_reason(source.refused.iter().map(|(reason, count)| (reason.name(), *count))),
        TableCell::count(source.open),
        difference(source.difference),
    ]
}

fn pipeline(source: &SourceBalance) -> Vec<TableCell> {
    let PipelineBalance { received, accepted, filtered, sampled_out, difference: off } = source.pipeline;
    let counts = [received, accepted, filtered, sampled_out].map(TableCell::count);
    [TableCell::new(&*source.name)].into_iter().chain(counts).chain([difference(off)]).collect()
}

fn sink(sink: &SinkBalance) -> Vec<TableCell> {
    vec![
        TableCell::new(&*sink.name),
        TableCell::count(sink.accepted),
        TableCell::count(sink.delivered),
        TableCell::count(sink.passed),
        TableCell::count(sink.queued),
        by_reason(sink.dropped.iter().map(|(reason, count)| (reason.name(), *count))),
        TableCell::count(sink.replayed),
        difference(sink.difference),
    ]
}

/// `7 (memory 3, timeout 4)`
pub(super) fn by_reason<'a>(parts: impl Iterator<Item = (&'a str, u64)>) -> TableCell {
    let mut sum = 0_u64;
    let mut reasons = Vec::new();
    for (reason, count) in parts {
        sum = sum.saturating_add(count);
        reasons.push(format!("{reason} {}", HumanCount(count)));
    }
    if reasons.is_empty() {
        return TableCell::count(0);
    }
    TableCell::new(format!("{} ({})", HumanCount(sum), reasons.join(", ")))
}

fn difference(difference: i64) -> TableCell {
    let sign = match difference {
        0 => return TableCell::count(0).tone(Tone::Good),
        1.. => '+',
        _ => '-',
    };
    TableCell::new(format!("{sign}{}", HumanCount(difference.unsigned_abs()))).tone(Tone::Bad)
}
