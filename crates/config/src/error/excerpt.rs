//! The line that a message shows, without what might be a secret.
//!
//! Nobody knows what a wrong line means: under a misspelt `passwrd` stands a password, and so may under anything else. So
//! every word becomes stars, but the names of settings and the one value that the message is about, where that is
//! known to be no secret.

use std::ops::Range;

use super::render::harmless;
use crate::setting_names::is_setting;
use tidegate_plain::without_url_secrets;

/// The mask for a word.
const STARS: &str = "***";
/// Characters that stand between words.
const BETWEEN: &str = " \t,[]{}\"'";
/// Words of YAML itself.
const MARKS: [&str; 11] = ["-", "---", "?", "|", ">", "|-", ">-", "|+", ">+", "#", "<<"];

/// A line to show.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Excerpt {
    pub(super) text: Vec<char>,
    /// Where the marked part begins, and how long it is, in characters of `text`.
    pub(super) indent: usize,
    pub(super) width: usize,
}

/// The line, of which the bytes `marked` are pointed at. Of all of it `shown`, which holds the marked bytes, is shown as it
/// is.
pub(super) fn excerpt(line: &str, marked: Range<usize>, shown: Option<Range<usize>>) -> Excerpt {
    let split = |text: &str, at: usize| at.min(text.len());
    let visible = shown.clone().unwrap_or(marked.clone());
    let (before, rest) = line.split_at_checked(split(line, visible.start)).unwrap_or((line, ""));
    let (inside, after) =
        rest.split_at_checked(split(rest, visible.end.saturating_sub(visible.start))).unwrap_or((rest, ""));
    let lead = marked.start.saturating_sub(visible.start);
    let (lead, marked) = (split(inside, lead), split(inside, lead + marked.len()));
    let mut text = Vec::new();
    starred(before, rest, &mut text);
    let indent;
    let width;
    if shown.is_some() {
        let part = |from: usize, to: usize| without_url_secrets(inside.get(from..to).unwrap_or_default());
        text.extend(part(0, lead).chars().map(harmless));
        indent = text.len();
        text.extend(part(lead, marked).chars().map(harmless));
        width = text.len() - indent;
        text.extend(part(marked, inside.len()).chars().map(harmless));
    } else {
        indent = text.len();
        starred(inside, after, &mut text);
        width = text.len() - indent;
    }
    starred(after, "", &mut text);
    Excerpt { text, indent, width }
}

/// Puts a part of a line behind `out`. `next` is what stands behind the part.
fn starred(part: &str, next: &str, out: &mut Vec<char>) {
    let mut rest = part;
    while let Some(first) = rest.chars().next() {
        if BETWEEN.contains(first) || is_colon(rest, next) {
            out.push(harmless(first));
            rest = rest.strip_prefix(first).unwrap_or_default();
            continue;
        }
        let ends = |(at, c): (usize, char)| {
            let from = rest.get(at..).unwrap_or_default();
            (BETWEEN.contains(c) || is_colon(from, next)).then_some(at)
        };
        let end = rest.char_indices().find_map(ends).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        let quoted = behind.strip_prefix(['"', '\'']).unwrap_or(behind);
        let is_key = is_colon(quoted, next) || (quoted.is_empty() && is_colon(next, ""));
        let shown = if (is_key && is_setting(word)) || MARKS.contains(&word) { word } else { STARS };
        out.extend(shown.chars());
        rest = behind;
    }
}

/// Whether a colon that ends a key stands first.
fn is_colon(text: &str, next: &str) -> bool {
    let Some(behind) = text.strip_prefix(':') else { return false };
    behind.chars().next().or(next.chars().next()).is_none_or(|c| BETWEEN.contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str, marked: &str, is_shown: bool) -> String {
        let start = line.find(marked).unwrap();
        let marked = start..start + marked.len();
        let shown = is_shown.then(|| marked.clone());
        let Excerpt { text, indent, width } = excerpt(line, marked, shown);
        let text: String = text.into_iter().collect();
        format!("{text} {indent} {width}")
    }

    #[test]
    fn only_names_of_settings_and_the_marked_value_are_shown() {
        for (line, marked, is_shown, expected) in [
            ("memory: much # hunter2", "much", true, "memory: much # *** 8 4"),
            ("memory: much # hunter2", "much", false, "memory: *** # *** 8 3"),
            ("  password: [hunter2, b]", "[hunter2, b]", false, "  password: [***, ***] 12 10"),
            ("  passwrd: hunter2", "passwrd", true, "  passwrd: *** 2 7"),
            ("{ api_key: 'a b', \"url\": x }", "'a b'", false, "{ api_key: '*** ***', \"url\": *** } 11 9"),
            ("- password:hunter2", "password:hunter2", false, "- *** 2 3"),
            ("password: |", "|", false, "password: | 10 1"),
            ("hunter2", "hunter2", false, "*** 0 3"),
            (
                "url: http://u:p@h/?key=hunter2",
                "http://u:p@h/?key=hunter2",
                true,
                "url: http://***@h/?*** 5 17",
            ),
        ] {
            assert_eq!(shown(line, marked, is_shown), expected, "{line}");
        }
    }
}
