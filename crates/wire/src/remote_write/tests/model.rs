//! The meaning of a request, independent of its version and decoder.

use super::oracle::{
    Count, ExemplarV1, HistogramV1, HistogramV2, Label, MetadataV1, RequestV2, SampleV1, SeriesV1, Span,
    WriteRequest, ZeroCount,
};
use crate::remote_write::{self as ours, Request};

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Model {
    pub(super) series: Vec<Series>,
    /// 1.0: the list; 2.0: what the series say.
    pub(super) metadata: Vec<MetadataV1>,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Series {
    pub(super) labels: Vec<Label>,
    pub(super) samples: Vec<Sample>,
    pub(super) histograms: Vec<HistogramV2>,
    pub(super) exemplars: Vec<ExemplarV1>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Sample {
    pub(super) bits: u64,
    pub(super) timestamp: i64,
    pub(super) start: i64,
}

impl Series {
    pub(super) fn name(&self) -> String {
        self.labels.iter().find(|label| label.name == "__name__").unwrap().value.clone()
    }
}

impl From<&WriteRequest> for Model {
    fn from(request: &WriteRequest) -> Self {
        Self {
            series: request.timeseries.iter().map(Series::from).collect(),
            metadata: request.metadata.clone(),
        }
    }
}

impl From<&SeriesV1> for Series {
    fn from(series: &SeriesV1) -> Self {
        let sample = |&SampleV1 { value, timestamp }: &_| Sample { bits: value, timestamp, start: 0 };
        Self {
            labels: series.labels.clone(),
            samples: series.samples.iter().map(sample).collect(),
            histograms: series.histograms.iter().map(HistogramV2::from).collect(),
            exemplars: series.exemplars.clone(),
        }
    }
}

impl From<&HistogramV1> for HistogramV2 {
    fn from(from: &HistogramV1) -> Self {
        let from = from.clone();
        Self {
            count: from.count,
            sum: from.sum,
            schema: from.schema,
            zero_threshold: from.zero_threshold,
            zero_count: from.zero_count,
            negative_spans: from.negative_spans,
            negative_deltas: from.negative_deltas,
            negative_counts: from.negative_counts,
            positive_spans: from.positive_spans,
            positive_deltas: from.positive_deltas,
            positive_counts: from.positive_counts,
            reset_hint: from.reset_hint,
            timestamp: from.timestamp,
            custom_values: from.custom_values,
            start_timestamp: 0,
        }
    }
}

impl From<&RequestV2> for Model {
    fn from(request: &RequestV2) -> Self {
        let text = |reference: u32| request.symbols[reference as usize].clone();
        let labels = |refs: &[u32]| -> Vec<Label> {
            refs.chunks(2).map(|pair| Label { name: text(pair[0]), value: text(pair[1]) }).collect()
        };
        let mut model = Self::default();
        for from in &request.timeseries {
            let start = |start| if start == 0 { from.created_timestamp } else { start };
            let series = Series {
                labels: labels(&from.labels_refs),
                samples: (from.samples.iter())
                    .map(|sample| Sample {
                        bits: sample.value,
                        timestamp: sample.timestamp,
                        start: start(sample.start_timestamp),
                    })
                    .collect(),
                histograms: (from.histograms.iter().cloned())
                    .map(|h| HistogramV2 { start_timestamp: start(h.start_timestamp), ..h })
                    .collect(),
                exemplars: (from.exemplars.iter())
                    .map(|exemplar| ExemplarV1 {
                        labels: labels(&exemplar.labels_refs),
                        value: exemplar.value,
                        timestamp: exemplar.timestamp,
                    })
                    .collect(),
            };
            model.metadata.extend(from.metadata.map(|metadata| MetadataV1 {
                kind: metadata.kind,
                family: series.name(),
                help: text(metadata.help_ref),
                unit: text(metadata.unit_ref),
            }));
            model.series.push(series);
        }
        model
    }
}

impl From<Request<'_>> for Model {
    fn from(request: Request<'_>) -> Self {
        Self {
            series: request.series().map(Series::from).collect(),
            metadata: (request.metadata())
                .map(|metadata| MetadataV1 {
                    kind: metadata.kind.cast_signed(),
                    family: text(metadata.family),
                    help: text(metadata.help),
                    unit: text(metadata.unit),
                })
                .collect(),
        }
    }
}

impl From<ours::Series<'_>> for Series {
    fn from(series: ours::Series<'_>) -> Self {
        Self {
            labels: labels(series.labels()),
            samples: (series.samples())
                .map(|sample| Sample {
                    bits: sample.value().to_bits(),
                    timestamp: sample.timestamp,
                    start: sample.start_timestamp,
                })
                .collect(),
            histograms: series.histograms().map(HistogramV2::from).collect(),
            exemplars: (series.exemplars())
                .map(|exemplar| ExemplarV1 {
                    value: exemplar.value().to_bits(),
                    timestamp: exemplar.timestamp,
                    labels: labels(exemplar.labels),
                })
                .collect(),
        }
    }
}

impl From<ours::Histogram<'_>> for HistogramV2 {
    fn from(from: ours::Histogram<'_>) -> Self {
        let span = |span: ours::Span| Span { offset: span.offset, length: span.length };
        Self {
            count: from.count.map(|count| match count {
                ours::Count::Int(count) => Count::Int(count),
                ours::Count::Float(bits) => Count::Float(bits),
            }),
            sum: from.sum_bits,
            schema: from.schema,
            zero_threshold: from.zero_threshold_bits,
            zero_count: from.zero_count.map(|count| match count {
                ours::Count::Int(count) => ZeroCount::Int(count),
                ours::Count::Float(bits) => ZeroCount::Float(bits),
            }),
            negative_spans: from.negative_spans().map(span).collect(),
            negative_deltas: from.negative_deltas().collect(),
            negative_counts: from.negative_counts().collect(),
            positive_spans: from.positive_spans().map(span).collect(),
            positive_deltas: from.positive_deltas().collect(),
            positive_counts: from.positive_counts().collect(),
            reset_hint: from.reset_hint.cast_signed(),
            timestamp: from.timestamp,
            custom_values: from.custom_values().collect(),
            start_timestamp: from.start_timestamp,
        }
    }
}

fn labels<'a>(labels: impl Iterator<Item = ours::Label<'a>>) -> Vec<Label> {
    labels.map(|label| Label { name: text(label.name), value: text(label.value) }).collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
