use crate::model::SeriesModel;
use crate::numbers::NumberSet;
use crate::sink::Arrivals;

/// Which samples were acknowledged, series by series, in the order of the model's series.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AcknowledgedSamples {
    numbers: Vec<NumberSet>,
}

impl AcknowledgedSamples {
    /// Nothing yet, of `series` series.
    pub fn none(series: usize) -> Self {
        Self { numbers: vec![NumberSet::default(); series] }
    }

    /// Enters samples `from..to` of the series with these indices.
    pub fn add(&mut self, series: std::ops::Range<usize>, from: u64, to: u64) {
        for numbers in self.numbers.get_mut(series).into_iter().flatten() {
            numbers.insert(from, to);
        }
    }

    /// Enters all of `other`, whose first series is the one at `index` here.
    pub fn merge(&mut self, index: usize, other: &Self) {
        let wanted = index + other.numbers.len();
        if self.numbers.len() < wanted {
            self.numbers.resize(wanted, NumberSet::default());
        }
        for (mine, theirs) in self.numbers.iter_mut().skip(index).zip(&other.numbers) {
            mine.merge(theirs);
        }
    }

    /// The numbers of the series at `index`.
    pub fn series(&self, index: usize) -> Option<&NumberSet> {
        self.numbers.get(index)
    }

    /// How many samples.
    pub fn samples(&self) -> u64 {
        self.numbers.iter().map(NumberSet::len).sum()
    }
}

/// Compares the acknowledged items with those that arrived.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Samples acknowledged.
    pub acked: u64,
    /// Acknowledged samples that did not arrive: broken promises.
    pub missing: u64,
    /// Samples that arrived without an acknowledgement that reached the client. No fault.
    pub unacked: u64,
    /// Arrivals of samples that had arrived before.
    pub duplicates: u64,
    /// Samples that first arrived after a later one of their series.
    pub out_of_order: u64,
    /// Samples with another time than their number says, where the sink was told the timeline.
    pub wrong_time: u64,
    /// Series that the model does not have: label sets that were changed on their way, or other traffic.
    pub unknown_series: u64,
    /// The first few missing samples, in words.
    pub examples: Vec<String>,
}

impl Comparison {
    /// Whether nothing acknowledged is missing, and nothing was changed or reordered.
    pub fn nothing_lost(&self) -> bool {
        self.missing == 0 && self.out_of_order == 0 && self.wrong_time == 0
    }
}

const MAX_EXAMPLES: usize = 5;

/// Holds what was acknowledged of `model` against what arrived.
pub fn compare(model: &SeriesModel, acked: &AcknowledgedSamples, arrived: &Arrivals) -> Comparison {
    let mut verdict = Comparison { acked: acked.samples(), ..Comparison::default() };
    let nothing = NumberSet::default();
    let mut known = 0;
    for (index, series) in model.series().iter().enumerate() {
        let acked = acked.series(index).unwrap_or(&nothing);
        let arrival = arrived.series.get(&series.key);
        known += u64::from(arrival.is_some());
        let numbers = arrival.map_or(&nothing, |arrival| &arrival.numbers);
        let mut both = 0;
        for (from, to) in acked.ranges() {
            both += numbers.within(*from, *to);
        }
        verdict.missing += acked.len() - both;
        verdict.unacked += numbers.len() - both;
        if let Some(arrival) = arrival {
            verdict.duplicates += arrival.duplicates;
            verdict.out_of_order += arrival.out_of_order;
            verdict.wrong_time += arrival.wrong_time;
        }
        if verdict.examples.len() < MAX_EXAMPLES
            && let Some((first, count)) = acked.missing_from(numbers)
        {
            let pod = series.labels.last().map_or("", |(_, value)| value);
            verdict.examples.push(format!("series {index} ({pod}): {count} missing, the first is {first}"));
        }
    }
    verdict.unknown_series = arrived.series.len() as u64 - known;
    verdict
}
