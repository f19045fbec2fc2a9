//! How far a search reads behind the match that it finds.

use regex_automata::Anchored;
use regex_automata::dfa::{Automaton, StartKind, dense};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::util::primitives::StateID;
use regex_automata::util::start;
use regex_syntax::hir::Hir;
use std::collections::BTreeMap;

/// The most bytes of an automaton that is looked at, and of the work for it.
const BYTES: usize = 256 << 10;

/// The most bytes that a search reads behind the end of its match, as `a(bc)?` reads two of `abx`; [`usize::MAX`] where
/// only the haystack ends it, as in `a(.*z)?`, or the automaton is too large to say.
pub(super) fn read_beyond(hir: &Hir) -> usize {
    known(hir).unwrap_or(usize::MAX)
}

fn known(hir: &Hir) -> Option<usize> {
    let nfa = thompson::Compiler::new()
        .configure(
            thompson::Config::new()
                .which_captures(WhichCaptures::None)
                .nfa_size_limit(Some(super::NFA_BYTES)),
        )
        .build_from_hir(hir)
        .ok()?;
    let config = dense::Config::new()
        .start_kind(StartKind::Anchored)
        .dfa_size_limit(Some(BYTES))
        .determinize_size_limit(Some(2 * BYTES));
    let dfa = dense::Builder::new().configure(config).build_from_nfa(&nfa).ok()?;
    let start = start::Config::new().anchored(Anchored::Yes);
    let mut open = vec![dfa.start_state(&start).ok()?];
    for byte in 0..=u8::MAX {
        open.push(dfa.start_state(&start.clone().look_behind(Some(byte))).ok()?);
    }
    // The states behind a match, without those of a match: as long as a search is in them, nothing is found.
    let mut next: BTreeMap<StateID, Vec<StateID>> = BTreeMap::new();
    let mut behind = Vec::new();
    while let Some(state) = open.pop() {
        if next.contains_key(&state) {
            continue;
        }
        let mut to: Vec<_> = (0..=u8::MAX)
            .map(|byte| dfa.next_state(state, byte))
            .filter(|state| !dfa.is_dead_state(*state) && !dfa.is_quit_state(*state))
            .collect();
        to.sort_unstable();
        to.dedup();
        open.extend_from_slice(&to);
        if dfa.is_match_state(state) {
            behind.extend_from_slice(&to);
        }
        next.insert(state, to);
    }
    longest(&dfa, &next, behind)
}

/// How many states without a match follow one of `behind` at most; `None` when a circle of them does.
fn longest<A: Automaton>(
    dfa: &A,
    next: &BTreeMap<StateID, Vec<StateID>>,
    behind: Vec<StateID>,
) -> Option<usize> {
    /// State of a search for the longest way: a node is on the way, or the length of the way from it is known.
    enum Way {
        Open,
        Len(usize),
    }
    let mut ways: BTreeMap<StateID, Way> = BTreeMap::new();
    let mut stack: Vec<(StateID, bool)> = behind.iter().map(|state| (*state, false)).collect();
    while let Some((state, is_done)) = stack.pop() {
        if dfa.is_match_state(state) {
            continue;
        }
        let to = next.get(&state).map(Vec::as_slice).unwrap_or_default();
        if is_done {
            let len = |state: &StateID| match ways.get(state) {
                Some(Way::Len(len)) => *len,
                _ => 0,
            };
            let len = 1 + to.iter().map(len).max().unwrap_or(0);
            ways.insert(state, Way::Len(len));
            continue;
        }
        match ways.get(&state) {
            Some(Way::Len(_)) => continue,
            Some(Way::Open) => return None,
            None => {}
        }
        ways.insert(state, Way::Open);
        stack.push((state, true));
        for other in to {
            match ways.get(other) {
                Some(Way::Open) => return None,
                Some(Way::Len(_)) => {}
                None => stack.push((*other, false)),
            }
        }
    }
    let lens = ways.values().map(|way| match way {
        Way::Len(len) => *len,
        Way::Open => usize::MAX,
    });
    Some(lens.max().unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::read_beyond;
    use crate::regex::{Mode, tree};

    #[test]
    fn what_a_search_reads_behind_a_match_is_known() {
        let of = |pattern| read_beyond(&tree(pattern, Mode::Search).unwrap());
        for pattern in ["a", "[0-9]+", "\\b[a-z]+\\b", "[^ ]+@[^ ]+", "x*", "[0-9]{13,19}", "token=[^&]*"] {
            assert!(of(pattern) <= 5, "{pattern}: {}", of(pattern));
        }
        assert!((4..10).contains(&of("a(bcdef)?")));
        for pattern in ["a(.*z)?", "a[^b]*b|a", "(a.*z)*", "a.*z"] {
            assert_eq!(of(pattern), usize::MAX, "{pattern}");
        }
    }
}
