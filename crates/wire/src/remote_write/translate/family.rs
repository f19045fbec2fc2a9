//! Converts a series' metric name to its family's name, and back.

/// Endings of the series that a histogram or a summary is sent as.
const PARTS: [&[u8]; 3] = [b"_bucket", b"_sum", b"_count"];

/// Endings that OpenMetrics adds to a family's name for its series, beside [`PARTS`].
const OPENMETRICS: [&[u8]; 2] = [b"_total", b"_created"];

const HISTOGRAM: u32 = 3;
const GAUGE_HISTOGRAM: u32 = 4;
const SUMMARY: u32 = 5;

/// The family that a series with this metric name belongs to, if it is of this kind.
pub(super) fn family_of(name: &[u8], kind: u32) -> &[u8] {
    if !matches!(kind, HISTOGRAM | GAUGE_HISTOGRAM | SUMMARY) {
        return name;
    }
    PARTS.iter().find_map(|ending| name.strip_suffix(*ending)).unwrap_or(name)
}

/// The names that the family of a series with this metric name may have, likelier ones first.
pub(super) fn candidates(name: &[u8]) -> impl Iterator<Item = &[u8]> {
    let stripped = PARTS.iter().chain(&OPENMETRICS).filter_map(move |ending| name.strip_suffix(*ending));
    std::iter::once(name).chain(stripped)
}
