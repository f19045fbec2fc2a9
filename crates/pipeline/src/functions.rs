//! The functions of OTTL.

use crate::ottl::signature::Signature;

/// The literal of a parameter, compiled with the program.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// A regular expression.
    Pattern(crate::regex::Regex),
}

/// Finds a function by its name.
pub(crate) fn find(name: &str) -> Option<&'static Signature> {
    FUNCTIONS.iter().copied().find(|function| function.name == name)
}

/// All functions, by name.
pub(crate) static FUNCTIONS: &[&Signature] = &[];
