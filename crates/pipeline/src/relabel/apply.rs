//! Applies compiled rules to the labels of one series.

use super::labels::{Labels, Text};
use super::pattern::Pattern;
use super::rule::{Action, Expansion, ExpansionPart, Rule};
use super::text;
use crate::memory::{Memory, Slice};
use crate::regex::{Budget, Caches, Captures};
use crate::value::Failure;
use tidegate_wire::output::Output as _;

/// Outcome for a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Keep,
    Drop,
}

/// The parts of a workspace that rules use.
pub(super) struct Evaluation<'w, 'm> {
    pub(super) memory: Memory<'m>,
    pub(super) state: &'w mut State,
}

/// State that rules change or keep while they run.
#[derive(Debug)]
pub(super) struct State {
    pub(super) labels: Labels,
    pub(super) caches: Caches,
    pub(super) memos: Box<[super::pattern::Memo]>,
    captures: Captures,
    /// Labels that a rule will set, by their names.
    pending: Vec<(Text, Text)>,
}

impl State {
    /// The most labels that rules set: two names for each label that is renamed.
    const PENDING: usize = 2 * super::labels::MOST;

    /// The bytes of a state, besides caches and memos.
    pub(super) const BYTES: usize = Labels::BYTES + Self::PENDING * size_of::<(Text, Text)>();

    pub(super) fn new(caches: Caches, memos: usize) -> State {
        State {
            labels: Labels::new(),
            caches,
            memos: vec![super::pattern::Memo::new(); memos].into(),
            captures: Captures::new(),
            pending: Vec::with_capacity(Self::PENDING),
        }
    }
}

impl Evaluation<'_, '_> {
    /// Applies `rule`. When it fails, the labels are as they were before.
    pub(super) fn apply(&mut self, rule: &Rule) -> Result<Verdict, Failure> {
        let State { labels, caches, memos, .. } = &mut *self.state;
        let selected = rule.condition.is_empty()
            || rule.condition.iter().any(|selector| selector.selects(labels, &self.memory, caches, memos));
        if !selected {
            // As in vmagent: `keep` with a condition keeps only what meets it.
            let keeps = matches!(rule.action, Action::Keep(_));
            return Ok(if keeps { Verdict::Drop } else { Verdict::Keep });
        }
        let keep = match &rule.action {
            Action::Keep(pattern) => {
                let value = self.source(rule)?;
                self.matches(pattern, value.slice)
            }
            Action::Drop(pattern) => {
                let value = self.source(rule)?;
                !self.matches(pattern, value.slice)
            }
            Action::KeepEqual(target) => self.equals(rule, *target)?,
            Action::DropEqual(target) => !self.equals(rule, *target)?,
            Action::KeepIfEqual => self.all_equal(rule),
            Action::DropIfEqual => !self.all_equal(rule),
            Action::KeepIfContains(target) => self.contains_all(rule, *target),
            Action::DropIfContains(target) => !self.contains_all(rule, *target),
            Action::LabelDrop(pattern) => {
                self.retain(pattern, false);
                true
            }
            Action::LabelKeep(pattern) => {
                self.retain(pattern, true);
                true
            }
            Action::LabelMap { pattern, replacement } => {
                self.map_names(pattern, replacement, false).map(|()| true)?
            }
            Action::LabelMapAll { pattern, replacement } => {
                self.map_names(pattern, replacement, true).map(|()| true)?
            }
            Action::Replace { pattern, target, replacement } => {
                self.replace(rule, pattern, target, replacement).map(|()| true)?
            }
            Action::ReplaceAll { pattern, target, replacement } => {
                let value = self.source(rule)?;
                if let Some(replaced) = self.replaced_all(pattern, replacement, value.slice)?
                    && self.memory.get(replaced) != self.memory.get(value.slice)
                {
                    self.set(Text::of(*target), Text::of(replaced))?;
                }
                true
            }
            Action::Lowercase(target) => self.set_case(rule, *target, text::lower).map(|()| true)?,
            Action::Uppercase(target) => self.set_case(rule, *target, text::upper).map(|()| true)?,
            Action::HashMod { target, modulus } => {
                let value = self.source(rule)?;
                let hash = text::hash(self.memory.get(value.slice)).checked_rem(*modulus).unwrap_or(0);
                let value = self.memory.build(|memory| text::decimal(hash, |digits| memory.push(digits)))?;
                self.set(Text::of(*target), Text::of(value))?;
                true
            }
        };
        Ok(if keep { Verdict::Keep } else { Verdict::Drop })
    }

    /// Removes what no receiver accepts, behind the last rule: a label without a name.
    pub(super) fn finish(&mut self) {
        self.state.labels.remove(&self.memory, Slice::EMPTY);
    }

    /// The joined values of the rule's source labels.
    #[inline]
    fn source(&mut self, rule: &Rule) -> Result<Text, Failure> {
        match &*rule.source {
            [] => Ok(Text::EMPTY),
            [one] => Ok(self.state.labels.get(&self.memory, *one)),
            several => {
                let labels = &self.state.labels;
                let joined = self.memory.build(|memory| {
                    for (number, name) in several.iter().enumerate() {
                        if number > 0 {
                            memory.push_slice(rule.separator)?;
                        }
                        let value = labels.get(memory, *name);
                        memory.push_slice(value.slice)?;
                    }
                    Ok(())
                })?;
                Ok(Text::of(joined))
            }
        }
    }

    #[inline]
    fn matches(&mut self, pattern: &Pattern, value: Slice) -> bool {
        pattern.is_match(self.memory.get(value), &mut self.state.caches, &mut self.state.memos)
    }

    fn set(&mut self, name: Text, value: Text) -> Result<(), Failure> {
        self.state.labels.set(&self.memory, name, value)
    }

    fn equals(&mut self, rule: &Rule, target: Slice) -> Result<bool, Failure> {
        let value = self.source(rule)?;
        let own = self.state.labels.get(&self.memory, target);
        Ok(self.memory.get(own.slice) == self.memory.get(value.slice))
    }

    fn all_equal(&self, rule: &Rule) -> bool {
        let mut values = rule.source.iter().map(|name| self.value_of(*name));
        let first = values.next();
        values.all(|value| Some(value) == first)
    }

    fn contains_all(&self, rule: &Rule, target: Slice) -> bool {
        let own = self.value_of(target);
        rule.source.iter().all(|name| memchr::memmem::find(own, self.value_of(*name)).is_some())
    }

    fn value_of(&self, name: Slice) -> &[u8] {
        self.memory.get(self.state.labels.get(&self.memory, name).slice)
    }

    fn retain(&mut self, pattern: &Pattern, keep: bool) {
        let State { labels, caches, memos, .. } = &mut *self.state;
        labels.retain(|name| pattern.is_match(self.memory.get(name), caches, memos) == keep);
    }

    fn set_case(&mut self, rule: &Rule, target: Slice, map: fn(char) -> char) -> Result<(), Failure> {
        let value = self.source(rule)?;
        let mapped = self.memory.build(|memory| {
            let (contents, mut room) = memory.split();
            for chunk in contents.get(value.slice).utf8_chunks() {
                for c in chunk.valid().chars() {
                    room.put(map(c).encode_utf8(&mut [0; 4]).as_bytes()).map_err(|_| Failure::TooLarge)?;
                }
            }
            Ok(())
        })?;
        self.set(Text::of(target), Text::of(mapped))
    }

    fn replace(
        &mut self,
        rule: &Rule,
        pattern: &Pattern,
        target: &Expansion,
        replacement: &Expansion,
    ) -> Result<(), Failure> {
        let value = self.source(rule)?;
        if target.has_groups() || replacement.has_groups() {
            if !self.captures(pattern, value.slice, 0) {
                return Ok(());
            }
        } else if !self.matches(pattern, value.slice) {
            return Ok(());
        }
        let name = self.expand(target, value)?;
        if name.is_empty() {
            return Ok(());
        }
        let value = self.expand(replacement, value)?;
        self.set(name, value)
    }

    /// Finds the match of `pattern` in `value` from byte `at` on, with its groups.
    fn captures(&mut self, pattern: &Pattern, value: Slice, at: usize) -> bool {
        let State { caches, captures, .. } = &mut *self.state;
        pattern
            .regex
            .as_ref()
            .is_some_and(|regex| regex.captures_at(caches, self.memory.get(value), at, captures))
    }

    /// The expansion for the last match, which was in `value`.
    fn expand(&mut self, expansion: &Expansion, value: Text) -> Result<Text, Failure> {
        match expansion {
            Expansion::Constant(text) => Ok(Text::of(*text)),
            Expansion::Value => Ok(value),
            Expansion::Parts(parts) => {
                if let [ExpansionPart::Group(groups)] = &**parts {
                    return Ok(Text::of(group(&self.state.captures, groups, value.slice)));
                }
                let State { labels, captures, .. } = &*self.state;
                let built =
                    self.memory.build(|memory| push_parts(memory, labels, captures, parts, value.slice))?;
                Ok(Text::of(built))
            }
        }
    }

    /// `value` with every match replaced, or `None` when there is no match.
    fn replaced_all(
        &mut self,
        pattern: &Pattern,
        replacement: &Expansion,
        value: Slice,
    ) -> Result<Option<Slice>, Failure> {
        let mark = self.memory.mark();
        // Where the last match ended, and where to look for the next.
        let (mut end, mut at) = (0usize, 0usize);
        let mut found = false;
        let len = value.len as usize;
        let mut budget = Budget::new(len);
        while at <= len && self.captures(pattern, value, at) {
            let Some(range) = self.state.captures.range(0) else { break };
            found = true;
            let may_read =
                pattern.regex.as_ref().map_or(Ok(()), |regex| budget.take(regex, at, range.end, len));
            let written = may_read
                .map_err(Failure::from)
                .and_then(|()| self.replace_match(replacement, value, end, &range));
            if let Err(failure) = written {
                self.memory.release(mark);
                return Err(failure);
            }
            end = range.end;
            let width = self.memory.get(value).get(at..).and_then(|rest| rest.utf8_chunks().next());
            let width = width.and_then(|chunk| chunk.valid().chars().next()).map_or(0, char::len_utf8);
            at = if at + width > range.end {
                at + width
            } else {
                range.end.max(at + usize::from(at + 1 > range.end))
            };
        }
        if !found {
            return Ok(None);
        }
        self.memory.push_slice(value.part(end, len))?;
        Ok(Some(self.memory.since(mark)))
    }

    /// Appends what is between the match that ended at `end` and the one at `range`, and what replaces that.
    fn replace_match(
        &mut self,
        replacement: &Expansion,
        value: Slice,
        end: usize,
        range: &std::ops::Range<usize>,
    ) -> Result<(), Failure> {
        self.memory.push_slice(value.part(end, range.start))?;
        // As in Go: no empty match directly behind another.
        if range.end <= end && range.start != 0 {
            return Ok(());
        }
        let State { labels, captures, .. } = &*self.state;
        match replacement {
            Expansion::Constant(text) => self.memory.push_slice(*text),
            Expansion::Value => self.memory.push_slice(value.part(range.start, range.end)),
            Expansion::Parts(parts) => push_parts(&mut self.memory, labels, captures, parts, value),
        }
    }

    /// Copies (`labelmap`) or moves (`labelmap_all`) labels to the names that the replacement gives.
    fn map_names(&mut self, pattern: &Pattern, replacement: &Expansion, moves: bool) -> Result<(), Failure> {
        self.state.pending.clear();
        for at in 0.. {
            let Some(label) = self.state.labels.nth(at) else { break };
            let (name, value) = (label.name, label.value);
            if label.is_gone() || !(moves || self.matches(pattern, name.slice)) {
                continue;
            }
            let Some(mapped) = self.replaced_all(pattern, replacement, name.slice)? else { continue };
            if moves {
                if self.memory.get(mapped) == self.memory.get(name.slice) {
                    continue;
                }
                self.state.pending.push((name, Text::EMPTY));
            }
            self.state.pending.push((Text::of(mapped), value));
        }
        let pending = std::mem::take(&mut self.state.pending);
        let mut result = Ok(());
        for &(name, value) in &pending {
            result = result.and(self.set(name, value));
        }
        self.state.pending = pending;
        result
    }
}

/// The text matched by the first of `groups` that took part in a match of `value`.
fn group(captures: &Captures, groups: &[usize], value: Slice) -> Slice {
    let range = groups.iter().find_map(|group| captures.range(*group));
    range.map_or(Slice::EMPTY, |range| value.part(range.start, range.end))
}

fn push_parts(
    memory: &mut Memory<'_>,
    labels: &Labels,
    captures: &Captures,
    parts: &[ExpansionPart],
    value: Slice,
) -> Result<(), Failure> {
    for part in parts {
        let slice = match part {
            ExpansionPart::Text(text) => *text,
            ExpansionPart::Group(groups) => group(captures, groups, value),
            ExpansionPart::Label(name) => labels.get(memory, *name).slice,
        };
        memory.push_slice(slice)?;
    }
    Ok(())
}
