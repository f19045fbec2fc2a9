//! `merge_histogram_buckets`: fewer buckets in a histogram.

use super::super::{converter, optional, required};
use crate::any_value::{Elements, count, write_element};
use crate::machine::Machine;
use crate::machine::arguments::literal;
use crate::memory::{Memory, Slice};
use crate::ottl::field::{Context, Field};
use crate::ottl::program::Argument;
use crate::ottl::signature::{Effect, Signature, Type};
use crate::value::{Failure, Value};

/// `merge_histogram_buckets(target_value, method)`: removes the bound `target_value` (the default, `remove_explicit_bound`), or merges
/// neighbours until there are at most `target_value` buckets (`limit_buckets`). Other points stay, and histograms whose numbers of
/// bounds and buckets do not fit.
pub(in crate::functions) static MERGE_HISTOGRAM_BUCKETS: Signature = Signature {
    effects: &[
        Effect::Changes(Context::DataPoint, Field::BucketCounts),
        Effect::Changes(Context::DataPoint, Field::ExplicitBounds),
    ],
    complete: |arguments, constants, _| {
        let Some(is_limit) = is_limit(arguments, constants) else {
            return Err((1, "there are the methods `remove_explicit_bound` and `limit_buckets`".into()));
        };
        match literal(arguments, 0) {
            Some(Value::Nil) => Err((0, "the target value is nil".into())),
            Some(value) if is_limit && number(value, constants).and_then(most_buckets).is_err() => {
                Err((0, "the number of buckets is a positive integer".into()))
            }
            _ => Ok(()),
        }
    },
    ..converter(
        "merge_histogram_buckets",
        &[required("target_value", Type::DoubleLike), optional("method", Type::LiteralText)],
        Type::Nothing,
        merge,
    )
};

const NO_NUMBER: Failure = Failure::Invalid("the number of buckets is no positive integer");

/// Whether the method is `limit_buckets`; `None` for an unknown one.
fn is_limit(arguments: &[Argument], constants: &[u8]) -> Option<bool> {
    let Some(Value::Text(method)) = literal(arguments, 1) else { return Some(false) };
    match constants.get(method.start as usize..(method.start + method.len) as usize) {
        Some(b"remove_explicit_bound") => Some(false),
        Some(b"limit_buckets") => Some(true),
        _ => None,
    }
}

/// The number of a literal, as far as the checker lets it through.
fn number(value: Value, constants: &[u8]) -> Result<f64, Failure> {
    match value {
        Value::Int(number) => Ok(number as f64),
        Value::Double(number) => Ok(number),
        Value::Bool(flag) => Ok(f64::from(u8::from(flag))),
        Value::Text(text) => {
            let text = constants.get(text.start as usize..(text.start + text.len) as usize);
            let text = str::from_utf8(text.unwrap_or_default()).unwrap_or_default();
            crate::machine::arguments::go_double(text).ok_or(NO_NUMBER)
        }
        _ => Err(NO_NUMBER),
    }
}

fn most_buckets(target: f64) -> Result<usize, Failure> {
    if target >= 1.0 && target.trunc() == target && target <= i64::MAX as f64 {
        // More than a body can have is no limit.
        Ok(target.min(f64::from(u32::MAX)) as usize)
    } else {
        Err(NO_NUMBER)
    }
}

fn merge(machine: &mut Machine<'_>, arguments: &[Argument]) -> Result<Value, Failure> {
    let [target, _] = super::all::<2>(arguments)?;
    let bounds = machine.record.get(&mut machine.memory, Context::DataPoint, Field::ExplicitBounds)?;
    let Value::List(bounds) = bounds else { return Ok(Value::Nil) };
    let counts = machine.record.get(&mut machine.memory, Context::DataPoint, Field::BucketCounts)?;
    let Value::List(counts) = counts else { return Ok(Value::Nil) };
    let target = machine.double_like(target)?.ok_or(Failure::Invalid("the target value is nil"))?;
    let memory = &mut machine.memory;
    let buckets = count(memory, counts);
    let is_limit = is_limit(arguments, memory.constants) == Some(true);
    let most = if is_limit { most_buckets(target)? } else { 0 };
    if count(memory, bounds) + 1 != buckets || buckets < 2 {
        return Ok(Value::Nil);
    }
    let (bounds, counts) = if is_limit {
        if buckets <= most || !is_increasing(memory, bounds) {
            return Ok(Value::Nil);
        }
        let width = buckets.div_ceil(most);
        let is_inside = |at: usize| at % width != width - 1;
        (without(memory, bounds, is_inside)?, merged(memory, counts, |at| !is_inside(at))?)
    } else {
        let Some(at) = position(memory, bounds, target) else { return Ok(Value::Nil) };
        (without(memory, bounds, |bound| bound == at)?, merged(memory, counts, |bucket| bucket != at)?)
    };
    let Machine { memory, record, .. } = machine;
    // Both or none: a point is broken whose numbers do not fit. Each number is packed into eight bytes.
    memory.check_room(size_of::<u64>() * (count(memory, bounds) + count(memory, counts)))?;
    record.set(memory, Context::DataPoint, Field::ExplicitBounds, Value::List(bounds))?;
    record.set(memory, Context::DataPoint, Field::BucketCounts, Value::List(counts))?;
    Ok(Value::Nil)
}

/// The place of the bound that is nearly `target`.
fn position(memory: &Memory<'_>, bounds: Slice, target: f64) -> Option<usize> {
    let mut elements = Elements::new(bounds);
    let mut bounds = std::iter::from_fn(|| elements.next(memory));
    bounds.position(|bound| matches!(bound, Value::Double(bound) if (bound - target).abs() < 1e-12))
}

fn is_increasing(memory: &Memory<'_>, bounds: Slice) -> bool {
    let mut elements = Elements::new(bounds);
    let mut last = None;
    while let Some(element) = elements.next(memory) {
        let Value::Double(bound) = element else { return false };
        if last.is_some_and(|last| !matches!(bound.partial_cmp(&last), Some(std::cmp::Ordering::Greater))) {
            return false;
        }
        last = Some(bound);
    }
    true
}

/// The list without some of its elements.
fn without(
    memory: &mut Memory<'_>,
    list: Slice,
    is_removed: impl Fn(usize) -> bool,
) -> Result<Slice, Failure> {
    memory.build(|memory| {
        let mut elements = Elements::new(list);
        let mut at = 0;
        while let Some((_, raw)) = elements.next_raw(memory) {
            if !is_removed(at) {
                memory.push_slice(raw)?;
            }
            at += 1;
        }
        Ok(())
    })
}

/// The list of sums, each of the buckets up to one that ends it.
fn merged(memory: &mut Memory<'_>, counts: Slice, ends: impl Fn(usize) -> bool) -> Result<Slice, Failure> {
    memory.build(|memory| {
        let mut elements = Elements::new(counts);
        let (mut at, mut open) = (0, None);
        while let Some(element) = elements.next(memory) {
            let Value::Int(number) = element else { return Err(NO_NUMBER) };
            let sum = open.unwrap_or(0_i64).wrapping_add(number);
            open = Some(sum);
            if ends(at) {
                write_element(Value::Int(sum), memory)?;
                open = None;
            }
            at += 1;
        }
        open.map_or(Ok(()), |sum| write_element(Value::Int(sum), memory))
    })
}
