use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use prometheus_client::encoding::text::{encode_eof, encode_registry};

use crate::encode::Exposed;
use crate::value::{Kind, Readable, Value, Visit};
use crate::{Buckets, Counter, Family, Gauge, Histogram, Meter, Name, Unit};

/// The prefix of every published name.
pub const PREFIX: &str = "tidegate";

/// The media type of what [`Registry::encode`] writes.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

const OVERFLOWED: Name = Name::plain(
    "meter_series_overflowed",
    "How often a family was full and label values were counted under `other`",
);

/// More families than this are published all the same, but their overflows are not.
const MAX_FAMILIES: usize = 256;

/// All published meters of a process. Made at start and filled before traffic; reading it locks, counting
/// into its meters does not.
///
/// Every method that publishes a name panics when that name was published before or is not one
/// (`[a-z][a-z0-9_]*`): names are literals, so that is a mistake in the program and shows at its first start.
pub struct Registry {
    owned_stripes: usize,
    published: Mutex<Names>,
    overflows: Overflows,
}

/// The overflow counter of each family, with the family's name.
type Overflows = Arc<Mutex<Vec<(&'static str, Counter)>>>;

struct Names {
    exposition: prometheus_client::registry::Registry,
    /// Names without the prefix.
    exact: prometheus_client::registry::Registry,
    all: Vec<Arc<Published>>,
}

pub(crate) struct Published {
    pub(crate) name: &'static str,
    pub(crate) unit: Unit,
    pub(crate) is_exact: bool,
    pub(crate) kind: Kind,
    pub(crate) labels: Box<[&'static str]>,
    pub(crate) values: Box<dyn Readable>,
}

/// One series as it stood when it was read.
#[derive(Debug)]
pub struct Reading<'a> {
    /// The full published name, such as `tidegate_requests_total`.
    pub name: &'a str,
    /// The labels' names, in the order of `values`.
    pub labels: &'a [&'static str],
    /// The labels' values.
    pub values: &'a [&'a str],
    /// The unit of the numbers.
    pub unit: Unit,
    /// The value, unscaled.
    pub value: Value,
}

impl Registry {
    /// An empty registry whose histograms have a stripe for each of the first `workers` threads.
    pub fn new(workers: usize) -> Self {
        let exposition = prometheus_client::registry::Registry::with_prefix(PREFIX);
        let published = Mutex::new(Names { exposition, exact: Default::default(), all: Vec::new() });
        let registry = Self { owned_stripes: workers, published, overflows: Overflows::default() };
        let overflows = Arc::clone(&registry.overflows);
        registry.computed(OVERFLOWED, Kind::Counter, ["meter"], MAX_FAMILIES, move |emit| {
            for (family, counter) in lock(&overflows).iter() {
                emit([family], Value::Counter(counter.value()));
            }
        });
        registry
    }

    /// A new counter.
    pub fn counter(&self, name: Name) -> Counter {
        let counter = Counter::default();
        self.publish(name, Kind::Counter, &[], Single(counter.clone()));
        counter
    }

    /// A new gauge.
    pub fn gauge(&self, name: Name) -> Gauge {
        let gauge = Gauge::default();
        self.publish(name, Kind::Gauge, &[], Single(gauge.clone()));
        gauge
    }

    /// A new histogram.
    pub fn histogram(&self, name: Name, buckets: Buckets) -> Histogram {
        let histogram = Histogram::new(buckets, self.owned_stripes);
        self.publish(name, Kind::Histogram, &[], Single(histogram.clone()));
        histogram
    }

    /// Counters that differ in their labels' values; at most `max`, and one for the rest.
    pub fn counters<const N: usize>(
        &self,
        name: Name,
        labels: [&'static str; N],
        max: usize,
    ) -> Family<Counter, N> {
        self.family(name, Kind::Counter, labels, Family::new(max, Counter::default))
    }

    /// Gauges that differ in their labels' values; at most `max`, and one for the rest.
    pub fn gauges<const N: usize>(
        &self,
        name: Name,
        labels: [&'static str; N],
        max: usize,
    ) -> Family<Gauge, N> {
        self.family(name, Kind::Gauge, labels, Family::new(max, Gauge::default))
    }

    /// Histograms that differ in their labels' values; at most `max`, and one for the rest.
    pub fn histograms<const N: usize>(
        &self,
        name: Name,
        labels: [&'static str; N],
        max: usize,
        buckets: &Buckets,
    ) -> Family<Histogram, N> {
        let make = || Histogram::new(buckets.clone(), self.owned_stripes);
        self.family(name, Kind::Histogram, labels, Family::new(max, make))
    }

    /// Values that are computed each time they are read, from books kept elsewhere. `read` hands each
    /// series to its argument: one value per label, and a value of the announced kind. It must hand out at
    /// most `max` series, and a counter must never fall.
    pub fn computed<const N: usize>(
        &self,
        name: Name,
        kind: Kind,
        labels: [&'static str; N],
        max: usize,
        read: impl Fn(&mut dyn FnMut([&str; N], Value)) + Send + Sync + 'static,
    ) {
        self.publish(name, kind, &labels, Computed { read, max });
    }

    /// Writes all series in the OpenMetrics text format.
    ///
    /// # Errors
    /// Only those of `out`.
    pub fn encode(&self, out: &mut impl fmt::Write) -> fmt::Result {
        let names = self.names();
        encode_registry(out, &names.exposition)?;
        encode_registry(out, &names.exact)?;
        encode_eof(out)
    }

    /// Hands every series to `visit`, name by name in the order of publication.
    pub fn read(&self, mut visit: impl FnMut(Reading<'_>)) {
        for published in &self.names().all {
            let name = published.full_name();
            published.values.read(&mut |values, value| {
                visit(Reading {
                    name: &name,
                    labels: &published.labels,
                    values,
                    unit: published.unit,
                    value,
                });
            });
        }
    }

    /// Heap bytes that all published meters hold at most, whatever is counted: a line of the memory plan.
    pub fn size_bytes(&self) -> usize {
        let names = self.names();
        let names_bytes = names.all.len() * (size_of::<Published>() + 2 * size_of::<Exposed>() + 128);
        names_bytes + names.all.iter().map(|published| published.values.size_bytes()).sum::<usize>()
    }

    /// How many series there can be at most.
    pub fn max_series(&self) -> usize {
        self.names().all.iter().map(|published| published.values.max_series()).sum()
    }

    /// How often label values had no room in their family, by the family's name.
    pub fn overflowed(&self) -> Vec<(&'static str, u64)> {
        self.overflows().iter().map(|(name, counter)| (*name, counter.value())).collect()
    }

    fn family<M: Meter, const N: usize>(
        &self,
        name: Name,
        kind: Kind,
        labels: [&'static str; N],
        family: Family<M, N>,
    ) -> Family<M, N> {
        self.publish(name, kind, &labels, family.clone());
        self.overflows().push((name.name, family.overflow_counter()));
        family
    }

    fn publish(&self, name: Name, kind: Kind, labels: &[&'static str], values: impl Readable + 'static) {
        let Name { name, help, unit, is_exact } = name;
        assert!(is_name(name), "`{name}` cannot be a metric's name: use lower-case letters, digits and `_`");
        let published = Arc::new(Published {
            name,
            unit,
            is_exact,
            kind,
            labels: labels.into(),
            values: Box::new(values),
        });
        let mut names = self.names();
        // In another unit it has another name.
        let same =
            |other: &Arc<Published>| (other.name, other.unit, other.is_exact) == (name, unit, is_exact);
        assert!(!names.all.iter().any(same), "the metric `{name}` is published twice");
        let exposed = Exposed(Arc::clone(&published));
        let exposition = if is_exact { &mut names.exact } else { &mut names.exposition };
        match unit.declared() {
            Some(unit) => exposition.register_with_unit(name, help, unit, exposed),
            None => exposition.register(name, help, exposed),
        }
        names.all.push(published);
    }

    fn names(&self) -> MutexGuard<'_, Names> {
        lock(&self.published)
    }

    fn overflows(&self) -> MutexGuard<'_, Vec<(&'static str, Counter)>> {
        lock(&self.overflows)
    }
}

impl Published {
    fn full_name(&self) -> String {
        let total = if self.kind == Kind::Counter { "_total" } else { "" };
        let (prefix, joint) = if self.is_exact { ("", "") } else { (PREFIX, "_") };
        format!("{prefix}{joint}{}{}{total}", self.name, self.unit.suffix())
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Registry of {} names", self.names().all.len())
    }
}

/// The registry is only ever added to, so a panic elsewhere leaves nothing half done in it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
}

struct Single<M>(M);

impl<M: Meter> Readable for Single<M> {
    fn read(&self, visit: &mut Visit<'_>) {
        visit(&[], self.0.value_now());
    }

    fn size_bytes(&self) -> usize {
        self.0.heap_bytes()
    }

    fn max_series(&self) -> usize {
        1
    }
}

struct Computed<F, const N: usize> {
    read: F,
    max: usize,
}

impl<const N: usize, F> Readable for Computed<F, N>
where
    F: Fn(&mut dyn FnMut([&str; N], Value)) + Send + Sync,
{
    fn read(&self, visit: &mut Visit<'_>) {
        let mut room = self.max;
        (self.read)(&mut |values, value| {
            if room > 0 {
                room -= 1;
                visit(&values, value);
            }
        });
    }

    fn size_bytes(&self) -> usize {
        size_of::<F>()
    }

    fn max_series(&self) -> usize {
        self.max
    }
}
