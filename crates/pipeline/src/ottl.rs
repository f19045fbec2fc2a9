//! The OpenTelemetry Transformation Language, as `pkg/ottl` v1.3 of the OpenTelemetry Collector has it.
//!
//! `syntax` parses a text into a tree with positions; `check` resolves paths, functions and types and gives a
//! [`program`], which the machine runs. Sources:
//! <https://github.com/open-telemetry/opentelemetry-collector-contrib/tree/main/pkg/ottl>.

pub(crate) mod field;
pub(crate) mod program;
pub(crate) mod signature;
