//! Parts of `prometheus.WriteRequest`, remote write 1.0.

use super::message::Message;
use super::request::Level;
use crate::metadata::kind;
use crate::table::point_type;

/// The labels of a series or of an exemplar, in this order.
pub(super) fn encode_labels(labels: &[(String, String)]) -> Vec<u8> {
    let mut out = Message::default();
    for (name, value) in labels {
        let label = out.begin(1);
        out.bytes(1, name.as_bytes());
        out.bytes_unless_empty(2, value.as_bytes());
        out.end(label);
    }
    out.into_bytes()
}

/// A sample, as a field of its series.
pub(super) fn write_sample(bits: u64, millis: i64, out: &mut Message) {
    let sample = out.begin(2);
    out.fixed64_unless_0(1, bits);
    out.varint_unless_0(2, millis.cast_unsigned());
    out.end(sample);
}

/// The facts that rows have about the family of their metric.
pub(super) struct Family<'r> {
    pub(super) metric: &'r str,
    pub(super) point_type: i32,
    pub(super) unit: Option<&'r str>,
    pub(super) help: Option<&'r str>,
    /// Whether the series has a label `le`.
    pub(super) has_bound: bool,
}

impl Family<'_> {
    /// `MetricMetadata`, from which the lake would learn the row's type, unit and description again; `None` when the row has
    /// none of them.
    pub(super) fn level(&self) -> Option<Level> {
        let stripped = |suffix| self.metric.strip_suffix(suffix).unwrap_or(self.metric);
        let (kind, family) = match self.point_type {
            point_type::COUNTER if self.has_bound && self.metric.ends_with("_bucket") => {
                (kind::HISTOGRAM, stripped("_bucket"))
            }
            point_type::COUNTER => (kind::COUNTER, self.metric),
            point_type::GAUGE => (kind::GAUGE, self.metric),
            point_type::HISTOGRAM => (kind::HISTOGRAM, self.metric),
            point_type::GAUGE_HISTOGRAM => (kind::GAUGE_HISTOGRAM, self.metric),
            point_type::SUMMARY_QUANTILE => (kind::SUMMARY, self.metric),
            point_type::SUMMARY_SUM => (kind::SUMMARY, stripped("_sum")),
            point_type::SUMMARY_COUNT => (kind::SUMMARY, stripped("_count")),
            _ => (0, self.metric),
        };
        if family.is_empty() || kind == 0 && self.unit.is_none() && self.help.is_none() {
            return None;
        }
        let mut head = Message::default();
        head.varint_unless_0(1, u64::from(kind));
        head.bytes(2, family.as_bytes());
        head.text(4, self.help);
        head.text(5, self.unit);
        Some(Level { field: 3, head: head.into_bytes(), kind: 0 })
    }
}
