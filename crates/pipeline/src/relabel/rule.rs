//! Compiled rules.

use super::pattern::Pattern;
use super::selector::Selector;
use crate::memory::Slice;

/// A rule.
#[derive(Debug)]
pub(super) struct Rule {
    /// Series selectors, of which one has to select the series; none: all do.
    pub(super) condition: Box<[Selector]>,
    /// The labels whose values are joined.
    pub(super) source: Box<[Slice]>,
    pub(super) separator: Slice,
    pub(super) action: Action,
}

/// Action of a rule on the joined values of its source labels.
#[derive(Debug)]
pub(super) enum Action {
    /// Keeps only series whose value matches.
    Keep(Pattern),
    /// Drops series whose value matches.
    Drop(Pattern),
    /// Keeps only series whose label has that value.
    KeepEqual(Slice),
    /// Drops series whose label has that value.
    DropEqual(Slice),
    /// Sets a label if the value matches.
    Replace { pattern: Pattern, target: Expansion, replacement: Expansion },
    /// Replaces every match within the value, and sets a label to it if there was one.
    ReplaceAll { pattern: Pattern, target: Slice, replacement: Expansion },
    /// Sets a label to the value in lower case.
    Lowercase(Slice),
    /// Sets a label to the value in upper case.
    Uppercase(Slice),
    /// Sets a label to the value's hash modulo a number.
    HashMod { target: Slice, modulus: u64 },
    /// Copies labels whose name matches to other names.
    LabelMap { pattern: Pattern, replacement: Expansion },
    /// Renames labels by replacing every match within their names.
    LabelMapAll { pattern: Pattern, replacement: Expansion },
    /// Removes labels whose name matches.
    LabelDrop(Pattern),
    /// Removes labels whose name does not match.
    LabelKeep(Pattern),
    /// Keeps only series whose source labels all have one value.
    KeepIfEqual,
    /// Drops series whose source labels all have one value.
    DropIfEqual,
    /// Keeps only series of which a label contains the values of all source labels.
    KeepIfContains(Slice),
    /// Drops series of which a label contains the values of all source labels.
    DropIfContains(Slice),
}

/// A text with references to groups and labels.
#[derive(Debug)]
pub(super) enum Expansion {
    /// None.
    Constant(Slice),
    /// All of the value.
    Value,
    Parts(Box<[ExpansionPart]>),
}

/// A piece of an [`Expansion`].
#[derive(Debug)]
pub(super) enum ExpansionPart {
    Text(Slice),
    /// The text matched by the first of these groups that took part in the match.
    Group(Box<[usize]>),
    /// The value of a label: vmagent's `{{name}}`.
    Label(Slice),
}

impl Expansion {
    /// Whether it needs the groups of a match.
    pub(super) fn has_groups(&self) -> bool {
        match self {
            Expansion::Constant(_) | Expansion::Value => false,
            Expansion::Parts(parts) => parts.iter().any(|part| matches!(part, ExpansionPart::Group(_))),
        }
    }
}
