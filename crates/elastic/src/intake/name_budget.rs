//! How often dotted names may say what the objects around a value are called.

use tidegate_wire::intake::{Object, Text};

/// How many times its length an event may say so.
const TIMES: usize = 2;
/// The members common to every event.
const AT_LEAST: usize = 1 << 10;

/// The bytes of names of enclosing objects that may still be said of one event. Without it, two hundred thousand members
/// of an object with a long name would be as many copies of that.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NameBudget {
    left: usize,
}

impl NameBudget {
    pub(crate) fn of(event: &[u8]) -> NameBudget {
        NameBudget { left: AT_LEAST.saturating_add(event.len().saturating_mul(TIMES)) }
    }

    /// Whether the members of `object`, which is at `path`, may be said by their whole names.
    pub(crate) fn affords(&mut self, path: &[Text<'_>], object: Object<'_>) -> bool {
        let enclosing: usize = path.iter().map(|name| name.raw().len().saturating_add(1)).sum();
        let wanted = enclosing.saturating_mul(object.members().count());
        let left = self.left.checked_sub(wanted);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}
