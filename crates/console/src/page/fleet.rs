//! The agents that are managed here.

use super::{Align, Block, Section, Table, TableCell};
use crate::human::{HumanCount, HumanDuration};
use crate::status::{Fleet, FleetPolicy};
use std::fmt::Write as _;
use std::time::Duration;

pub(super) fn section(fleet: &Fleet) -> Section {
    let Fleet { agents, waiting, in_rollout, .. } = *fleet;
    let mut words =
        format!("{} agents, {} wait for something to do", HumanCount(agents), HumanCount(waiting));
    if in_rollout > 0 {
        words.push_str(&format!(", {} are about to get a policy", HumanCount(in_rollout)));
    }
    let mut facts = vec![
        ("health", TableCell::new(counted(&fleet.by_status))),
        ("versions", TableCell::new(counted(&fleet.by_version))),
    ];
    if let Some(rate) = fleet.check_ins {
        facts.push(("check-ins", TableCell::new(format!("{rate:.1} a second"))));
    }
    if fleet.refused > 0 {
        facts.push(("refused", TableCell::count(fleet.refused)));
    }
    let mut blocks = vec![Block::Say(TableCell::new(words)), Block::Facts(facts)];
    if !fleet.policies.is_empty() {
        blocks.push(Block::Rows(Table {
            columns: &[
                ("policy", Align::Left),
                ("revision", Align::Right),
                ("agents", Align::Right),
                ("up to date", Align::Right),
                ("half after", Align::Right),
                ("99 % after", Align::Right),
                ("all after", Align::Right),
            ],
            rows: fleet.policies.iter().map(row).collect(),
        }));
    }
    Section { title: "Fleet", blocks }
}

fn row(policy: &FleetPolicy) -> Vec<TableCell> {
    let after = |seconds: Option<f64>| {
        let after = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        after.map_or_else(TableCell::none, |after| TableCell::new(HumanDuration(after).to_string()))
    };
    let [half, most, all] = policy.rollout_seconds;
    vec![
        TableCell::new(&*policy.id),
        TableCell::count(policy.revision),
        TableCell::count(policy.agents),
        TableCell::count(policy.up_to_date),
        after(half),
        after(most),
        after(all),
    ]
}

fn counted(counts: &[(String, u64)]) -> String {
    let mut text = String::new();
    for (name, count) in counts {
        let separator = if text.is_empty() { "" } else { ", " };
        // A string takes everything.
        let _ = write!(text, "{separator}{name} {}", HumanCount(*count));
    }
    if text.is_empty() { "–".to_owned() } else { text }
}
