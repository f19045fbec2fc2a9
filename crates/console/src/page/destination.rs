//! The cluster that answers a `_bulk` itself.

use super::{Block, Section, TableCell, Tone};
use crate::human::{HumanCount, moment};
use crate::status::Destination;
use std::time::SystemTime;

pub(super) fn section(destination: &Destination, now: SystemTime) -> Section {
    let requests = format!(
        "{} answered, {} failed, {} in flight",
        HumanCount(destination.requests),
        HumanCount(destination.failures),
        HumanCount(destination.in_flight)
    );
    let fails = destination.failing_since.is_some();
    let at = |at: Option<SystemTime>| at.map_or_else(TableCell::none, |at| TableCell::new(moment(at, now)));
    let mut facts =
        vec![("requests", TableCell::new(requests)), ("last success", at(destination.last_success))];
    if fails {
        facts.push(("failing since", at(destination.failing_since).tone(Tone::Bad)));
    }
    if let Some(error) = &destination.last_error {
        let text = format!("{}: {}", moment(error.at, now), error.message);
        facts.push(("last error", TableCell::new(text).tone(if fails { Tone::Bad } else { Tone::Dim })));
    }
    let heading = format!("{}, answered by the cluster of {}", destination.source, destination.sink);
    Section { title: "Destination", blocks: vec![Block::About(heading), Block::Facts(facts)] }
}
