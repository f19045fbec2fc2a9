//! Prometheus remote write, 1.0 (`prometheus.WriteRequest`) and 2.0 (`io.prometheus.write.v2.Request`).
//!
//! [`inspect`] walks a decompressed body once and says what is in it, what of it is accepted, and what is wrong with
//! the rest and where; [`repair`] writes what is accepted. [`view`] shows a checked body to readers, the same for both versions and without a copy. The rest moves
//! series between bodies: [`translate`] from one version to the other, [`join`] and [`split`] within one.
//!
//! Schemas: `prompb/types.proto`, `prompb/remote.proto` and `prompb/io/prometheus/write/v2/types.proto` of
//! the Prometheus project; rules: <https://prometheus.io/docs/specs/prw/remote_write_spec_2_0/> (2.0-rc.4).

mod check;
mod error;
pub mod exemplars;
mod floats;
mod hash;
pub(crate) mod histogram;
pub(crate) mod intern;
mod item;
pub mod join;
mod repair;
mod rewrite;
mod series_text;
pub mod split;
pub(crate) mod symbols;
#[cfg(test)]
pub(crate) mod tests;
pub mod translate;
pub mod v1;
pub mod v2;
mod view;

pub use check::{Counts, InspectionReport, Limits, PartialRejection};
pub use error::{ErrorSubject, Excerpt, HistogramSide, RemoteWriteError, RemoteWriteErrorKind};
pub use floats::{HistogramRemoval, has_histograms, without_histograms};
pub use hash::{lane_of, series_hash};
pub use histogram::{Count, Histogram, Span};
pub use item::{Exemplar, Label, Metadata, STALE_NAN, Sample};
pub use repair::repair;
pub use rewrite::RewriteError;
pub use series_text::write_series;
pub use symbols::Symbols;
pub use view::{Labels, Request, Series, SeriesIter};

/// Which of the two schemas a body follows; a receiver knows it from the Content-Type alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Version {
    /// Remote-Write 1.0: `prometheus.WriteRequest`.
    V1,
    /// Remote-Write 2.0: `io.prometheus.write.v2.Request`.
    V2,
}

impl Version {
    /// The full name of the protobuf message, as the `proto` parameter of the Content-Type has it.
    #[must_use]
    pub fn message(self) -> &'static str {
        match self {
            Self::V1 => "prometheus.WriteRequest",
            Self::V2 => "io.prometheus.write.v2.Request",
        }
    }
}

/// Checks the decompressed body `raw` in one walk, counts what is in it, and tells what is accepted from what is not.
///
/// A series is refused when its labels are not UTF-8, have an empty name, a name twice or no `__name__`, or exceed the
/// [`Limits`]; in 2.0 also when it refers to symbols that do not exist, or has neither samples nor histograms nor
/// exemplars, or samples as well as histograms. A native histogram is refused when Prometheus would refuse it, and an
/// exemplar when it has a label without a name; the rest of their series is accepted. Labels in any order are accepted:
/// [`repair`] sorts them.
///
/// `__name__` is a SHOULD of the specification, and Prometheus as a receiver refuses a series without it;
/// it is required here too (unless the limits say otherwise), because a gateway that accepts what its
/// destination refuses has lost it. Empty label *values* are accepted: Prometheus reads them as "no such
/// label". Order in time is left to whoever stores the samples, and so is an exemplar's timestamp, where
/// proto3 cannot tell 0 from missing. Exemplar labels may come in any order. The first symbol of 2.0 may be any text,
/// as with Prometheus.
///
/// `symbols` is scratch for the 2.0 symbol table; see [`Symbols::bytes_for`] for what it will hold. Labels that have to
/// be sorted take [`Limits::bytes_to_sort`]. Nothing else is allocated unless there is an error to describe.
///
/// # Errors
/// A [`RemoteWriteError`] of the body as a whole: it is not the protobuf message that it should be, belongs to the other version,
/// or has more symbols than it may have. Then nothing of it is accepted.
pub fn inspect(
    version: Version,
    raw: &[u8],
    limits: &Limits,
    symbols: &mut Symbols,
) -> Result<InspectionReport, RemoteWriteError> {
    match version {
        Version::V1 => check::v1::inspect(raw, limits),
        Version::V2 => check::v2::inspect(raw, limits, symbols),
    }
}

/// The same for those who want all or nothing: whether everything is accepted as it is, sorted labels included.
///
/// # Errors
/// A [`RemoteWriteError`]: which series, which byte, and what is wrong.
pub fn check(
    version: Version,
    raw: &[u8],
    limits: &Limits,
    symbols: &mut Symbols,
) -> Result<Counts, RemoteWriteError> {
    inspect(version, raw, limits, symbols)?.strict()
}

/// Shows a 2.0 body that was checked before, with at most `bytes` of scratch in `symbols`, whatever it holds: for readers
/// who must not need more for bodies of very many symbols. Where the table does not fit, symbols are found more slowly.
///
/// # Errors
/// As [`view`].
pub fn view_within<'a>(
    raw: &'a [u8],
    bytes: usize,
    symbols: &'a mut Symbols,
) -> Result<v2::Request<'a>, RemoteWriteError> {
    Ok(v2::Request::new(raw, symbols.index_within(raw, bytes)?))
}

/// Shows a body that was checked before.
///
/// The view is total: over a body that was not checked it shows less (it ends at the first malformed byte)
/// but does not panic. The 2.0 symbol table is built into `symbols`.
///
/// # Errors
/// When the top level of a 2.0 body is malformed or the body is longer than 4 GiB.
pub fn view<'a>(
    version: Version,
    raw: &'a [u8],
    symbols: &'a mut Symbols,
) -> Result<Request<'a>, RemoteWriteError> {
    match version {
        Version::V1 => Ok(Request::V1(v1::Request::new(raw))),
        Version::V2 => Ok(Request::V2(v2::Request::new(raw, symbols.index(raw, usize::MAX)?))),
    }
}
