//! Texts from outside are texts, whatever they hold.

use super::sample::troubled;
use crate::page::Page;
use crate::{Status, html, text};
use proptest::prelude::*;

/// A status whose every text is `text`.
fn saying(text: &str) -> Status {
    let mut status = troubled();
    let own = || text.to_owned();
    status.version = own();
    status.memory.origin = own();
    for line in &mut status.memory.declared {
        (line.owner, line.what) = (own(), own());
    }
    for share in &mut status.memory.payload.shares {
        share.name = own();
    }
    status.journal.dir = own();
    status.journal.durability = own();
    status.journal.trouble = Some(own());
    for sink in &mut status.sinks {
        (sink.name, sink.kind, sink.target) = (own(), own(), own());
        if let Some(error) = &mut sink.last_error {
            error.message = own();
        }
    }
    for source in &mut status.books.sources {
        source.name = own();
    }
    for sink in &mut status.books.sinks {
        sink.name = own();
    }
    status
}

/// How many tags a page has, and how many quotes.
fn markup(html: &str) -> [usize; 3] {
    ['<', '>', '"'].map(|sign| html.matches(sign).count())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// No text adds a tag, an attribute or a line to the page.
    #[test]
    fn no_text_is_markup(hostile in r#"[<>"'&a-z=/\n \p{C}]{0,40}"#) {
        let page = |text: &str| {
            let mut out = String::new();
            html::write(&Page::of(&saying(text)), &mut out).unwrap();
            out
        };
        let (calm, shown) = (page("x"), page(&hostile));
        prop_assert_eq!(markup(&shown), markup(&calm));
        prop_assert_eq!(shown.lines().count(), calm.lines().count());
    }

    /// No text steers a terminal or begins a line.
    #[test]
    fn no_text_steers_a_terminal(hostile in r"[a-z\n\r\t\x1b\[;0-9\u{202e}\p{C}]{0,40}") {
        let shown = |text: &str| {
            let mut out = String::new();
            text::write(&Page::of(&saying(text)), &mut out).unwrap();
            out
        };
        let (calm, shown) = (shown("x"), shown(&hostile));
        prop_assert_eq!(shown.lines().count(), calm.lines().count());
        let steers = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        prop_assert!(!shown.contains(steers));
    }

    /// JSON stays JSON, and says the text as it is.
    #[test]
    fn json_says_it_as_it_is(hostile in r#"[<>"\\'&a-z\n\x00-\x1f\p{C}]{0,40}"#) {
        let mut out = Vec::new();
        saying(&hostile).write_json(&mut out).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&out).unwrap();
        prop_assert_eq!(json["sinks"][0]["name"].as_str(), Some(hostile.as_str()));
        prop_assert_eq!(json["books"]["sinks"][0]["name"].as_str(), Some(hostile.as_str()));
    }
}
