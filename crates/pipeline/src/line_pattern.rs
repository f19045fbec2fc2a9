//! A regular expression over lines of text, for the readers of log files.

use crate::regex::{Caches, Regex, Regexes};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// A regular expression in Go's syntax that matches anywhere in a line.
///
/// Clones share the expression and its search state: it is for one thread, or few.
#[derive(Clone)]
pub struct LinePattern(Arc<Compiled>);

struct Compiled {
    pattern: Box<str>,
    regex: Regex,
    caches: Mutex<Caches>,
    bytes: usize,
}

impl LinePattern {
    /// Compiles `pattern`.
    ///
    /// # Errors
    /// A sentence without a full stop, when Go's `regexp` refuses the pattern, or it compiles to more than is reasonable.
    pub fn compile(pattern: &str) -> Result<LinePattern, String> {
        let mut all = Regexes::default();
        let regex = all.compile(pattern).map_err(|error| error.message)?;
        let bytes = all.program_bytes() + all.cache_bytes();
        Ok(LinePattern(Arc::new(Compiled {
            pattern: pattern.into(),
            regex,
            caches: Mutex::new(all.caches()),
            bytes,
        })))
    }

    /// Whether it matches anywhere in `line`.
    #[must_use]
    pub fn is_match(&self, line: &[u8]) -> bool {
        let mut caches = self.0.caches.lock().unwrap_or_else(PoisonError::into_inner);
        self.0.regex.is_match(&mut caches, line)
    }

    /// The most bytes that it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// The pattern.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.pattern
    }
}

impl fmt::Debug for LinePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("LinePattern").field(&self.0.pattern).finish()
    }
}

impl PartialEq for LinePattern {
    fn eq(&self, other: &LinePattern) -> bool {
        self.0.pattern == other.0.pattern
    }
}

impl Eq for LinePattern {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matches_anywhere_in_a_line() {
        let pattern = LinePattern::compile(r"^\d{4}-").unwrap();
        assert!(pattern.is_match(b"2024-01-01 x\xff"));
        assert!(!pattern.is_match(b" 2024-01-01"));
        assert!(LinePattern::compile(r"\n").unwrap().is_match(b"a\nb"));
        assert_eq!(LinePattern::compile("(").unwrap_err(), "missing closing parenthesis");
    }
}
