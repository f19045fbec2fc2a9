//! Reuses the rules' results of recent series for series that are alike.
//!
//! Most rules depend only on which labels a series has and on the values of a few of them, and series of one target agree in
//! those. A [`Recipe`] holds the places of such a series' labels in the body, and what the rules made of them: ranges of labels
//! to keep, and labels to put between. It serves every later series of the same body with the same names and the same values of
//! the labels that the rules read.
//!
//! Rules at the begin that keep or drop by one label, usually the metric name, are not part of it: they are asked each time.

use super::rule::{Action, Expansion, ExpansionPart, Rule};
use super::{Step, pattern::Pattern};
use crate::memory::Slice;

/// The most labels of a series that has a recipe.
pub(super) const MOST_LABELS: usize = 64;
/// The most bytes of labels that a recipe puts in.
pub(super) const MOST_BYTES: usize = 1 << 10;
/// How many there are; the number of labels says which.
const RECIPES: usize = 8;

/// Facts about the rules that recipes need.
#[derive(Debug, Default)]
pub(super) struct Traits {
    /// The rules at the begin that keep or drop by one label.
    pub(super) filters: usize,
    /// The labels whose values the other rules read. `None`: more than can be told, so there are no recipes.
    pub(super) reads: Option<Box<[Slice]>>,
}

/// A label in the body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    /// All of it in 1.0, and its two references in 2.0.
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) name: Key,
    pub(super) value: Key,
    /// Whether rules read its value.
    pub(super) read: bool,
}

/// A text: its place and length in a 1.0 body, or the number of its symbol and 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub(super) at: u32,
    pub(super) len: u32,
}

/// A part of the new labels.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// Labels of the series, by their numbers.
    Keep { from: u16, to: u16 },
    /// Bytes of the recipe.
    Put { from: u16, to: u16 },
}

/// Outcome for a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// A filter dropped it, so what the other rules do is not known.
    Unknown,
    Unchanged,
    Changed,
    Dropped,
}

/// Result of the rules for one series.
#[derive(Debug)]
pub(super) struct Recipe {
    pub(super) labels: Vec<Span>,
    /// Which label each filter reads, if the series has it.
    pub(super) filters: Vec<Option<u16>>,
    pub(super) parts: Vec<Part>,
    pub(super) bytes: Vec<u8>,
    pub(super) end: End,
    /// The last step that the series reached.
    pub(super) reached: usize,
}

/// The recipes of a run. Their memory is taken at once.
#[derive(Debug)]
pub(super) struct Recipes {
    recipes: Box<[Recipe]>,
    /// The labels of the current series.
    pub(super) current: Vec<Span>,
    /// How many series in a row had no recipe.
    misses: u32,
    /// How many series pass before one is looked at again.
    idle: u32,
}

impl Traits {
    /// The traits of all rules of `steps`.
    pub(super) fn new(steps: &[Step]) -> Traits {
        let rules = || steps.iter().flat_map(|step| &step.rules);
        let filters = rules().take_while(|rule| filter(rule).is_some()).count();
        let mut reads = Vec::new();
        let known = rules().skip(filters).all(|rule| push_reads(rule, &mut reads));
        Traits { filters, reads: known.then(|| reads.into()) }
    }
}

/// The label and the pattern of a rule that does nothing but keep or drop by them, and whether it keeps.
pub(super) fn filter(rule: &Rule) -> Option<(Slice, &Pattern, bool)> {
    let ([], &[name]) = (&*rule.condition, &*rule.source) else { return None };
    match &rule.action {
        Action::Keep(pattern) => Some((name, pattern, true)),
        Action::Drop(pattern) => Some((name, pattern, false)),
        _ => None,
    }
}

/// Adds the labels whose values `rule` reads, or compares with what it sets. False when that depends on values.
fn push_reads(rule: &Rule, reads: &mut Vec<Slice>) -> bool {
    reads.extend_from_slice(&rule.source);
    reads.extend(rule.condition.iter().flat_map(|selector| selector.labels()));
    let mut push_expansion = |expansion: &Expansion| {
        if let Expansion::Parts(parts) = expansion {
            reads.extend(parts.iter().filter_map(|part| match part {
                ExpansionPart::Label(name) => Some(*name),
                ExpansionPart::Text(_) | ExpansionPart::Group(_) => None,
            }));
        }
    };
    match &rule.action {
        Action::Replace { target: Expansion::Constant(target), replacement, .. }
        | Action::ReplaceAll { target, replacement, .. } => {
            push_expansion(replacement);
            reads.push(*target);
        }
        Action::KeepEqual(target)
        | Action::DropEqual(target)
        | Action::Lowercase(target)
        | Action::Uppercase(target)
        | Action::HashMod { target, .. }
        | Action::KeepIfContains(target)
        | Action::DropIfContains(target) => reads.push(*target),
        Action::Keep(_)
        | Action::Drop(_)
        | Action::LabelDrop(_)
        | Action::LabelKeep(_)
        | Action::KeepIfEqual
        | Action::DropIfEqual => {}
        Action::Replace { .. } | Action::LabelMap { .. } | Action::LabelMapAll { .. } => return false,
    }
    true
}

impl Recipe {
    /// Whether it is the recipe of a series with these `labels` of `body`; with their `symbols` in 2.0.
    #[inline]
    pub(super) fn serves(&self, body: &[u8], labels: &[Span], symbols: bool) -> bool {
        if self.labels.len() != labels.len() {
            return false;
        }
        for (own, other) in self.labels.iter().zip(labels) {
            if !own.name.equals(other.name, body, symbols)
                || (own.read && !own.value.equals(other.value, body, symbols))
            {
                return false;
            }
        }
        true
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.labels.clear();
        self.filters.clear();
        self.parts.clear();
        self.bytes.clear();
        self.end = End::Unknown;
        self.reached = 0;
    }

    /// Adds the label with this number to those that are kept.
    pub(super) fn keep(&mut self, number: u16) {
        match self.parts.last_mut() {
            Some(Part::Keep { to, .. }) if *to == number => *to += 1,
            _ => self.parts.push(Part::Keep { from: number, to: number + 1 }),
        }
    }

    /// Adds `bytes` to be put in. False when there is no room.
    pub(super) fn put(&mut self, bytes: &[u8]) -> bool {
        let start = self.bytes.len();
        if start + bytes.len() > MOST_BYTES {
            return false;
        }
        self.bytes.extend_from_slice(bytes);
        // At most `MOST_BYTES`.
        let (start, end) = (start as u16, self.bytes.len() as u16);
        match self.parts.last_mut() {
            Some(Part::Put { to, .. }) if *to == start => *to = end,
            _ => self.parts.push(Part::Put { from: start, to: end }),
        }
        self.parts.len() <= Recipes::PARTS
    }
}

impl Recipes {
    /// The parts of a recipe: labels that are kept, and what is put around them.
    const PARTS: usize = 2 * MOST_LABELS + 1;

    /// Room for recipes of rules with so many filters.
    pub(super) fn new(filters: usize) -> Recipes {
        let recipe = || Recipe {
            labels: Vec::with_capacity(MOST_LABELS),
            filters: Vec::with_capacity(filters),
            // One more than allowed, for the one that is refused.
            parts: Vec::with_capacity(Self::PARTS + 1),
            bytes: Vec::with_capacity(MOST_BYTES),
            end: End::Unknown,
            reached: 0,
        };
        Recipes {
            recipes: (0..RECIPES).map(|_| recipe()).collect(),
            current: Vec::with_capacity(MOST_LABELS),
            misses: 0,
            idle: 0,
        }
    }

    /// The bytes that they take.
    pub(super) const fn bytes(filters: usize) -> usize {
        let recipe = size_of::<Recipe>()
            + MOST_LABELS * size_of::<Span>()
            + filters * size_of::<Option<u16>>()
            + (Self::PARTS + 1) * size_of::<Part>()
            + MOST_BYTES;
        RECIPES * recipe + MOST_LABELS * size_of::<Span>()
    }

    /// Forgets all recipes: they are about one body.
    pub(super) fn clear(&mut self) {
        self.recipes.iter_mut().for_each(Recipe::clear);
        (self.misses, self.idle) = (0, 0);
    }

    /// Forgets the recipe for series with as many labels as the current one.
    pub(super) fn forget(&mut self) {
        if let Some((recipe, _)) = self.place() {
            recipe.clear();
        }
    }

    /// Whether to look for a recipe for the next series: less often where series differ too much for that.
    #[inline]
    pub(super) fn are_worth_a_look(&mut self) -> bool {
        let looks = self.idle == 0;
        self.idle = self.idle.saturating_sub(1);
        looks
    }

    /// Notes whether a series that was looked at had a recipe.
    #[inline]
    pub(super) fn note(&mut self, served: bool) {
        /// As many misses may come from series that take turns.
        const PATIENCE: u32 = 8;
        const LONGEST: u32 = 32;
        self.misses = if served { 0 } else { self.misses.saturating_add(1) };
        if self.misses > PATIENCE {
            self.idle = self.misses.min(LONGEST);
        }
    }

    /// The place for the recipe of a series with as many labels as the current one.
    #[inline]
    pub(super) fn place(&mut self) -> Option<(&mut Recipe, &[Span])> {
        let recipe = self.recipes.get_mut(self.current.len() % RECIPES)?;
        Some((recipe, &self.current))
    }
}

impl Key {
    /// Whether it is the same text.
    #[inline(always)]
    fn equals(self, other: Key, body: &[u8], symbols: bool) -> bool {
        self == other || (!symbols && self.len == other.len && same(self.bytes(body), other.bytes(body)))
    }

    /// The text, in 1.0.
    #[inline]
    pub(super) fn bytes(self, body: &[u8]) -> &[u8] {
        let start = self.at as usize;
        body.get(start..start + self.len as usize).unwrap_or_default()
    }
}

/// Whether two texts of one length are equal: names are short, and a call for each would cost more than it does.
#[inline(always)]
fn same(one: &[u8], other: &[u8]) -> bool {
    match (one.first_chunk::<8>(), other.first_chunk::<8>(), one.last_chunk::<8>(), other.last_chunk::<8>()) {
        (Some(one_first), Some(other_first), Some(one_last), Some(other_last)) if one.len() <= 16 => {
            one_first == other_first && one_last == other_last
        }
        (None, ..) => match (one.first_chunk::<4>(), other.first_chunk::<4>()) {
            (Some(one_first), Some(other_first)) => {
                one_first == other_first && one.last_chunk::<4>() == other.last_chunk::<4>()
            }
            _ => one.iter().zip(other).all(|(one, other)| one == other),
        },
        _ => one == other,
    }
}
