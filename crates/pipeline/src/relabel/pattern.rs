//! Matches a rule's regular expression, without an automaton where that is possible.
//!
//! Most rules are lists of names, prefixes, or match everything. Their patterns become lookups.

use super::literals::LiteralSet;
use crate::regex::{self, Caches, Mode, PatternError, Regex, Regexes};
use memchr::memmem;
use regex_syntax::hir::{Class, Dot, Hir, HirKind};

/// A compiled pattern.
#[derive(Debug)]
pub(super) struct Pattern {
    matcher: Matcher,
    /// For groups, and where nothing simpler does.
    pub(super) regex: Option<Regex>,
    /// Whether group 1 is the whole value whenever it matches.
    pub(super) first_group_is_all: bool,
    /// Whether the whole value matches or nothing.
    pub(super) is_whole: bool,
    /// Its place among the memos.
    memo: usize,
}

#[derive(Debug)]
enum Matcher {
    Everything,
    NotEmpty,
    Texts(LiteralSet),
    Parts { texts: LiteralSet, parts: Box<[Part]> },
    Automaton,
}

/// A text at an end of the value or within it.
#[derive(Debug)]
struct Part {
    place: Place,
    finder: memmem::Finder<'static>,
    /// The fewest bytes of a value that matches.
    shortest: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Start,
    End,
    Anywhere,
}

/// The last answers of an automaton: names and values repeat from series to series.
#[derive(Debug, Clone)]
pub(super) struct Memo([Answer; 8]);

#[derive(Debug, Clone, Copy)]
struct Answer {
    /// Longer than any text that it keeps: none yet.
    len: u8,
    matched: bool,
    text: [u8; 62],
}

impl Pattern {
    /// Compiles `text`, which has to match whole values as in Prometheus, or parts of them. `groups` says whether the rule
    /// asks for the place of a match or its groups.
    pub(super) fn new(
        text: &str,
        mode: Mode,
        groups: bool,
        regexes: &mut Regexes,
        memos: &mut usize,
    ) -> Result<Pattern, PatternError> {
        let tree = regex::tree(text, mode)?;
        let middle = (mode == Mode::Whole).then(|| whole(&tree)).flatten();
        let is_whole = middle.is_some();
        let shapes = middle.and_then(shapes);
        let matcher = shapes.and_then(matcher).unwrap_or(Matcher::Automaton);
        let automaton = groups || matches!(matcher, Matcher::Automaton);
        let regex = automaton.then(|| regexes.compile_as(text, mode)).transpose()?;
        let memo = *memos;
        *memos += usize::from(matches!(matcher, Matcher::Automaton));
        Ok(Pattern {
            matcher,
            regex,
            first_group_is_all: is_whole && matches!(text, "(.*)" | "(.+)"),
            is_whole,
            memo,
        })
    }

    /// Whether it matches `text`.
    #[inline]
    pub(super) fn is_match(&self, text: &[u8], caches: &mut Caches, memos: &mut [Memo]) -> bool {
        match &self.matcher {
            Matcher::Everything => true,
            Matcher::NotEmpty => !text.is_empty(),
            Matcher::Texts(texts) => texts.contains(text),
            Matcher::Parts { texts, parts } => {
                parts.iter().any(|part| part.is_in(text)) || (!texts.is_empty() && texts.contains(text))
            }
            Matcher::Automaton => {
                let Some(regex) = &self.regex else { return false };
                match memos.get_mut(self.memo) {
                    Some(memo) => memo.answer(text, || regex.is_match(caches, text)),
                    None => regex.is_match(caches, text),
                }
            }
        }
    }
}

impl Part {
    #[inline]
    fn is_in(&self, text: &[u8]) -> bool {
        text.len() >= self.shortest
            && match self.place {
                Place::Start => text.starts_with(self.finder.needle()),
                Place::End => text.ends_with(self.finder.needle()),
                Place::Anywhere => self.finder.find(text).is_some(),
            }
    }
}

impl Memo {
    /// No answers.
    pub(super) const fn new() -> Memo {
        Memo([Answer { len: u8::MAX, matched: false, text: [0; 62] }; 8])
    }

    #[inline]
    fn answer(&mut self, text: &[u8], ask: impl FnOnce() -> bool) -> bool {
        let ends =
            usize::from(text.first().copied().unwrap_or(0)) + usize::from(text.last().copied().unwrap_or(0));
        let place = (text.len() + ends) % self.0.len();
        let Some(answer) = self.0.get_mut(place) else { return ask() };
        if answer.text.get(..usize::from(answer.len)) == Some(text) {
            return answer.matched;
        }
        let matched = ask();
        if let Some(kept) = answer.text.get_mut(..text.len()) {
            kept.copy_from_slice(text);
            // At most 62.
            *answer = Answer { len: text.len() as u8, matched, ..*answer };
        }
        matched
    }
}

/// A text with what may be around it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Shape {
    before: Option<Any>,
    text: Vec<u8>,
    after: Option<Any>,
}

/// `.*` or `.+`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Any {
    Some0,
    Some1,
}

/// The part of a whole pattern between its anchors.
fn whole(hir: &Hir) -> Option<&[Hir]> {
    let HirKind::Concat(parts) = hir.kind() else { return None };
    let [first, middle @ .., last] = &**parts else { return None };
    let is_look = |hir: &Hir| matches!(hir.kind(), HirKind::Look(_));
    (is_look(first) && is_look(last)).then_some(middle)
}

/// All shapes of the parts one after the other, if there are not too many.
fn shapes(parts: &[Hir]) -> Option<Vec<Shape>> {
    let mut all = vec![Shape { before: None, text: Vec::new(), after: None }];
    for part in parts {
        let next = shapes_of(part)?;
        if all.len() * next.len() > LiteralSet::MOST {
            return None;
        }
        let pairs = all.iter().flat_map(|one| next.iter().map(move |other| one.followed_by(other)));
        all = pairs.collect::<Option<_>>()?;
    }
    Some(all)
}

fn shapes_of(hir: &Hir) -> Option<Vec<Shape>> {
    let text = |text: Vec<u8>| Shape { before: None, text, after: None };
    match hir.kind() {
        HirKind::Empty => Some(vec![text(Vec::new())]),
        HirKind::Literal(literal) => Some(vec![text(literal.0.to_vec())]),
        HirKind::Capture(capture) => shapes_of(&capture.sub),
        HirKind::Concat(parts) => shapes(parts),
        HirKind::Alternation(parts) => {
            let mut all = Vec::new();
            for part in parts {
                all.extend(shapes_of(part)?);
                if all.len() > LiteralSet::MOST {
                    return None;
                }
            }
            Some(all)
        }
        HirKind::Repetition(repetition) => match (repetition.min, repetition.max) {
            (min @ (0 | 1), None) if *repetition.sub == Hir::dot(Dot::AnyChar) => {
                let any = if min == 0 { Any::Some0 } else { Any::Some1 };
                Some(vec![Shape { before: Some(any), text: Vec::new(), after: None }])
            }
            (0, Some(1)) => {
                let mut all = shapes_of(&repetition.sub)?;
                all.push(text(Vec::new()));
                Some(all)
            }
            _ => None,
        },
        HirKind::Class(Class::Unicode(class)) => {
            let chars = class.iter().map(|range| u32::from(range.end()) - u32::from(range.start()) + 1);
            if chars.sum::<u32>() > 16 {
                return None;
            }
            let chars = class.iter().flat_map(|range| range.start()..=range.end());
            Some(chars.map(|c| text(c.to_string().into_bytes())).collect())
        }
        HirKind::Class(Class::Bytes(_)) | HirKind::Look(_) => None,
    }
}

impl Shape {
    fn followed_by(&self, other: &Shape) -> Option<Shape> {
        if other.text.is_empty() && other.after.is_none() {
            // Nothing, or anything.
            let Some(any) = other.before else { return Some(self.clone()) };
            if !self.joins(any) {
                return None;
            }
            let mut joined = self.clone();
            let side = if self.text.is_empty() { &mut joined.before } else { &mut joined.after };
            *side = (*side).max(Some(any));
            return Some(joined);
        }
        match (self.after, other.before) {
            (None, None) => Some(Shape {
                before: self.before,
                text: [&*self.text, &other.text].concat(),
                after: other.after,
            }),
            _ if self.text.is_empty() && self.joins(other.before.unwrap_or(Any::Some0)) => {
                let before = self.before.max(other.before);
                Some(Shape { before, text: other.text.clone(), after: other.after })
            }
            _ => None,
        }
    }

    /// Whether what is at its end and `any` together are one of the two: `.+.+` is neither.
    fn joins(&self, any: Any) -> bool {
        let own = if self.text.is_empty() { self.before } else { self.after };
        !(own == Some(Any::Some1) && any == Any::Some1)
    }
}

fn matcher(shapes: Vec<Shape>) -> Option<Matcher> {
    /// More are faster in an automaton.
    const MOST_PARTS: usize = 8;
    let (mut texts, mut parts) = (Vec::new(), Vec::new());
    let alone = shapes.len() == 1;
    for Shape { before, text, after } in shapes {
        let more = [before, after].into_iter().filter(|any| *any == Some(Any::Some1)).count();
        let place = match (before, after) {
            (None, None) => {
                texts.push(text.into());
                continue;
            }
            (Some(any), None) if text.is_empty() && alone => {
                return Some(if any == Any::Some0 { Matcher::Everything } else { Matcher::NotEmpty });
            }
            (None, Some(_)) => Place::Start,
            (Some(_), None) => Place::End,
            // Text in the middle with something on a side: the first place that is found may be at the edge.
            (Some(Any::Some0), Some(Any::Some0)) => Place::Anywhere,
            (Some(_), Some(_)) => return None,
        };
        let shortest = text.len() + more;
        parts.push(Part { place, finder: memmem::Finder::new(&text).into_owned(), shortest });
    }
    let texts = LiteralSet::new(texts);
    match parts.len() {
        0 => Some(Matcher::Texts(texts)),
        1..=MOST_PARTS => Some(Matcher::Parts { texts, parts: parts.into() }),
        _ => None,
    }
}
