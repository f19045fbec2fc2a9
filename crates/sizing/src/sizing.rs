//! The arithmetic.

use crate::figures::{RECORD_BYTES, SECONDS_IN_MEMORY};
use crate::rate::{Amount, ItemKind, Rate};
use serde::Serialize;

/// A load, as it reaches the journal.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Load {
    /// Its kinds of items.
    pub parts: Vec<Part>,
}

/// The items of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Part {
    /// What they are.
    pub kind: ItemKind,
    /// How many come a second.
    pub items_per_second: f64,
    /// Bytes of the journal for each.
    pub bytes_per_item: f64,
    /// Where the bytes are from.
    pub basis: String,
    /// Items of this kind that one sink delivers in a second, if it delivers nothing else.
    pub delivered_per_second: Option<f64>,
    /// Where that is from.
    pub delivery_basis: String,
}

/// What is known of the gateway.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Setup {
    /// Whether the configuration is known; otherwise all is from the gateway's status, and the length of a segment is the default.
    pub is_configured: bool,
    /// The most bytes that the journal may take on disk.
    pub quota: u64,
    /// The length of a segment of the journal: it takes and gives back disk in such steps.
    pub segment: u64,
    /// The data folder.
    pub data: String,
    /// Free bytes on its disk now, and what the journal has of the disk already.
    pub free_disk: Option<u64>,
    /// What is lost when the quota is used up; `None` where the settings of the sinks are not known.
    pub losses: Option<Losses>,
    /// Whether the journal is in memory only.
    pub in_memory_only: bool,
    /// How many sinks send everything.
    pub sinks: u64,
    /// Memory.
    pub memory: Memory,
}

/// The sinks that lose acknowledged data when they are behind for too long. The others lose nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Losses {
    /// Sinks for which a full journal drops its oldest records.
    pub journal: Vec<String>,
    /// Sinks that drop the oldest data of a member whose handoff quota is used up.
    pub handoff: Vec<String>,
}

/// What the memory plan says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Memory {
    /// The budget.
    pub budget: u64,
    /// Why it cannot take the connections and bodies, if it cannot.
    pub problem: Option<String>,
    /// The smallest budget that can, found by planning with each; nothing where none was found.
    pub smallest: Option<u64>,
    /// Open connections that are planned for.
    pub connections: u64,
    /// The most bytes of request bodies that may be in memory.
    pub intake: u64,
    /// The largest bodies that are accepted, by setting.
    pub largest_bodies: Vec<(String, u64)>,
}

/// How long it takes until everything that waited is sent.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "result", content = "seconds")]
pub enum Catching {
    /// So many seconds.
    Seconds(f64),
    /// Never: the load alone is as much as a sink delivers.
    Never,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Sizing {
    /// The load.
    pub load: Load,
    /// How long the stores are out, in seconds.
    pub outage_seconds: f64,
    /// The gateway.
    pub setup: Setup,
    /// Bytes that the journal grows by in a second.
    pub journal_bytes_per_second: f64,
    /// Bytes that wait at the end of the outage.
    pub backlog_bytes: f64,
    /// The quota that holds them.
    pub quota_needed: u64,
    /// How long an outage the present quota holds, in seconds.
    pub quota_lasts_seconds: f64,
    /// Whether the disk has room for the quota that is needed, where its room is known.
    pub disk_has_room: Option<bool>,
    /// Bytes of request bodies in memory at this rate.
    pub intake_bytes: f64,
    /// How long catching up takes.
    pub catching_up: Catching,
    /// Processor cores.
    pub cores: f64,
}

impl Load {
    /// The load of these rates: with so many bytes for an item, or else those measured here.
    pub fn of(rates: &[Rate], bytes_per_item: Option<f64>, is_compressed: bool, delivery: &[Rate]) -> Load {
        let parts = rates.iter().map(|rate| Part::of(*rate, bytes_per_item, is_compressed, delivery));
        Load { parts: parts.collect() }
    }

    fn sum(&self, of: impl Fn(&Part) -> f64) -> f64 {
        self.parts.iter().map(of).sum()
    }
}

impl Part {
    fn of(rate: Rate, bytes_per_item: Option<f64>, is_compressed: bool, delivery: &[Rate]) -> Part {
        let figures = rate.kind.figures();
        let measured = if is_compressed { figures.compressed_bytes } else { figures.plain_bytes };
        let (bytes_per_item, basis) = match bytes_per_item {
            Some(bytes) => (bytes, "as given".to_owned()),
            None if figures.plain_bytes == figures.compressed_bytes => {
                (measured, format!("measured with {}", figures.shape))
            }
            None if is_compressed => {
                let plain = crate::bytes(figures.plain_bytes);
                (measured, format!("measured with {}; uncompressed it was {plain}", figures.shape))
            }
            None => (measured, format!("measured with {}, but uncompressed", figures.shape)),
        };
        let items_per_second = match rate.amount {
            Amount::Items(items) => items,
            Amount::Bytes(bytes) => bytes / bytes_per_item,
        };
        Part { items_per_second, bytes_per_item, basis, ..Part::delivered(rate.kind, delivery) }
    }

    /// A part that was measured at a running gateway; `basis` says by what.
    pub fn measured(
        kind: ItemKind,
        items_per_second: f64,
        bytes_per_item: f64,
        basis: &str,
        delivery: &[Rate],
    ) -> Part {
        let basis = basis.to_owned();
        Part { items_per_second, bytes_per_item, basis, ..Part::delivered(kind, delivery) }
    }

    /// How fast it is delivered, and nothing else.
    fn delivered(kind: ItemKind, delivery: &[Rate]) -> Part {
        let given = delivery.iter().find(|given| given.kind == kind);
        let figures = kind.figures();
        let (delivered_per_second, delivery_basis) = match given.map(|given| given.amount) {
            Some(Amount::Items(items)) => (Some(items), "as given".to_owned()),
            Some(Amount::Bytes(bytes)) => (Some(bytes / figures.compressed_bytes), "as given".to_owned()),
            None => (
                figures.delivered_per_second,
                format!("measured on two cores with a receiver that takes everything ({})", figures.rows),
            ),
        };
        Part {
            kind,
            items_per_second: 0.0,
            bytes_per_item: 0.0,
            basis: String::new(),
            delivered_per_second,
            delivery_basis,
        }
    }

    /// The part of a sink's time that it takes, where that is known.
    fn utilisation(&self) -> f64 {
        self.delivered_per_second.map_or(0.0, |delivered| self.items_per_second / delivered)
    }
}

impl Sizing {
    /// What `load` needs while stores are out for `outage_seconds`.
    pub fn of(load: Load, outage_seconds: f64, setup: Setup) -> Sizing {
        let rate = load.sum(|part| part.items_per_second * part.bytes_per_item);
        let backlog_bytes = rate * outage_seconds;
        let quota_needed = quota_for(backlog_bytes, setup.segment);
        // What is in use of a quota: it takes and gives back whole segments.
        let usable = setup.quota.saturating_sub(2 * setup.segment.min(setup.quota / 4)) as f64;
        let busy = load.sum(Part::utilisation);
        let catching_up = match busy {
            ..1.0 => Catching::Seconds(busy * outage_seconds / (1.0 - busy)),
            _ => Catching::Never,
        };
        let cores = load.sum(|part| {
            let figures = part.kind.figures();
            part.items_per_second * (figures.intake_ns + setup.sinks as f64 * figures.delivery_ns) / 1e9
        });
        Sizing {
            outage_seconds,
            journal_bytes_per_second: rate,
            backlog_bytes,
            quota_needed,
            quota_lasts_seconds: usable / rate,
            disk_has_room: setup.free_disk.filter(|_| !setup.in_memory_only).map(|free| free >= quota_needed),
            intake_bytes: intake_bytes(&load) as f64,
            catching_up,
            cores,
            load,
            setup,
        }
    }
}

/// The quota that holds `backlog` bytes: two segments more, in whole GiB where it is large.
fn quota_for(backlog: f64, segment: u64) -> u64 {
    const MIB: u64 = 1 << 20;
    let needed = (backlog as u64).saturating_add(2 * segment);
    let unit = match needed {
        ..0x2_8000_0000 => 64 * MIB,
        _ => 1024 * MIB,
    };
    needed.div_ceil(unit).saturating_mul(unit)
}

/// The bytes of request bodies that are in memory at any moment, at the rate of `load`.
pub fn intake_bytes(load: &Load) -> u64 {
    (load.sum(|part| part.items_per_second * part.bytes_per_item) * SECONDS_IN_MEMORY) as u64
}

/// The bytes of the journal for an item, of bodies with so many bytes and so many items in so many requests.
pub fn measured_bytes(bytes: f64, items: f64, requests: f64) -> f64 {
    (bytes + requests * RECORD_BYTES) / items
}

#[cfg(test)]
mod tests;
