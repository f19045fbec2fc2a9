//! Settings of derived metrics, and the memory that follows from them.

use crate::aggregator::Aggregator;
use crate::exemplar::Exemplar;
use crate::index::Index;
use crate::pairs::{EdgeStore, PairSettings};
use crate::resources::{CurrentResource, Resource};
use crate::series::Series;
use tidegate_pipeline::MEASURE_KEY_MAX;
use xxhash_rust::xxh3::Xxh3;

/// So many tenants have overflow series.
const OVERFLOW_TENANTS: usize = 64;
/// The longest tenant.
pub(crate) const TENANT_MAX: usize = u8::MAX as usize;
/// The bytes for keys and resources, for each series with [`USUAL_ATTRIBUTES`] at most: those of span metrics.
const BLOB_BYTES_PER_SERIES: usize = 92;
/// See [`BLOB_BYTES_PER_SERIES`].
const USUAL_ATTRIBUTES: usize = 4;
/// The bytes for each attribute beyond them.
const BLOB_BYTES_PER_ATTRIBUTE: usize = 24;
/// Resources that have room however few series there may be.
const FEWEST_RESOURCES: usize = 16;

/// How metrics are derived.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// The metrics of each measure, by its number.
    pub measures: Vec<Group>,
    /// Whether a flush reports all since a series began, or all since the last flush.
    pub temporality: Temporality,
    /// The most series of all groups together, without overflow series; 23 million at most. Half as many resources have room, and 92 bytes
    /// of keys and resources for each series: beyond that there are fewer series.
    pub max_series: u32,
    /// A cumulative series that was not seen for so long, by the times of records, is forgotten at a flush. Zero: never.
    pub expire_ms: u64,
    /// Whether each series has an exemplar: the last span observed since the last flush.
    pub exemplars: bool,
    /// The name of the instrumentation scope in the output.
    pub scope: String,
    /// A text of what is measured of items, and how: a state that was written with another one is not used.
    pub definition: String,
}

/// The metrics of a measure.
#[derive(Debug, Clone, PartialEq)]
pub struct Group {
    /// The names of listed attributes in the order of the key. `None`: keys hold attributes with their names.
    pub attributes: Option<Vec<String>>,
    /// Values are divided by it: by 1,000,000 for milliseconds from nanoseconds. With 1 integers stay integers.
    pub divisor: f64,
    /// The metrics themselves.
    pub instruments: Vec<Instrument>,
    /// Makes the observations of the measure, which are spans, halves of pairs: each pair is counted once. See [`PairSettings`].
    pub pairs: Option<PairSettings>,
}

/// A metric.
#[derive(Debug, Clone, PartialEq)]
pub struct Instrument {
    /// Its name.
    pub name: String,
    /// Its description; empty for none.
    pub description: String,
    /// The unit of its values; empty for none.
    pub unit: String,
    /// How it sums observations up.
    pub kind: InstrumentKind,
}

/// How a metric sums observations up.
///
/// Values that are not finite count for [`Count`](Self::Count) and [`Gauge`](Self::Gauge) alone: a single one would spoil a sum for ever.
#[derive(Debug, Clone, PartialEq)]
pub enum InstrumentKind {
    /// A monotonic integer sum of how often values count.
    Count,
    /// A sum of values: an integer that saturates, and a double from the first value on that is one.
    Sum {
        /// Whether it is said to only grow.
        is_monotonic: bool,
    },
    /// The last value.
    Gauge,
    /// A histogram with explicit bounds: bucket `i` counts values of at most `bounds[i]`.
    Histogram {
        /// The upper bounds of the buckets but for the last, ascending.
        bounds: Vec<f64>,
    },
    /// A histogram with exponential buckets that get coarser as the range of values grows.
    ///
    /// It begins with scale 20. For values of one sign it is the same as that of `github.com/lightstep/go-expohisto`. Positive and
    /// negative values share the buckets, where that library has as many for each: most values are durations.
    ExponentialHistogram {
        /// The most buckets: 2 to 16,384. Zero stands for 160.
        max_size: u32,
    },
}

/// The time that a data point covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Temporality {
    /// From the first observation of the series on.
    Cumulative,
    /// From the last flush on.
    Delta,
}

/// The lengths of an aggregator's tables.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    pub(crate) series: usize,
    pub(crate) overflow_series: usize,
    pub(crate) resources: usize,
    pub(crate) overflow_resources: usize,
    /// Bytes of keys and resources.
    pub(crate) blob: usize,
    /// Bytes of resources of overflow series.
    pub(crate) overflow_blob: usize,
    /// The words of the largest series.
    pub(crate) stride: usize,
}

impl Sizes {
    pub(crate) fn all_series(&self) -> usize {
        self.series + self.overflow_series
    }

    pub(crate) fn all_resources(&self) -> usize {
        self.resources + self.overflow_resources
    }
}

impl Group {
    /// The words of values of a series.
    pub(crate) fn words(&self) -> usize {
        self.instruments.iter().map(|instrument| instrument.kind.words()).sum()
    }

    /// Whether an instrument has no data point for these values: no pair failed, or nothing came since a flush that ended early.
    pub(crate) fn is_absent(&self, kind: &InstrumentKind, words: &[u64], temporality: Temporality) -> bool {
        match kind {
            _ if temporality == Temporality::Delta => words.iter().all(|word| *word == 0),
            InstrumentKind::Count => self.pairs.is_some() && words.first() == Some(&0),
            InstrumentKind::Gauge => words.first() == Some(&0),
            _ => false,
        }
    }

    fn heap_bytes(&self) -> usize {
        let names = self.attributes.as_deref().unwrap_or_default();
        let strings = self.instruments.iter().map(|instrument| {
            let bounds = match &instrument.kind {
                InstrumentKind::Histogram { bounds } => bounds.capacity() * size_of::<f64>(),
                _ => 0,
            };
            instrument.name.capacity()
                + instrument.description.capacity()
                + instrument.unit.capacity()
                + bounds
        });
        strings.sum::<usize>()
            + self.pairs.as_ref().map_or(0, EdgeStore::heap_bytes)
            + self.instruments.capacity() * size_of::<Instrument>()
            + names.iter().map(|name| name.capacity() + size_of::<String>()).sum::<usize>()
    }
}

impl Settings {
    /// All memory of an aggregator with these settings, which it has from the beginning.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let sizes = self.sizes();
        let exemplar = if self.exemplars { size_of::<Exemplar>() } else { 0 };
        let series = size_of::<Series>() + exemplar + sizes.stride * size_of::<u64>();
        let measure = size_of::<Group>()
            + size_of::<CurrentResource>()
            + MEASURE_KEY_MAX
            + size_of::<Option<EdgeStore>>();
        size_of::<Aggregator>()
            + sizes.all_series() * series
            + Index::bytes(sizes.all_series())
            + sizes.all_resources() * size_of::<Resource>()
            + Index::bytes(sizes.all_resources())
            + self.order_len() * size_of::<u32>()
            + sizes.blob
            + sizes.overflow_blob
            + MEASURE_KEY_MAX
            + self.measures.len() * measure
            + self.measures.iter().map(Group::heap_bytes).sum::<usize>()
            + self.scope.capacity()
            + self.definition.capacity()
    }

    /// A number of the settings that a [state](crate::Aggregator::write_state) depends on: the measures, the temporality, and whether there are
    /// exemplars. It is the same after a restart. A table of another size can still take over the state, and so can pairs that wait longer.
    #[must_use]
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Xxh3::new();
        let mut number = |number: u64| hash.update(&number.to_le_bytes());
        number(self.measures.len() as u64);
        number(u64::from(self.temporality == Temporality::Delta) << 1 | u64::from(self.exemplars));
        for group in &self.measures {
            number(group.divisor.to_bits());
            number(group.attributes.as_ref().map_or(u64::MAX, |names| names.len() as u64));
            number(group.instruments.len() as u64);
        }
        hash.update(&(self.definition.len() as u64).to_le_bytes());
        hash.update(self.definition.as_bytes());
        // Each text with its length, and the lists with theirs above: no two settings have the same bytes.
        let mut text = |text: &str| {
            hash.update(&(text.len() as u64).to_le_bytes());
            hash.update(text.as_bytes());
        };
        for group in &self.measures {
            group.attributes.iter().flatten().for_each(|name| text(name));
            for instrument in &group.instruments {
                [&instrument.name, &instrument.description, &instrument.unit]
                    .into_iter()
                    .for_each(|it| text(it));
            }
        }
        for instrument in self.measures.iter().flat_map(|group| &group.instruments) {
            let mut number = |number: u64| hash.update(&number.to_le_bytes());
            match &instrument.kind {
                InstrumentKind::Count => number(0),
                InstrumentKind::Sum { is_monotonic } => number(if *is_monotonic { 1 } else { 5 }),
                InstrumentKind::Gauge => number(2),
                InstrumentKind::Histogram { bounds } => {
                    number(3);
                    number(bounds.len() as u64);
                    bounds.iter().for_each(|bound| number(bound.to_bits()));
                }
                InstrumentKind::ExponentialHistogram { max_size } => {
                    number(4);
                    number((*max_size).into());
                }
            }
        }
        for (measure, group) in self.measures.iter().enumerate() {
            let Some(pairs) = &group.pairs else { continue };
            [measure, pairs.dimensions, pairs.peers, pairs.has_virtual_node_label.into()]
                .into_iter()
                .for_each(|it| hash.update(&(it as u64).to_le_bytes()));
        }
        hash.digest()
    }

    pub(crate) fn sizes(&self) -> Sizes {
        // Numbers of series and places in the blob have 32 bits.
        let most = u32::MAX as usize / 2;
        let attributes =
            self.measures.iter().filter_map(|group| group.attributes.as_ref()).map(Vec::len).max();
        let more = attributes.unwrap_or(0).saturating_sub(USUAL_ATTRIBUTES);
        let blob_bytes = BLOB_BYTES_PER_SERIES + more.saturating_mul(BLOB_BYTES_PER_ATTRIBUTE);
        let series = (self.max_series as usize).min(most / blob_bytes);
        let overflow_blob = OVERFLOW_TENANTS * TENANT_MAX;
        Sizes {
            series,
            overflow_series: OVERFLOW_TENANTS * self.measures.len(),
            resources: series / 2 + FEWEST_RESOURCES,
            overflow_resources: OVERFLOW_TENANTS,
            blob: (series * blob_bytes).max(MEASURE_KEY_MAX),
            overflow_blob,
            stride: self.measures.iter().map(Group::words).max().unwrap_or(0),
        }
    }

    /// The order of a flush is that of series, and of resources on the way.
    pub(crate) fn order_len(&self) -> usize {
        let sizes = self.sizes();
        sizes.all_series().max(sizes.all_resources())
    }
}
