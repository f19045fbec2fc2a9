//! The functions of OTTL: editors change what they are given, converters return a value.
//!
//! Each function is a [`Signature`] beside the code that it runs. Nothing here allocates while a record is processed: results
//! are appended to the temporary space, and every function says how long its output can be; a full space fails the
//! statement. The meaning is that of `pkg/ottl/ottlfuncs` v1.3 of the OpenTelemetry Collector:
//! <https://github.com/open-telemetry/opentelemetry-collector-contrib/tree/main/pkg/ottl/ottlfuncs>.

mod case;
mod collection;
mod csv;
mod duration;
mod editors;
mod encoded;
mod encoding;
mod format;
mod grok;
mod hash;
mod id;
mod json;
mod key_value;
mod kinds;
mod log_formats;
mod members;
mod metrics;
mod network;
mod number;
mod order;
mod pattern;
mod severity;
mod span_name;
mod text;
mod time;
mod url;

#[cfg(test)]
mod tests;

pub(crate) use time::rfc3339;

use crate::any_value::Elements;
use crate::machine::Machine;
use crate::ottl::program::Argument;
use crate::ottl::signature::{Parameter, Signature, Type, complete_nothing, prepare_nothing};
use crate::value::{Failure, Value};

/// The literal of a parameter, compiled with the program.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// A regular expression.
    Pattern(crate::regex::Regex),
    /// The name of an encoding.
    Encoding(encoding::Encoding),
    /// The direction of an order.
    Direction(order::Direction),
    /// A Grok pattern with its definitions.
    Grok(grok::Grok),
    /// Levels and what belongs to them.
    Severities(severity::Severities),
    /// A format with places for values.
    Format(format::Template),
    /// The format of a time.
    Layout(time::Layout),
    /// The zone of a time.
    Zone(jiff::tz::TimeZone),
    /// The name of a case.
    Case(case::Case),
    /// A replacement for the matches of a regular expression.
    Template(crate::regex::Template),
}

/// Finds a function by its name.
pub(crate) fn find(name: &str) -> Option<&'static Signature> {
    all_functions().find(|function| function.name == name)
}

/// All functions.
pub(crate) fn all_functions() -> impl Iterator<Item = &'static Signature> {
    FAMILIES.iter().copied().flatten().copied()
}

static FAMILIES: &[&[&Signature]] = &[
    editors::EDITORS,
    case::CONVERTERS,
    severity::CONVERTERS,
    network::CONVERTERS,
    format::CONVERTERS,
    grok::CONVERTERS,
    csv::CONVERTERS,
    order::CONVERTERS,
    key_value::CONVERTERS,
    log_formats::CONVERTERS,
    metrics::FUNCTIONS,
    span_name::EDITORS,
    time::CONVERTERS,
    pattern::CONVERTERS,
    json::CONVERTERS,
    id::CONVERTERS,
    encoding::CONVERTERS,
    duration::CONVERTERS,
    collection::CONVERTERS,
    hash::CONVERTERS,
    kinds::CONVERTERS,
    number::CONVERTERS,
    text::CONVERTERS,
    url::CONVERTERS,
];

const fn required(name: &'static str, accepts: Type) -> Parameter {
    Parameter { name, accepts, optional: false }
}

const fn optional(name: &'static str, accepts: Type) -> Parameter {
    Parameter { name, accepts, optional: true }
}

/// A converter whose literals need no compilation.
const fn converter(
    name: &'static str,
    parameters: &'static [Parameter],
    returns: Type,
    run: fn(&mut Machine<'_>, &[Argument]) -> Result<Value, Failure>,
) -> Signature {
    Signature {
        name,
        parameters,
        returns,
        prepare: prepare_nothing,
        complete: complete_nothing,
        effects: &[],
        run,
    }
}

/// The arguments as an array: the checker has counted them.
fn all<const N: usize>(arguments: &[Argument]) -> Result<&[Argument; N], Failure> {
    arguments.try_into().map_err(|_| Failure::Invalid("wrong number of arguments"))
}

/// Puts the elements of a list argument onto the stack, from place `base`, for `finish`.
fn with_elements(
    machine: &mut Machine<'_>,
    argument: &Argument,
    finish: impl FnOnce(&mut Machine<'_>, usize) -> Result<Value, Failure>,
) -> Result<Value, Failure> {
    if let Argument::Values(expressions) = argument {
        return machine.with_values(expressions.iter(), finish);
    }
    let list = machine.list_content(argument)?;
    machine.with_values([].iter(), |machine, base| {
        let mut elements = Elements::new(list);
        while let Some(value) = elements.next(&machine.memory) {
            machine.push_value(value)?;
        }
        finish(machine, base)
    })
}
