//! Which pieces of two texts differ.

/// So many pairs of pieces are compared at most; beyond, what differs is all between a common start and a common end.
const MOST_PAIRS: usize = 250_000;

/// For each piece of `before`, and of `after`, whether the other has it, too, in the same order.
pub(super) fn common(before: &[&str], after: &[&str]) -> (Vec<bool>, Vec<bool>) {
    let start = before.iter().zip(after).take_while(|(one, other)| one == other).count();
    let (rest, other) = (before.get(start..).unwrap_or_default(), after.get(start..).unwrap_or_default());
    let end = rest.iter().rev().zip(other.iter().rev()).take_while(|(one, other)| one == other).count();
    let inner = rest.get(..rest.len() - end).unwrap_or_default();
    let inner_after = other.get(..other.len() - end).unwrap_or_default();
    let (mut kept, mut kept_after) = (vec![true; start], vec![true; start]);
    let (one, two) = longest_common(inner, inner_after);
    kept.extend(one);
    kept_after.extend(two);
    kept.resize(before.len(), true);
    kept_after.resize(after.len(), true);
    (kept, kept_after)
}

fn longest_common(before: &[&str], after: &[&str]) -> (Vec<bool>, Vec<bool>) {
    let (mut kept, mut kept_after) = (vec![false; before.len()], vec![false; after.len()]);
    let width = after.len() + 1;
    if before.len() * after.len() > MOST_PAIRS {
        return (kept, kept_after);
    }
    // The length of the longest common sequence of what begins at each pair.
    let mut lengths = vec![0_u32; (before.len() + 1) * width];
    let at = |i: usize, j: usize| i * width + j;
    let length = |lengths: &[u32], i, j| lengths.get(at(i, j)).copied().unwrap_or_default();
    for (i, one) in before.iter().enumerate().rev() {
        for (j, other) in after.iter().enumerate().rev() {
            let best = if one == other {
                length(&lengths, i + 1, j + 1) + 1
            } else {
                length(&lengths, i + 1, j).max(length(&lengths, i, j + 1))
            };
            if let Some(cell) = lengths.get_mut(at(i, j)) {
                *cell = best;
            }
        }
    }
    let (mut i, mut j) = (0, 0);
    while let (Some(one), Some(other)) = (before.get(i), after.get(j)) {
        if one == other {
            if let (Some(kept), Some(kept_after)) = (kept.get_mut(i), kept_after.get_mut(j)) {
                (*kept, *kept_after) = (true, true);
            }
            (i, j) = (i + 1, j + 1);
        } else if length(&lengths, i + 1, j) >= length(&lengths, i, j + 1) {
            i += 1;
        } else {
            j += 1;
        }
    }
    (kept, kept_after)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(before: &str, after: &str) -> (String, String) {
        let pieces = |text: &'static str| text.split_inclusive(' ').collect::<Vec<_>>();
        let (before, after): (&'static str, &'static str) =
            (String::leak(before.to_owned()), String::leak(after.to_owned()));
        let (before, after) = (pieces(before), pieces(after));
        let (kept, kept_after) = common(&before, &after);
        let marked = |pieces: &[&str], kept: &[bool]| {
            pieces
                .iter()
                .zip(kept)
                .map(|(piece, kept)| if *kept { (*piece).to_owned() } else { format!("[{}]", piece.trim()) })
                .collect()
        };
        (marked(&before, &kept), marked(&after, &kept_after))
    }

    #[test]
    fn only_what_differs_is_marked() {
        assert_eq!(shown("a b c", "a b c"), ("a b c".into(), "a b c".into()));
        assert_eq!(shown("a b c ", "a x c "), ("a [b]c ".into(), "a [x]c ".into()));
        assert_eq!(shown("a b c d ", "b d e "), ("[a]b [c]d ".into(), "b d [e]".into()));
        assert_eq!(shown("", "a "), (String::new(), "[a]".into()));
        assert_eq!(shown("a a a ", "a a "), ("a a [a]".into(), "a a ".into()));
    }

    #[test]
    fn long_texts_are_compared_at_their_ends_only() {
        let lines: Vec<String> = (0..2_000).map(|n| n.to_string()).collect();
        let before: Vec<&str> =
            ["x"].into_iter().chain(lines.iter().map(String::as_str)).chain(["y"]).collect();
        let after: Vec<&str> =
            ["x"].into_iter().chain(lines.iter().rev().map(String::as_str)).chain(["y"]).collect();
        let (kept, kept_after) = common(&before, &after);
        assert_eq!((kept.len(), kept_after.len()), (2_002, 2_002));
        assert!(kept[0] && kept[2_001] && !kept[1_000]);
    }
}
