//! The functions of the Collector's processors for metrics: they change the kind of a metric, the values of its points or the
//! buckets of a histogram, and look for attributes of its points.

mod buckets;

use super::{all, converter, optional, required};
use crate::machine::Machine;
use crate::machine::arguments::literal;
use crate::memory::Slice;
use crate::ottl::field::{Context, Field};
use crate::ottl::program::Argument;
use crate::ottl::signature::{Effect, Signature, Type};
use crate::record::data;
use crate::value::{Failure, Value};

pub(super) static FUNCTIONS: &[&Signature] = &[
    &CONVERT_GAUGE_TO_SUM,
    &CONVERT_SUM_TO_GAUGE,
    &HAS_ATTR_KEY_ON_DATAPOINT,
    &HAS_ATTR_ON_DATAPOINT,
    &buckets::MERGE_HISTOGRAM_BUCKETS,
    &SCALE_METRIC,
];

/// Field of a metric's data that holds for all of its points.
const DATA: &[Effect] = &[Effect::Changes(Context::Metric, Field::AggregationTemporality)];

const NO_METRIC: Failure = Failure::Invalid("the record is no metric");

/// `convert_sum_to_gauge()`: other metrics stay.
static CONVERT_SUM_TO_GAUGE: Signature = Signature {
    effects: DATA,
    ..converter("convert_sum_to_gauge", &[], Type::Nothing, |machine, _| {
        let Machine { memory, record, .. } = machine;
        record.data().ok_or(NO_METRIC)?.become_gauge(memory);
        Ok(Value::Nil)
    })
};

/// `convert_gauge_to_sum(temporality, monotonic)`: other metrics stay.
static CONVERT_GAUGE_TO_SUM: Signature = Signature {
    effects: DATA,
    complete: |arguments, constants, _| match temporality(arguments, constants) {
        0 => Err((0, "there are the temporalities `delta` and `cumulative`".into())),
        _ => Ok(()),
    },
    ..converter(
        "convert_gauge_to_sum",
        &[required("string_agg_temp", Type::LiteralText), required("monotonic", Type::LiteralBool)],
        Type::Nothing,
        |machine, arguments| {
            let temporality = temporality(arguments, machine.memory.constants);
            let is_monotonic = literal(arguments, 1) == Some(Value::Bool(true));
            let Machine { memory, record, .. } = machine;
            record.data().ok_or(NO_METRIC)?.become_sum(memory, temporality, is_monotonic);
            Ok(Value::Nil)
        },
    )
};

/// The temporality that the first argument names; 0 for another text.
fn temporality(arguments: &[Argument], constants: &[u8]) -> u64 {
    let Some(Value::Text(name)) = literal(arguments, 0) else { return 0 };
    match constants.get(name.start as usize..(name.start + name.len) as usize) {
        Some(b"delta") => 1,
        Some(b"cumulative") => 2,
        _ => 0,
    }
}

/// `scale_metric(multiplier, unit)`: multiplies the values of all points, the bounds and extremes of histograms, and the quantiles of
/// summaries. Fails on exponential histograms. The walk does it when it meets the points.
static SCALE_METRIC: Signature = Signature {
    effects: &[Effect::Changes(Context::Metric, Field::Unit), Effect::MultipliesPoints],
    ..converter(
        "scale_metric",
        &[required("multiplier", Type::LiteralDouble), optional("unit", Type::Text)],
        Type::Nothing,
        |machine, arguments| {
            let [_, unit] = all::<2>(arguments)?;
            let Some(Value::Double(factor)) = literal(arguments, 0) else {
                return Err(Failure::Invalid("the multiplier is no number"));
            };
            let unit = match unit {
                Argument::Absent => None,
                unit => Some(machine.text(unit)?),
            };
            let Machine { memory, record, .. } = machine;
            let metric = record.data().ok_or(NO_METRIC)?;
            match metric.kind() {
                data::GAUGE | data::SUM | data::HISTOGRAM | data::SUMMARY => {
                    metric.multiply(memory, factor)?;
                }
                data::EXPONENTIAL => {
                    return Err(Failure::Invalid("exponential histograms cannot be multiplied"));
                }
                _ => return Err(NO_DATA),
            }
            if let Some(unit) = unit {
                record.set(memory, Context::Metric, Field::Unit, Value::Text(unit))?;
            }
            Ok(Value::Nil)
        },
    )
};

const NO_DATA: Failure = Failure::Invalid("the metric has no data");

/// Whether a point of the metric has the attribute.
static HAS_ATTR_KEY_ON_DATAPOINT: Signature = Signature {
    effects: &[Effect::ReadsPoints],
    ..converter(
        "HasAttrKeyOnDatapoint",
        &[required("key", Type::LiteralText)],
        Type::Bool,
        |machine, arguments| first_attribute(machine, arguments).map(|found| Value::Bool(found.is_some())),
    )
};

/// Whether the first point with the attribute has this text in it. What is no text counts as an empty one.
static HAS_ATTR_ON_DATAPOINT: Signature = Signature {
    effects: &[Effect::ReadsPoints],
    ..converter(
        "HasAttrOnDatapoint",
        &[required("key", Type::LiteralText), required("expected_val", Type::LiteralText)],
        Type::Bool,
        |machine, arguments| {
            let text = match first_attribute(machine, arguments)? {
                Some(Value::Text(text)) => text,
                Some(_) => Slice::EMPTY,
                None => return Ok(Value::Bool(false)),
            };
            let Some(Value::Text(expected)) = literal(arguments, 1) else { return Ok(Value::Bool(false)) };
            Ok(Value::Bool(machine.memory.get(text) == machine.memory.get(expected)))
        },
    )
};

/// The attribute of the first point that has it: the walk has found it. The key is the first argument.
fn first_attribute(machine: &mut Machine<'_>, arguments: &[Argument]) -> Result<Option<Value>, Failure> {
    let metric = machine.record.data().ok_or(NO_METRIC)?;
    if metric.kind() == 0 {
        return Err(NO_DATA);
    }
    let Some(Value::Text(key)) = literal(arguments, 0) else { return Ok(None) };
    Ok(metric.attributes.get(key))
}
