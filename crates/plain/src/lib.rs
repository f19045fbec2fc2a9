//! Text from outside, with nothing in it that a terminal obeys.
//!
//! Telemetry is written by anybody. Printed as it is, it could clear the screen, change the title of the window, answer as
//! if somebody had typed, or show its letters in another order than they have. Here such characters become escapes that
//! say what they are. Nothing else changes, and a text without them is not copied.
//!
//! URLs are shown without their [secrets](without_url_secrets).

mod url;

pub use url::without_url_secrets;

use std::borrow::Cow;
use std::fmt::Write;

/// Whether a character moves the cursor, is obeyed by a terminal, or changes the order in which others are shown: C0, C1
/// and DEL, the controls of bidirectional text, separators of lines, and invisible tags.
pub fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{061c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// The text on one line: `\n` and `\u{1b}` as they would stand in a program.
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, is_control, |c, out| out.extend(c.escape_default()))
}

/// The text, whose line feeds stay.
pub fn lines(text: &str) -> Cow<'_, str> {
    escaped(text, |c| c != '\n' && is_control(c), |c, out| out.extend(c.escape_default()))
}

/// Lines of JSON that say the same: `\u001b`, which JSON has for it, in the place of the character.
pub fn json(text: &str) -> Cow<'_, str> {
    escaped(
        text,
        |c| c != '\n' && is_control(c),
        |c, out| {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string does not fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        },
    )
}

fn escaped(text: &str, is_wrong: impl Fn(char) -> bool, escape: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let Some(first) = text.find(&is_wrong) else { return Cow::Borrowed(text) };
    let (before, rest) = text.split_at(first);
    let mut out = String::with_capacity(text.len() + 16);
    out.push_str(before);
    for c in rest.chars() {
        if is_wrong(c) { escape(c, &mut out) } else { out.push(c) }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn control_characters_are_escaped_and_nothing_else() {
        for (text, expected) in [
            ("é ü 漢 👩\u{200d}💻 \\n", "é ü 漢 👩\u{200d}💻 \\n"),
            ("\x1b[2J\x07", "\\u{1b}[2J\\u{7}"),
            ("a\r\nb\tc", "a\\r\\nb\\tc"),
            ("\u{9b}2J\x7f", "\\u{9b}2J\\u{7f}"),
            ("\u{202e}txt.exe\u{2066}\u{200f}\u{61c}", "\\u{202e}txt.exe\\u{2066}\\u{200f}\\u{61c}"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(line(text), expected);
        }
        assert_eq!(lines("a\nb\x1b"), "a\nb\\u{1b}");
        assert!(matches!(line("plain"), Cow::Borrowed("plain")));
    }

    proptest! {
        /// No text has anything left that a terminal obeys.
        #[test]
        fn nothing_is_left(text in any::<String>()) {
            prop_assert!(!line(&text).contains(is_control));
            prop_assert!(!lines(&text).contains(|c| c != '\n' && is_control(c)));
        }

        /// JSON says the same as before.
        #[test]
        fn json_stays_the_same(text in "[\\x00-\\x{2fff}\\x{e0000}-\\x{e01ff}]*") {
            let written = serde_json::to_string(&text).unwrap();
            let shown = json(&written);
            prop_assert!(!shown.contains(is_control));
            prop_assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
        }
    }
}
