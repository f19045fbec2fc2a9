//! The labels of the series that rules are applied to.

use crate::memory::{Memory, Slice};
use crate::value::Failure;

/// The most labels of a series, those that were replaced or removed included, until they are cleared away.
pub(super) const MOST: usize = 1_280;
/// The most labels that a series may end with, as receivers allow.
const MOST_LEFT: usize = 1_024;
/// The longest name, as receivers allow.
const NAME_BYTES: usize = 4 << 10;
/// The longest value, as receivers allow.
const VALUE_BYTES: usize = 64 << 10;

/// A text, with the number of its symbol in the body if it is one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Text {
    pub(super) slice: Slice,
    pub(super) symbol: u32,
}

/// A label.
#[derive(Debug, Clone, Copy)]
pub(super) struct Label {
    pub(super) name: Text,
    pub(super) value: Text,
    /// Where the label is in a 1.0 body, tag included, as long as it is as it came.
    pub(super) raw: Option<(u32, u32)>,
    /// Whether it came with the series.
    came: bool,
    gone: bool,
}

/// The labels of one series.
///
/// They are in the order in which Prometheus' builder goes through them: those that came and were not set, then those that
/// were set, in the order in which they were set first. Names occur once.
#[derive(Debug)]
pub(super) struct Labels {
    labels: Vec<Label>,
    /// Labels that came with the series and have a value.
    came: usize,
    changed: bool,
    /// Whether a label without a name was set.
    nameless: bool,
    /// The numbers of the labels that are left, sorted by name.
    order: Vec<u16>,
}

impl Text {
    pub(super) const NO_SYMBOL: u32 = u32::MAX;
    pub(super) const EMPTY: Text = Text { slice: Slice::EMPTY, symbol: Text::NO_SYMBOL };

    /// A text that is no symbol.
    pub(super) const fn of(slice: Slice) -> Text {
        Text { slice, symbol: Text::NO_SYMBOL }
    }

    pub(super) const fn is_empty(self) -> bool {
        self.slice.len == 0
    }
}

impl Labels {
    /// The bytes that a table takes.
    pub(super) const BYTES: usize = MOST * (size_of::<Label>() + size_of::<u16>());

    /// An empty table of its final size.
    pub(super) fn new() -> Labels {
        Labels {
            labels: Vec::with_capacity(MOST),
            came: 0,
            changed: false,
            nameless: false,
            order: Vec::with_capacity(MOST),
        }
    }

    /// Begins another series.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.labels.clear();
        self.came = 0;
        self.changed = false;
        self.nameless = false;
    }

    /// Adds a label of the series. One without a value is none.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] when there are too many.
    #[inline]
    pub(super) fn load(&mut self, name: Text, value: Text, raw: Option<(u32, u32)>) -> Result<(), Failure> {
        if value.is_empty() {
            return Ok(());
        }
        if self.labels.len() >= MOST_LEFT {
            return Err(Failure::TooLarge);
        }
        self.labels.push(Label { name, value, raw, came: true, gone: false });
        self.came += 1;
        Ok(())
    }

    /// The value of a label; empty when there is none.
    #[inline]
    pub(super) fn get(&self, memory: &Memory<'_>, name: Slice) -> Text {
        self.find(memory, name).map_or(Text::EMPTY, |label| label.value)
    }

    /// Sets a label; an empty value removes it.
    ///
    /// # Errors
    /// [`Failure::TooLarge`] when the label or the series would be more than receivers accept.
    pub(super) fn set(&mut self, memory: &Memory<'_>, name: Text, value: Text) -> Result<(), Failure> {
        if value.is_empty() {
            self.remove(memory, name.slice);
            return Ok(());
        }
        self.nameless |= name.is_empty();
        if name.slice.len as usize > NAME_BYTES || value.slice.len as usize > VALUE_BYTES {
            return Err(Failure::TooLarge);
        }
        let wanted = memory.get(name.slice);
        let mut label = Label { name, value, raw: None, came: false, gone: false };
        if let Some(own) = self.labels.iter_mut().find(|own| own.is_named(memory, wanted)) {
            let equal = memory.get(own.value.slice) == memory.get(value.slice);
            if !own.came {
                if !equal {
                    (own.value, own.raw) = (value, None);
                    self.changed = true;
                }
                return Ok(());
            }
            // It moves behind the others.
            own.gone = true;
            label.name = own.name;
            if equal {
                (label.value, label.raw) = (own.value, own.raw);
            }
            self.changed |= !equal;
        } else {
            if self.labels.iter().filter(|label| !label.gone).count() >= MOST_LEFT {
                return Err(Failure::TooLarge);
            }
            self.changed = true;
        }
        if self.labels.len() >= MOST {
            self.labels.retain(|label| !label.gone);
        }
        self.labels.push(label);
        Ok(())
    }

    /// Removes a label.
    pub(super) fn remove(&mut self, memory: &Memory<'_>, name: Slice) {
        let wanted = memory.get(name);
        if let Some(own) = self.labels.iter_mut().find(|own| own.is_named(memory, wanted)) {
            own.gone = true;
            self.changed = true;
        }
    }

    /// Removes the labels whose name does not meet `keep`.
    pub(super) fn retain(&mut self, mut keep: impl FnMut(Slice) -> bool) {
        for label in &mut self.labels {
            if !label.gone && !keep(label.name.slice) {
                label.gone = true;
                self.changed = true;
            }
        }
    }

    /// Whether a label without a name was set.
    pub(super) fn has_nameless(&self) -> bool {
        self.nameless
    }

    /// A label by its place; those that are gone have one too.
    pub(super) fn nth(&self, at: usize) -> Option<&Label> {
        self.labels.get(at)
    }

    /// The labels that are left.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Label> {
        self.labels.iter().filter(|label| !label.gone)
    }

    /// Whether the series is not as it came.
    #[inline]
    pub(super) fn is_changed(&self) -> bool {
        if !self.changed {
            return false;
        }
        // A label that one rule set and another removed is no change.
        let mut left = 0;
        for label in self.iter() {
            if !label.came {
                return true;
            }
            left += 1;
        }
        left != self.came
    }

    /// Sorts the labels that are left by name. Those that came are in order already, as in every checked body.
    pub(super) fn sort(&mut self, memory: &Memory<'_>) {
        let labels = &self.labels;
        let name =
            |at: u16| labels.get(usize::from(at)).map_or(&[][..], |label| memory.get(label.name.slice));
        self.order.clear();
        // At most `MOST` of them.
        for (at, label) in labels.iter().enumerate().filter(|(_, label)| !label.gone) {
            let place = if label.came {
                self.order.len()
            } else {
                let own = memory.get(label.name.slice);
                self.order.partition_point(|&other| name(other) < own)
            };
            self.order.insert(place, at as u16);
        }
    }

    /// A label by its place among those that were [sorted](Self::sort).
    pub(super) fn nth_sorted(&self, place: usize) -> Option<&Label> {
        self.labels.get(usize::from(*self.order.get(place)?))
    }

    /// The labels that are left, sorted by name.
    pub(super) fn sorted(&mut self, memory: &Memory<'_>) -> impl Iterator<Item = &Label> {
        self.sort(memory);
        self.order.iter().filter_map(|&at| self.labels.get(usize::from(at)))
    }

    #[inline]
    fn find(&self, memory: &Memory<'_>, name: Slice) -> Option<&Label> {
        let wanted = memory.get(name);
        self.labels.iter().find(|own| own.is_named(memory, wanted))
    }
}

impl Label {
    /// Whether it came with the series and was not set.
    pub(super) fn came(&self) -> bool {
        self.came
    }

    pub(super) fn is_gone(&self) -> bool {
        self.gone
    }

    #[inline]
    fn is_named(&self, memory: &Memory<'_>, name: &[u8]) -> bool {
        self.name.slice.len as usize == name.len() && memory.get(self.name.slice) == name && !self.gone
    }
}
