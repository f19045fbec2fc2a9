//! "Did you mean": the known name nearest to a mistyped one.

/// The nearest of `known`, if it is near enough to be what was meant: at most two in five letters typed wrongly.
pub fn nearest<'a>(typed: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    const LONGEST: usize = 64;
    if typed.len() > LONGEST {
        return None;
    }
    let folded = typed.to_lowercase().replace('-', "_");
    known
        .into_iter()
        .map(|name| (distance(&folded, name), name))
        .filter(|(distance, name)| *distance <= (name.len() * 2 / 5).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// The edit distance in which a swap of neighbours counts as one edit (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows = [vec![0; b.len() + 1], (0..=b.len()).collect(), vec![0; b.len() + 1]];
    for (i, &from) in a.iter().enumerate() {
        let [before_last, last, row] = &mut rows;
        row[0] = i + 1;
        for (j, &to) in b.iter().enumerate() {
            let edit = usize::from(from != to);
            row[j + 1] = (last[j] + edit).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && from == b[j - 1] && a[i - 1] == to {
                row[j + 1] = row[j + 1].min(before_last[j - 1] + 1);
            }
        }
        rows.rotate_left(1);
    }
    rows[1][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_insertions_removals_changes_and_swaps_as_one() {
        for (a, b, edits) in [
            ("quota", "quota", 0),
            ("qouta", "quota", 1),
            ("quot", "quota", 1),
            ("quota", "", 5),
            ("ab", "xy", 2),
        ] {
            assert_eq!(distance(a, b), edits, "{a} {b}");
        }
    }

    #[test]
    fn suggests_what_is_near_and_nothing_far() {
        let known = ["quota", "when_full", "segment"];
        assert_eq!(nearest("qouta", known), Some("quota"));
        assert_eq!(nearest("When-Full", known), Some("when_full"));
        assert_eq!(nearest("retention", known), None);
    }
}
