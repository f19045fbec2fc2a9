//! "Did you mean": the known name that is nearest to an unknown one.

use crate::functions;

/// The candidate that differs from `name` in few letters; the first of those that differ least. Case does not count.
pub(crate) fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = name.to_ascii_lowercase();
    let most = 1 + name.len() / 4;
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        let distance = distance(&name, &candidate.to_ascii_lowercase());
        if distance <= most && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The editor that is nearest to `name`.
pub(crate) fn editor(name: &str) -> Option<&'static str> {
    nearest(name, functions::all_functions().map(|function| function.name).filter(|name| is_editor(name)))
}

/// The converter that is nearest to `name`. Underscores do not count: `is_match` is `IsMatch`.
pub(crate) fn converter(name: &str) -> Option<&'static str> {
    let name = name.replace('_', "");
    nearest(&name, functions::all_functions().map(|function| function.name).filter(|name| !is_editor(name)))
}

fn is_editor(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
}

/// The Levenshtein distance in bytes. Both are short: names in a configuration; what is beyond 64 bytes does not count.
pub(crate) fn distance(a: &str, b: &str) -> usize {
    const LONGEST: usize = 64;
    let a = a.as_bytes().get(..a.len().min(LONGEST)).unwrap_or_default();
    let b = b.as_bytes().get(..b.len().min(LONGEST)).unwrap_or_default();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut diagonal = i;
        let mut before = i + 1;
        for (cell, right) in row.iter_mut().skip(1).zip(b) {
            let replaced = diagonal + usize::from(left != right);
            diagonal = *cell;
            before = replaced.min(*cell + 1).min(before + 1);
            *cell = before;
        }
        if let Some(first) = row.first_mut() {
            *first = i + 1;
        }
    }
    row.last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_edits() {
        for (a, b, edits) in
            [("", "", 0), ("abc", "abc", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("ab", "ba", 2)]
        {
            assert_eq!(distance(a, b), edits, "{a} {b}");
            assert_eq!(distance(b, a), edits, "{b} {a}");
        }
    }

    #[test]
    fn suggests_what_is_near_and_nothing_that_is_far() {
        let names = ["attributes", "body", "severity_number", "severity_text"];
        for (name, suggestion) in [
            ("atributes", Some("attributes")),
            ("Body", Some("body")),
            ("severity_nmuber", Some("severity_number")),
            ("resource", None),
            ("x", None),
        ] {
            assert_eq!(nearest(name, names), suggestion, "{name}");
        }
    }
}
