//! Tests of pipelines, in the configuration beside them.

use crate::declare::settings;
use crate::reader::Reader;
use crate::setting::{PlainValue, Section, Sequence, Setting, Shape};
use crate::values::{Fixture, Name, Text};
use crate::yaml::{Node, Value};

settings! {
    /// A test of a pipeline: items that go in, and what must come out. `tidegate test` runs it; the gateway does not.
    pub struct PipelineTest {
        /// The name of the test, for the report.
        name: Text,
        /// The pipeline that it tests.
        pipeline: Name,
        /// Items that go in.
        given: OrSeries<Given>,
        /// The items that must come out.
        expect: OrSeries<Expectation>,
    }
}

settings! {
    /// Items that go into a pipeline, as the sink `http` writes them: see [http-sink.md](http-sink.md). A list alone is one of
    /// series.
    pub struct Given {
        /// Log records.
        logs: Option<Sequence<Fixture>> = None,
        /// Spans.
        traces: Option<Sequence<Fixture>> = None,
        /// Metric points.
        metrics: Option<Sequence<Fixture>> = None,
        /// Series of remote write, for example `up{job="a"}`.
        series: Option<Sequence<Text>> = None,
    }
}

settings! {
    /// Items that come out of a pipeline, in order. Of each, the members that are named are compared; `null` means that
    /// there is none. A list alone is one of series.
    pub struct Expectation {
        /// Log records.
        logs: Option<Sequence<Fixture>> = None,
        /// Spans.
        traces: Option<Sequence<Fixture>> = None,
        /// Metric points.
        metrics: Option<Sequence<Fixture>> = None,
        /// Series of remote write.
        series: Option<Sequence<Text>> = None,
        /// How many items are dropped.
        dropped: Option<u32> = None,
        /// Whether items may have no members but the named ones.
        exactly: bool = false,
    }
}

/// A group of items, which a list alone gives the series.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrSeries<T>(pub T);

/// A group of items by signal.
trait ItemGroup: Section + Setting {
    fn of_series(series: Sequence<Text>) -> Self;
}

impl ItemGroup for Given {
    fn of_series(series: Sequence<Text>) -> Given {
        Given { series: Some(series), ..Given::default() }
    }
}

impl ItemGroup for Expectation {
    fn of_series(series: Sequence<Text>) -> Expectation {
        Expectation { series: Some(series), ..Expectation::default() }
    }
}

impl<T: ItemGroup> Setting for OrSeries<T> {
    fn read(node: &Node, reader: &mut Reader<'_, '_>) -> Option<OrSeries<T>> {
        match node.value {
            Value::Sequence(_) => Sequence::read(node, reader).map(T::of_series),
            _ => T::read(node, reader),
        }
        .map(OrSeries)
    }

    fn shape() -> Shape {
        T::shape()
    }

    fn plain(&self) -> PlainValue {
        self.0.plain()
    }
}
