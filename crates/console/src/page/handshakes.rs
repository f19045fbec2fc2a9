//! Failed TLS handshakes.

use super::{Align, Block, Section, Table, TableCell};
use crate::human::HumanCount;
use crate::status::{Failed, Handshakes};

pub(super) fn section(handshakes: &Handshakes) -> Section {
    let failed = handshakes.failed.iter().fold(0_u64, |sum, failed| sum.saturating_add(failed.count));
    let words = format!(
        "{} handshakes became connections, {} did not",
        HumanCount(handshakes.done),
        HumanCount(failed)
    );
    let mut blocks = vec![Block::Say(TableCell::new(words))];
    if failed > 0 {
        blocks.push(Block::Rows(Table {
            columns: &[("reason", Align::Left), ("failed", Align::Right), ("what to do", Align::Left)],
            rows: handshakes.failed.iter().map(row).collect(),
        }));
    }
    Section { title: "TLS", blocks }
}

fn row(failed: &Failed) -> Vec<TableCell> {
    vec![TableCell::new(failed.reason), TableCell::count(failed.count), TableCell::new(failed.advice)]
}
