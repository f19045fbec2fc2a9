mod accounts;
mod restart;
mod storm;

use tidegate_meters::Registry;

use crate::{Counts, Ledger, Signal};

fn ledger(items: u64) -> Ledger {
    Ledger::new(&Registry::new(1), items)
}

fn metrics(items: u64) -> Counts {
    Counts::of(Signal::Metrics, items, items * 30)
}
