//! Regular expressions in Go's syntax, with search state that the caller owns.

/// A compiled regular expression.
#[derive(Debug)]
pub(crate) struct Regex(());

/// The search state of all regular expressions of a program.
#[derive(Debug, Default)]
pub(crate) struct Caches(());
