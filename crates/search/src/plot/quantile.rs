//! Quantiles of histograms: of buckets that say how many values are at most their bound, and of those that have a beginning, too.

use super::cells::rises_within;
use super::native::{self, Part};
use super::{Bucket, DrawnSeries, SampledSeries, Series, largest_first};
use crate::query::Function;
use std::collections::{BTreeMap, HashMap};

/// The series of a quantile: of buckets that are put together by the other labels.
pub(super) fn drawn(sampled: &SampledSeries<'_>, quantile: f64) -> Vec<DrawnSeries> {
    let mut groups: BTreeMap<&BTreeMap<String, String>, Vec<&Series>> = BTreeMap::new();
    for series in sampled.series.values().filter(|series| matches!(series.bucket, Some(Bucket::UpTo(_)))) {
        groups.entry(&series.labels).or_default().push(series);
    }
    let classic = groups.into_iter().map(|(labels, series)| {
        let rises: Vec<(f64, Vec<Option<f64>>)> = series
            .iter()
            .filter_map(|series| {
                let rises = sampled.steps.values(Function::Quantile, series.kind, &series.cells);
                let Some(Bucket::UpTo(bound)) = series.bucket else { return None };
                Some((bound, rises))
            })
            .collect();
        let values = (0..sampled.steps.count()).map(|step| {
            let at_step =
                rises.iter().filter_map(|(bound, rises)| Some((*bound, rises.get(step).copied()??)));
            of_buckets(at_step.collect(), quantile)
        });
        DrawnSeries { labels: labels.clone(), values: values.collect() }
    });
    largest_first(classic.chain(native_drawn(sampled, quantile)).collect())
}

/// The same of exponential histograms.
fn native_drawn<'s>(
    sampled: &'s SampledSeries<'_>,
    quantile: f64,
) -> impl Iterator<Item = DrawnSeries> + use<'s> {
    let mut histograms: HashMap<(i64, &str), Vec<&Series>> = HashMap::new();
    for (key, series) in &sampled.series {
        if let Some(Bucket::Between(..) | Bucket::All) = series.bucket {
            histograms.entry((key.id, &key.labels)).or_default().push(series);
        }
    }
    // By labels, the buckets that have values in each step.
    let mut groups: BTreeMap<&BTreeMap<String, String>, Vec<Vec<Part>>> = BTreeMap::new();
    for buckets in histograms.values() {
        let Some(all) = buckets.iter().find(|series| series.bucket == Some(Bucket::All)) else { continue };
        let steps = groups.entry(&all.labels).or_insert_with(|| vec![Vec::new(); sampled.steps.count()]);
        for series in buckets {
            let Some(Bucket::Between(lower, upper)) = series.bucket else { continue };
            for (parts, count) in steps.iter_mut().zip(rises_within(&all.cells, series.kind, &series.cells)) {
                parts.extend(count.map(|count| Part { lower, upper, count }));
            }
        }
    }
    groups.into_iter().map(move |(labels, steps)| {
        let values = steps.into_iter().map(|parts| native::quantile(parts, quantile));
        DrawnSeries { labels: labels.clone(), values: values.collect() }
    })
}

/// The quantile of buckets, each with its upper bound and how many values are at most that. Within a bucket, values are taken to be
/// spread evenly, as Prometheus does; of the last one, without an upper bound, its lower bound is the answer.
fn of_buckets(mut buckets: Vec<(f64, f64)>, quantile: f64) -> Option<f64> {
    buckets.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Buckets of several series with the same bound are one.
    let mut merged: Vec<(f64, f64)> = Vec::with_capacity(buckets.len());
    for (bound, count) in buckets {
        match merged.last_mut() {
            Some(last) if last.0.to_bits() == bound.to_bits() => last.1 += count,
            _ => merged.push((bound, count)),
        }
    }
    let &(_, all) = merged.last().filter(|(bound, _)| bound.is_infinite())?;
    if all <= 0.0 {
        return None;
    }
    let rank = quantile * all;
    let at = merged.iter().position(|(_, count)| *count >= rank)?;
    let &(bound, count) = merged.get(at)?;
    let (lower, below) =
        at.checked_sub(1).and_then(|before| merged.get(before)).copied().unwrap_or((0.0, 0.0));
    if bound.is_infinite() {
        return at.checked_sub(1).map(|_| lower);
    }
    if at == 0 && bound <= 0.0 || count <= below {
        return Some(bound);
    }
    Some(lower + (bound - lower) * ((rank - below) / (count - below)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_within_their_bucket() {
        let buckets = || vec![(f64::INFINITY, 100.0), (0.1, 50.0), (0.5, 90.0)];
        assert_eq!(of_buckets(buckets(), 0.5), Some(0.1));
        assert_eq!(of_buckets(buckets(), 0.25), Some(0.05));
        assert_eq!(of_buckets(buckets(), 0.7), Some(0.1 + 0.4 * 0.5));
        assert_eq!(of_buckets(buckets(), 0.99), Some(0.5));
        assert_eq!(of_buckets(vec![(0.1, 5.0)], 0.5), None);
        assert_eq!(of_buckets(vec![(0.1, 0.0), (f64::INFINITY, 0.0)], 0.5), None);
    }

    /// Two series of the same buckets are one histogram.
    #[test]
    fn buckets_of_several_series_are_added() {
        let two = vec![(1.0, 1.0), (1.0, 1.0), (f64::INFINITY, 1.0), (f64::INFINITY, 3.0)];
        assert_eq!(of_buckets(two, 0.5), Some(1.0));
    }
}
