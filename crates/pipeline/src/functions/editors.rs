//! Editors: functions that change the record. Their meaning is that of `pkg/ottl/ottlfuncs` v1.3;
//! `redact` is our own.
//!
//! An editor of a map works on a table: that of the attributes or the cache itself, or a spare one for a nested map, which is
//! written back when it changed. An editor that fails leaves what it did before, as in Go.

mod flatten;
mod glob;
mod keys;
mod lists;
mod matches;
mod merge;
mod redact;
mod replace;
mod replacement;
mod set;
#[cfg(test)]
mod tests;
mod texts;

use super::{all, converter, optional, required};
use crate::machine::Machine;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Parameter, Signature, Type};
use crate::value::{Failure, Value};

/// All editors.
pub(super) static EDITORS: &[&Signature] = &[
    &lists::APPEND,
    &set::CLEAR,
    &lists::DELETE_INDEX,
    &keys::DELETE_KEY,
    &keys::DELETE_MATCHING_KEYS,
    &flatten::FLATTEN,
    &keys::KEEP_KEYS,
    &keys::KEEP_MATCHING_KEYS,
    &keys::LIMIT,
    &merge::MERGE_MAPS,
    &redact::REDACT,
    &matches::REPLACE_ALL_MATCHES,
    &replace::REPLACE_ALL_PATTERNS,
    &matches::REPLACE_MATCH,
    &replace::REPLACE_PATTERN,
    &set::SET,
    &texts::STRINGIFY_ALL,
    &texts::TRUNCATE_ALL,
];

/// An editor whose literals need no compilation.
const fn editor(
    name: &'static str,
    parameters: &'static [Parameter],
    run: fn(&mut Machine<'_>, &[Argument]) -> Result<Value, Failure>,
) -> Signature {
    converter(name, parameters, Type::Nothing, run)
}

/// Runs `edit` with the arguments as an array, which the checker has counted.
fn run<const N: usize>(
    machine: &mut Machine<'_>,
    arguments: &[Argument],
    edit: fn(&mut Machine<'_>, &[Argument; N]) -> Result<(), Failure>,
) -> Result<Value, Failure> {
    edit(machine, all(arguments)?).map(|()| Value::Nil)
}
