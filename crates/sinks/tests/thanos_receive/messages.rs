//! The messages that go in and come out, read and written by `prost`.

/// A request of remote write 1.0.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RequestV1 {
    #[prost(message, repeated, tag = "1")]
    pub(crate) series: Vec<Series>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) metadata: Vec<Metadata>,
}

/// A series of remote write 1.0, and of a request to an ingestor.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Series {
    #[prost(message, repeated, tag = "1")]
    pub(crate) labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) samples: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub(crate) exemplars: Vec<Exemplar>,
    #[prost(message, repeated, tag = "4")]
    pub(crate) histograms: Vec<Histogram>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Label {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(string, tag = "2")]
    pub(crate) value: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Sample {
    /// The bits of the value: a payload of NaN has to arrive.
    #[prost(fixed64, tag = "1")]
    pub(crate) bits: u64,
    #[prost(int64, tag = "2")]
    pub(crate) time: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Exemplar {
    #[prost(message, repeated, tag = "1")]
    pub(crate) labels: Vec<Label>,
    #[prost(double, tag = "2")]
    pub(crate) value: f64,
    #[prost(int64, tag = "3")]
    pub(crate) time: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Histogram {
    #[prost(uint64, tag = "1")]
    pub(crate) count: u64,
    #[prost(double, tag = "3")]
    pub(crate) sum: f64,
    #[prost(sint32, tag = "4")]
    pub(crate) schema: i32,
    #[prost(int64, tag = "15")]
    pub(crate) time: i64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Metadata {
    #[prost(string, tag = "2")]
    pub(crate) family: String,
}

/// A request of remote write 2.0 with float samples.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct RequestV2 {
    #[prost(string, repeated, tag = "4")]
    pub(crate) symbols: Vec<String>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) series: Vec<SeriesV2>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct SeriesV2 {
    #[prost(uint32, repeated, tag = "1")]
    pub(crate) labels: Vec<u32>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) samples: Vec<Sample>,
}

impl Series {
    /// Series `number` with a sample at each of these times.
    pub(crate) fn numbered(number: u64, times: &[i64]) -> Series {
        let label = |name: &str, value: String| Label { name: name.to_owned(), value };
        Series {
            labels: vec![label("__name__", "m".to_owned()), label("number", number.to_string())],
            samples: times.iter().map(|time| Sample { bits: number, time: *time }).collect(),
            ..Series::default()
        }
    }

    /// The value of a label.
    pub(crate) fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|label| label.name == name).map(|label| label.value.as_str())
    }

    /// The items in it.
    pub(crate) fn items(&self) -> u64 {
        (self.samples.len() + self.exemplars.len() + self.histograms.len()) as u64
    }
}

impl RequestV2 {
    /// The same series as remote write 2.0.
    pub(crate) fn of(series: &[Series]) -> RequestV2 {
        let mut symbols = vec![String::new()];
        let mut reference = |text: &str| {
            symbols.push(text.to_owned());
            u32::try_from(symbols.len() - 1).unwrap()
        };
        let series = series
            .iter()
            .map(|series| SeriesV2 {
                labels: series
                    .labels
                    .iter()
                    .flat_map(|label| [reference(&label.name), reference(&label.value)])
                    .collect(),
                samples: series.samples.clone(),
            })
            .collect();
        RequestV2 { symbols, series }
    }
}
