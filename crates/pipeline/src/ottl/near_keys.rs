//! Finds attribute keys that are probably misspelt: they differ from another key of the same pipeline by one letter.

use super::check::Use;
use super::diagnostic::Fault;
use super::field::{Context, Field};
use super::literals::Literals;
use std::ops::Range;

/// More keys than this are not compared: each is compared with each.
const MOST: usize = 1_000;

/// The shortest key that is looked at: of short ones, many differ by a letter.
const SHORTEST: usize = 5;

/// The keys of a pipeline, with their places.
#[derive(Debug)]
pub(crate) struct NearKeys<Place>(Vec<Key<Place>>);

#[derive(Debug)]
struct Key<Place> {
    context: Context,
    field: Field,
    key: String,
    uses: usize,
    /// The first use.
    place: Place,
    range: Range<usize>,
}

impl<Place: Clone + PartialEq> NearKeys<Place> {
    pub(crate) const fn new() -> NearKeys<Place> {
        NearKeys(Vec::new())
    }

    /// Notes the keys that a text at `place` uses.
    pub(crate) fn add(&mut self, uses: &[Use], literals: &Literals, place: &Place) {
        for one in uses {
            let Some(key) = one.key.and_then(|key| std::str::from_utf8(literals.get(key)).ok()) else {
                continue;
            };
            let same = |known: &&mut Key<Place>| {
                known.context == one.context && known.field == one.field && known.key == key
            };
            if let Some(known) = self.0.iter_mut().find(same) {
                // A text can be compiled twice.
                known.uses += usize::from(known.place != *place || known.range != one.range);
            } else if self.0.len() < MOST && key.len() >= SHORTEST {
                let (place, range) = (place.clone(), one.range.clone());
                let (context, field, key) = (one.context, one.field, key.to_owned());
                self.0.push(Key { context, field, key, uses: 1, place, range });
            }
        }
    }

    /// The keys that occur once and are near to one that occurs before, or more often.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = (&Place, Fault)> {
        self.0.iter().enumerate().filter(|(_, key)| key.uses == 1).filter_map(|(number, key)| {
            let better = self.0.iter().enumerate().find(|(other, known)| {
                (known.uses > 1 || *other < number)
                    && (known.context, known.field) == (key.context, key.field)
                    && is_misspelt(&known.key, &key.key)
            });
            let (_, known) = better?;
            let message = format!("the key {:?} differs by a letter from {:?}", key.key, known.key);
            let fault = Fault::new(key.range.clone(), message).help(format!("did you mean {:?}?", known.key));
            Some((&key.place, fault))
        })
    }
}

/// Whether one letter is missing, too many, another, or two have changed places. Digits and a plural make other keys.
fn is_misspelt(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let same = a.iter().zip(b).take_while(|(a, b)| a == b).count();
    let (a, b) = (a.get(same..).unwrap_or_default(), b.get(same..).unwrap_or_default());
    let same = a.iter().rev().zip(b.iter().rev()).take_while(|(a, b)| a == b).count();
    let a = a.get(..a.len() - same).unwrap_or_default();
    let b = b.get(..b.len() - same).unwrap_or_default();
    let plural = same == 0;
    match (a, b) {
        ([a], []) | ([], [a]) => a.is_ascii_alphabetic() && !(plural && *a == b's'),
        ([a], [b]) => a.is_ascii_alphabetic() && b.is_ascii_alphabetic(),
        ([a, b], [c, d]) => a == d && b == c && a.is_ascii_alphabetic() && b.is_ascii_alphabetic(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ottl::check::{Scope, statements};
    use crate::{Definition, ErrorMode, Pipeline, Severity, StepDefinition, StepKind};

    #[test]
    fn a_letter_more_or_less_or_another_is_a_misspelling() {
        for (a, b, expected) in [
            ("service.name", "servce.name", true),
            ("service.name", "service.nmae", true),
            ("service.name", "service.namee", true),
            ("http.method", "http.nethod", true),
            ("http.method", "http.method", false),
            ("level", "levels", false),
            ("label_1", "label_2", false),
            ("a.bcde", "a_bcde", false),
            ("http.route", "http.status", false),
        ] {
            assert_eq!(is_misspelt(a, b), expected, "{a} {b}");
            assert_eq!(is_misspelt(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn steps_of_a_pipeline_are_compared() {
        let step = |kind| StepDefinition { when: None, on_error: ErrorMode::Ignore, kind };
        let edit = step(StepKind::Edit(vec!["set(log.attributes[\"http.method\"], 1)".to_owned()]));
        let drop = step(StepKind::Drop(vec!["log.attributes[\"http.metod\"] == 1".to_owned()]));
        let (_, problems) = Pipeline::compile(&Definition { steps: vec![edit, drop] }).unwrap();
        let [problem] = problems.as_slice() else { panic!("{problems:?}") };
        assert_eq!((problem.at.step, problem.at.setting, problem.at.item), (1, "drop", Some(0)));
        assert_eq!(problem.at.range, 0..28);
        assert_eq!(problem.severity, Severity::Warning);
        assert_eq!(problem.help.as_deref(), Some("did you mean \"http.method\"?"));
    }

    #[test]
    fn warns_of_the_key_that_occurs_once() {
        let texts = [
            "set(log.attributes[\"service.naem\"], 1)",
            "set(log.attributes[\"service.name\"], 1) where log.attributes[\"service.name\"] == nil",
            "set(log.cache[\"service.nam\"], 1)",
            "set(log.attributes[\"http.method\"], 1)",
            "set(log.attributes[\"http.metod\"], 1)",
        ];
        let mut literals = Literals::default();
        let mut keys = NearKeys::new();
        for (number, text) in texts.iter().enumerate() {
            let checked = statements(&[text], Scope::ALL, &mut literals).unwrap();
            keys.add(&checked.uses[0], &literals, &number);
        }
        let found: Vec<_> =
            keys.warnings().map(|(place, fault)| (*place, &texts[*place][fault.range])).collect();
        assert_eq!(found, [(0, "log.attributes[\"service.naem\"]"), (4, "log.attributes[\"http.metod\"]")]);
    }
}
