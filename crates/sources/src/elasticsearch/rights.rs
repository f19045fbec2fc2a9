//! Whether a sender may have done what an item asks for: the sink would do it with a key of its own.

use super::rewrite::Defaults;
use tidegate_admission::Rejection;
use tidegate_admission::access::{BulkAction, BulkRights, LONGEST_INDEX};
use tidegate_ledger::Refusal;
use tidegate_wire::bulk::{Field, Item, Kind, unescape};

/// Looks at the items of one body, in order.
pub(super) struct Guard<'a> {
    rights: &'a BulkRights,
    /// The index that was looked at last, as it is written, and whether it may be written to: most items have the one
    /// of the item before.
    last: Option<(&'a [u8], bool)>,
}

/// Why an item is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denied {
    Update,
    Delete,
    Script,
    Pipeline,
    Index,
}

impl Denied {
    /// The right to request. It contains nothing that JSON escapes.
    pub(super) const fn reason(self) -> &'static str {
        match self {
            Denied::Update => {
                "action [update] is not allowed to this sender: ask the gateway's operator for `bulk=update` on the \
                 credential's line, or in `access.bulk` where there are no credentials"
            }
            Denied::Delete => {
                "action [delete] is not allowed to this sender: ask the gateway's operator for `bulk=delete` on the \
                 credential's line, or in `access.bulk` where there are no credentials"
            }
            Denied::Script => {
                "a script is not allowed to this sender: ask the gateway's operator for `bulk=update,script` on the \
                 credential's line, or in `access.bulk` where there are no credentials"
            }
            Denied::Pipeline => {
                "a pipeline is not allowed to this sender: ask the gateway's operator for `bulk=pipeline` on the \
                 credential's line, or in `access.bulk` where there are no credentials"
            }
            Denied::Index => {
                "this index is not allowed to this sender: ask the gateway's operator for `indices=` on the credential's \
                 line; one that begins with a dot has to be named there with its dot"
            }
        }
    }
}

impl<'a> Guard<'a> {
    pub(super) fn new(rights: &'a BulkRights) -> Guard<'a> {
        Guard { rights, last: None }
    }

    /// Whether the address of the request may say what it does.
    ///
    /// # Errors
    /// `forbidden` when it names a pipeline and may not.
    pub(super) fn request(&self, defaults: &Defaults) -> Result<(), Rejection> {
        if !defaults.has(Field::Pipeline) || self.rights.has(BulkAction::Pipeline) {
            return Ok(());
        }
        const WORDS: &str = "the parameter `pipeline` is not allowed to this sender: ask the gateway's operator for \
                             `bulk=pipeline` on the credential's line, or in `access.bulk` where there are no \
                             credentials\n";
        Err(Rejection::new(Refusal::Forbidden, WORDS))
    }

    /// Why the item is not taken, if it is not. Of an update's document it is known that it is one.
    #[inline]
    pub(super) fn look(&mut self, item: &Item<'a>, defaults: &'a Defaults) -> Option<Denied> {
        let lacks = |action| !self.rights.has(action);
        match item.action.kind {
            Kind::Index | Kind::Create => {}
            Kind::Update if lacks(BulkAction::Update) => return Some(Denied::Update),
            Kind::Update if lacks(BulkAction::Script) && item.has_script() => return Some(Denied::Script),
            Kind::Update => {}
            Kind::Delete if lacks(BulkAction::Delete) => return Some(Denied::Delete),
            Kind::Delete => {}
        }
        if item.action.pipeline && lacks(BulkAction::Pipeline) {
            return Some(Denied::Pipeline);
        }
        let index = item.action.index.or(defaults.index()).unwrap_or_default();
        let may = match self.last {
            Some((last, may)) if last == index => may,
            _ => {
                let may = self.may_write(index);
                self.last = Some((index, may));
                may
            }
        };
        (!may).then_some(Denied::Index)
    }

    fn may_write(&self, index: &[u8]) -> bool {
        // A longer text is not a name.
        let mut space = [0; LONGEST_INDEX];
        unescape(index, &mut space).is_some_and(|index| self.rights.may_write(index))
    }
}
