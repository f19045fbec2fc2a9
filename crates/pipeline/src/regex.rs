//! Regular expressions in Go's syntax, with search state that the caller owns.
//!
//! `syntax` reads a pattern as Go's `regexp` does and gives the tree that `regex-automata` compiles, so nothing is translated
//! from text to text. A [`Regex`] does not change and threads share it. What a search writes to is in [`Caches`]: one for
//! all expressions of a program in each workspace, made once, of a size that is known when the program is compiled.
//!
//! Every search is linear in the haystack, whatever the pattern. Most patterns become a complete automaton, which searches
//! without writing anything; one whose automaton would exceed [`DFA_BYTES`] builds its states while it searches, in a cache
//! of [`LAZY_BYTES`], and that is the only search that allocates (within the cache, until it is warm).

mod beyond;
mod classes;
mod literals;
mod syntax;
mod template;
#[cfg(test)]
mod tests;

use regex_automata::meta::{self, Cache};
use regex_automata::util::primitives::NonMaxUsize;
use regex_automata::{Input, MatchKind};
use std::ops::Range;
use std::sync::Arc;
pub(crate) use syntax::Mode;
pub(crate) use template::{Part, Template};
use tidegate_wire::output::Full;

/// The most bytes of a complete automaton.
const DFA_BYTES: usize = 96 << 10;
/// The most bytes of the states that one direction of a search keeps.
const LAZY_BYTES: usize = 96 << 10;
/// The caches that a search can use: forward, backward, and backward from a literal within the match.
const LAZY_CACHES: usize = 3;
/// The most bytes of a compiled pattern.
const NFA_BYTES: usize = 512 << 10;
/// The most bytes that an automaton takes beyond what it says: its engines, and its entry in [`Regexes`].
const AUTOMATON_BYTES: usize = 8 << 10;
/// The groups that are captured, the whole match included. Those of a pattern beyond them only group.
pub(crate) const MAX_GROUPS: usize = 32;

/// A compiled regular expression.
#[derive(Debug, Clone)]
pub(crate) struct Regex {
    automaton: Arc<meta::Regex>,
    /// Its place in [`Caches`].
    cache: usize,
    shape: Arc<Shape>,
}

/// Facts about a pattern beside its automaton.
#[derive(Debug)]
struct Shape {
    pattern: Box<str>,
    mode: Mode,
    /// The name of each group that is captured; the whole match is the first.
    names: Box<[Option<Box<str>>]>,
    /// All groups of the pattern, the whole match included.
    groups: usize,
    literals: Box<[Box<[u8]>]>,
    /// The most bytes that a search reads behind its match.
    beyond: usize,
}

/// The regular expressions of a program, counted while it is compiled.
#[derive(Debug, Default)]
pub(crate) struct Regexes {
    compiled: Vec<Regex>,
    /// Of the search state of all.
    bytes: usize,
    /// Of the automata and what is known of the patterns.
    program: usize,
}

/// The search state of all regular expressions of a program.
#[derive(Debug, Default)]
pub(crate) struct Caches(Vec<Cache>);

/// The groups of a match.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Captures([Option<NonMaxUsize>; 2 * MAX_GROUPS]);

/// An error in a pattern.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub(crate) struct PatternError {
    /// The error, as a sentence without a full stop.
    pub(crate) message: String,
    /// The bytes of the pattern that are at fault.
    pub(crate) range: Range<usize>,
}

impl Regexes {
    /// Compiles `pattern`, which matches anywhere in a haystack. Equal patterns share everything.
    ///
    /// # Errors
    /// When Go's `regexp` refuses the pattern, or it compiles to more than is reasonable.
    pub(crate) fn compile(&mut self, pattern: &str) -> Result<Regex, PatternError> {
        self.compile_as(pattern, Mode::Search)
    }

    /// Compiles `pattern` as `mode` says.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub(crate) fn compile_as(&mut self, pattern: &str, mode: Mode) -> Result<Regex, PatternError> {
        let known = |regex: &&Regex| *regex.shape.pattern == *pattern && regex.shape.mode == mode;
        if let Some(regex) = self.compiled.iter().find(known) {
            return Ok(regex.clone());
        }
        let parsed = syntax::parse(pattern, mode)?;
        let automaton = build(&parsed.hir, true).map_err(|_| PatternError {
            message: format!("the pattern compiles to more than {} KiB", NFA_BYTES >> 10),
            range: 0..pattern.len(),
        })?;
        // A cache of states is made only where there is no complete automaton. Nothing says so but the size.
        let usual = automaton.create_cache().memory_usage();
        let lazy = build(&parsed.hir, false).is_ok_and(|other| other.create_cache().memory_usage() < usual);
        self.bytes += usual + if lazy { LAZY_CACHES * LAZY_BYTES } else { 0 } + size_of::<Cache>();
        // It says what it uses, and its lists have room for a little more. What is known of a pattern has its length, several
        // times over.
        let used = automaton.memory_usage();
        self.program += used + used / 8 + AUTOMATON_BYTES + 8 * pattern.len();
        let shape = Shape {
            pattern: pattern.into(),
            mode,
            literals: literals::required(&parsed.hir),
            beyond: beyond::read_beyond(&parsed.hir),
            names: parsed.names.into(),
            groups: parsed.groups,
        };
        let regex =
            Regex { automaton: Arc::new(automaton), cache: self.compiled.len(), shape: Arc::new(shape) };
        self.compiled.push(regex.clone());
        Ok(regex)
    }

    /// Search state for all of them.
    pub(crate) fn caches(&self) -> Caches {
        Caches(self.compiled.iter().map(|regex| regex.automaton.create_cache()).collect())
    }

    /// The most bytes that the compiled expressions take, without their search state.
    pub(crate) fn program_bytes(&self) -> usize {
        self.program
    }

    /// The most bytes that [`caches`](Self::caches) ever take.
    pub(crate) fn cache_bytes(&self) -> usize {
        self.bytes
    }
}

/// The tree of `pattern`, for those who can do without an automaton.
///
/// # Errors
/// When Go's `regexp` refuses the pattern.
pub(crate) fn tree(pattern: &str, mode: Mode) -> Result<regex_syntax::hir::Hir, PatternError> {
    Ok(syntax::parse(pattern, mode)?.hir)
}

/// Compiles a tree; `lazy` says whether its states may be built while it searches.
fn build(hir: &regex_syntax::hir::Hir, lazy: bool) -> Result<meta::Regex, Box<meta::BuildError>> {
    let config = meta::Config::new()
        .match_kind(MatchKind::LeftmostFirst)
        .utf8_empty(true)
        .nfa_size_limit(Some(NFA_BYTES))
        .onepass_size_limit(Some(DFA_BYTES))
        .hybrid_cache_capacity(LAZY_BYTES)
        .hybrid(lazy)
        .dfa(true)
        .dfa_size_limit(Some(DFA_BYTES))
        .dfa_state_limit(Some(1_000))
        .onepass(true)
        .backtrack(false);
    meta::Builder::new().configure(config).build_from_hir(hir).map_err(Box::new)
}

impl Regex {
    /// Whether it matches anywhere in `haystack`.
    pub(crate) fn is_match(&self, caches: &mut Caches, haystack: &[u8]) -> bool {
        let Some(cache) = caches.0.get_mut(self.cache) else { return false };
        self.automaton.search_half_with(cache, &Input::new(haystack).earliest(true)).is_some()
    }

    /// The leftmost match that begins at byte `at` of `haystack` or later. Anchors see all of `haystack`.
    pub(crate) fn find_at(&self, caches: &mut Caches, haystack: &[u8], at: usize) -> Option<Range<usize>> {
        let cache = caches.0.get_mut(self.cache)?;
        if at > haystack.len() {
            return None;
        }
        Some(self.automaton.search_with(cache, &Input::new(haystack).span(at..haystack.len()))?.range())
    }

    /// As [`find_at`](Self::find_at), with the groups of the match.
    pub(crate) fn captures_at(
        &self,
        caches: &mut Caches,
        haystack: &[u8],
        at: usize,
        captures: &mut Captures,
    ) -> bool {
        let Some(cache) = caches.0.get_mut(self.cache) else { return false };
        let wanted = 2 * self.shape.names.len();
        let Some(slots) = captures.0.get_mut(..wanted) else { return false };
        if at > haystack.len() {
            return false;
        }
        let input = Input::new(haystack).span(at..haystack.len());
        self.automaton.search_slots_with(cache, &input, slots).is_some()
    }

    /// The captured groups, the whole match included, by their number.
    pub(crate) fn group_names(&self) -> &[Option<Box<str>>] {
        &self.shape.names
    }

    /// All groups of the pattern, the whole match included. Only [`MAX_GROUPS`] of them are captured.
    pub(crate) fn groups(&self) -> usize {
        self.shape.groups
    }

    /// Texts of which at least one is in every haystack that matches. None: nothing is known.
    pub(crate) fn literals(&self) -> &[Box<[u8]>] {
        &self.shape.literals
    }
}

/// Bytes that the searches for all matches in one haystack may still read. A search is linear, but one for each match is not:
/// with `a(.*z)?`, each reads to the end.
#[derive(Debug)]
pub(crate) struct Budget(usize);

impl Budget {
    /// Bytes that may be read of any haystack, however short.
    const LEAST: usize = 64 << 20;
    /// How often a long haystack is read.
    const TIMES: usize = 16;

    /// That for a haystack of `len` bytes.
    pub(crate) fn new(len: usize) -> Budget {
        Budget(Self::LEAST.saturating_add(len.saturating_mul(Self::TIMES)))
    }

    /// Takes what the search from `at` read that found a match up to `end` of `len` bytes.
    ///
    /// # Errors
    /// When nothing is left.
    pub(crate) fn take(&mut self, regex: &Regex, at: usize, end: usize, len: usize) -> Result<(), Full> {
        let beyond = regex.shape.beyond.min(len.saturating_sub(end));
        let read = end.saturating_sub(at).saturating_add(beyond);
        self.0 = self.0.checked_sub(read).ok_or(Full)?;
        Ok(())
    }
}

impl Captures {
    /// No groups.
    pub(crate) const fn new() -> Captures {
        Captures([None; 2 * MAX_GROUPS])
    }

    /// The bytes of the haystack that a group matched; `None` for one that took no part in the match.
    pub(crate) fn range(&self, group: usize) -> Option<Range<usize>> {
        let slot = |at: usize| self.0.get(at).copied().flatten().map(NonMaxUsize::get);
        Some(slot(2 * group)?..slot(2 * group + 1)?)
    }
}

impl PatternError {
    /// The same in a text that begins `by` bytes earlier.
    fn shifted(mut self, by: usize) -> PatternError {
        self.range = self.range.start + by..self.range.end + by;
        self
    }
}
