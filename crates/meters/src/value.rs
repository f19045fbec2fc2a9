use crate::histogram::Summary;

/// The kind of meter of a series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// A distribution.
    Histogram,
}

/// One series' value, unscaled: nanoseconds, bytes or plain numbers, as its meter holds them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// A counter's total.
    Counter(u64),
    /// A gauge's value.
    Gauge(i64),
    /// A histogram's buckets, count and sum.
    Histogram(Summary),
}

/// Receives each series of a meter: its label values, and its value.
pub(crate) type Visit<'a> = dyn FnMut(&[&str], Value) + 'a;

/// Whatever can be published under one name: a single meter, a family, or values computed when read.
pub(crate) trait Readable: Send + Sync {
    /// Hands every series to `visit`.
    fn read(&self, visit: &mut Visit<'_>);

    /// Heap bytes held now and for ever.
    fn size_bytes(&self) -> usize;

    /// The most series that `read` can ever hand out.
    fn max_series(&self) -> usize;
}
