//! Repetition: `*`, `+`, `?` and counts in braces.

use super::{Item, Parser, Pending};
use crate::regex::PatternError;
use regex_syntax::hir::{Hir, Repetition};

/// The most copies that counted repetitions may ask for, together where they are nested.
const MAX_REPEAT: u32 = 1_000;

impl Parser<'_> {
    /// Repeats the last item, by the operator at `start`.
    pub(super) fn repeat(
        &mut self,
        min: u32,
        max: Option<u32>,
        start: usize,
        repeated: Option<usize>,
    ) -> Result<(), PatternError> {
        let mut greedy = !self.flags.non_greedy;
        if self.rest().starts_with('?') {
            self.at += 1;
            greedy = !greedy;
        }
        if let Some(first) = repeated {
            return Err(self.error(first, "nested repetition operator; use parentheses"));
        }
        let Some(Pending::Item(item)) = self.stack.pop_if(|last| matches!(last, Pending::Item(_))) else {
            return Err(self.error(start, "nothing to repeat before the repetition operator"));
        };
        let factor = max.unwrap_or(min);
        let copies = match max {
            Some(0) => 1,
            _ => item.copies.saturating_mul(factor.max(1)),
        };
        if (min >= 2 || max.is_some_and(|max| max >= 2)) && copies > MAX_REPEAT {
            return Err(self.error(start, "nested counted repetitions ask for more than 1000 copies"));
        }
        let depth = self.deeper(item.depth, start)?;
        let hir = Hir::repetition(Repetition { min, max, greedy, sub: Box::new(item.hir) });
        self.stack.push(Pending::Item(Item { hir, copies, depth }));
        Ok(())
    }
}

/// The fewest and the most copies.
type Bounds = (u32, Option<u32>);

/// The length of the counted repetition that `text` begins with, and its bounds if those are allowed. `None` when the
/// brace is a literal.
pub(super) fn counts(text: &str) -> Option<(usize, Option<Bounds>)> {
    let end = text.find('}')?;
    let inner = text.get(1..end)?;
    let (min, max) = match inner.split_once(',') {
        Some((min, "")) => (count(min)?, None),
        Some((min, max)) => (count(min)?, Some(count(max)?)),
        None => (count(inner)?, Some(count(inner)?)),
    };
    let allowed = min <= MAX_REPEAT && max.is_none_or(|max| max <= MAX_REPEAT && min <= max);
    Some((end + 1, allowed.then_some((min, max))))
}

/// A count: digits without a leading zero.
fn count(text: &str) -> Option<u32> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits || (text.len() > 1 && text.starts_with('0')) {
        return None;
    }
    Some(text.parse().unwrap_or(u32::MAX))
}
