//! The OpenTelemetry Transformation Language, as `pkg/ottl` v1.3 of the OpenTelemetry Collector has it.
//!
//! `parse` parses a text into a tree with positions; `check` resolves paths, functions and types and gives a
//! [`program`], which the machine runs. Sources:
//! <https://github.com/open-telemetry/opentelemetry-collector-contrib/tree/main/pkg/ottl>.

pub(crate) mod calls;
pub(crate) mod check;
pub(crate) mod components;
pub(crate) mod diagnostic;
mod enums;
pub(crate) mod field;
pub(crate) mod literals;
pub(crate) mod near_keys;
mod parse;
mod paths;
pub(crate) mod program;
pub(crate) mod signature;
mod suggest;
mod syntax;
mod token;
mod unquote;
mod visit;

#[cfg(test)]
mod oracle_tests;
#[cfg(test)]
mod signature_tests;
