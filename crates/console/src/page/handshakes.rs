//! Failed TLS handshakes.

use super::{Align, Block, Cell, Section, Table};
use crate::human::Count;
use crate::status::{Failed, Handshakes};

pub(super) fn section(handshakes: &Handshakes) -> Section {
    let failed = handshakes.failed.iter().fold(0_u64, |sum, failed| sum.saturating_add(failed.count));
    let words =
        format!("{} handshakes became connections, {} did not", Count(handshakes.done), Count(failed));
    let mut blocks = vec![Block::Say(Cell::new(words))];
    if failed > 0 {
        blocks.push(Block::Rows(Table {
            columns: &[("reason", Align::Left), ("failed", Align::Right), ("what to do", Align::Left)],
            rows: handshakes.failed.iter().map(row).collect(),
        }));
    }
    Section { title: "TLS", blocks }
}

fn row(failed: &Failed) -> Vec<Cell> {
    vec![Cell::new(failed.reason), Cell::count(failed.count), Cell::new(failed.advice)]
}
