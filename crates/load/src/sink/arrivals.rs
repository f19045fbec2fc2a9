use std::collections::{BTreeMap, HashMap};

use crate::model::Timeline;
use crate::numbers::NumberSet;
use crate::remote_write::{ReceivedSample, RequestTotals, Version};

/// The items received at a sink.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// The samples received per series, by its label set's key.
    pub series: HashMap<u64, SeriesArrivals>,
    /// Requests answered, by status.
    pub requests: BTreeMap<u16, u64>,
    /// Requests recorded, by version: 1.0 and 2.0.
    pub versions: [u64; 2],
    /// Requests left without an answer.
    pub stalled: u64,
    /// The contents of the recorded requests.
    pub totals: RequestTotals,
    /// Bytes of the bodies of recorded requests.
    pub body_bytes: u64,
    /// Samples whose value is not a number of the model's.
    pub unnumbered: u64,
    /// Requests that broke a rule of the format.
    pub malformed: u64,
    /// How the first few of them did.
    pub faults: Vec<String>,
    /// Samples of series beyond those that are kept track of.
    pub untracked: u64,
}

/// The samples received of one series.
#[derive(Clone, Debug, Default)]
pub struct SeriesArrivals {
    /// The samples' numbers.
    pub numbers: NumberSet,
    /// Arrivals of samples that had arrived before.
    pub duplicates: u64,
    /// Samples that first arrived after a later one.
    pub out_of_order: u64,
    /// Samples with another time than their number has.
    pub wrong_time: u64,
    /// Stale markers.
    pub stale: u64,
}

/// Series beyond this many are counted and not kept track of.
const MAX_SERIES: usize = 4_000_000;

/// Faults beyond this many are only counted.
const MAX_FAULTS: usize = 8;

impl Arrivals {
    /// How many different samples arrived.
    pub fn samples(&self) -> u64 {
        self.series.values().map(|series| series.numbers.len()).sum()
    }

    pub(super) fn record(&mut self, version: Version, bytes: usize, totals: &RequestTotals) {
        self.versions[version as usize] += 1;
        self.body_bytes += bytes as u64;
        let sum = &mut self.totals;
        sum.series += totals.series;
        sum.samples += totals.samples;
        sum.histograms += totals.histograms;
        sum.exemplars += totals.exemplars;
        sum.metadata += totals.metadata;
    }

    pub(crate) fn record_sample(&mut self, arrival: ReceivedSample, timeline: Option<Timeline>) {
        if self.series.len() >= MAX_SERIES && !self.series.contains_key(&arrival.key) {
            self.untracked += 1;
            return;
        }
        let series = self.series.entry(arrival.key).or_default();
        if arrival.is_stale() {
            series.stale += 1;
            return;
        }
        let Some(number) = arrival.number() else {
            self.unnumbered += 1;
            return;
        };
        if timeline.is_some_and(|timeline| timeline.at(number) != arrival.time_ms) {
            series.wrong_time += 1;
        }
        let latest = series.numbers.ranges().last().map_or(0, |range| range.1);
        if series.numbers.insert(number, number + 1) == 0 {
            series.duplicates += 1;
        } else if number < latest {
            series.out_of_order += 1;
        }
    }

    pub(super) fn record_fault(&mut self, fault: String) {
        self.malformed += 1;
        if self.faults.len() < MAX_FAULTS {
            self.faults.push(fault);
        }
    }
}
