//! The whole of each form, as it stood when somebody last looked at it and found it good.
//!
//! After a change that is meant: `TIDEGATE_BLESS=1 cargo test -p tidegate-console`, and look at the difference.

use super::sample::{healthy, troubled};
use crate::page::Page;
use crate::{Status, html, text};
use std::path::Path;

fn as_text(status: &Status) -> String {
    let mut out = String::new();
    text::write(&Page::of(status), &mut out).unwrap();
    out
}

fn as_html(status: &Status) -> String {
    let mut out = String::new();
    html::write(&Page::of(status), &mut out).unwrap();
    out
}

fn as_json(status: &Status) -> serde_json::Value {
    let mut out = Vec::new();
    status.write_json(&mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

pub(super) fn assert_golden(name: &str, shown: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tests/golden").join(name);
    if std::env::var_os("TIDEGATE_BLESS").is_some() {
        std::fs::write(&path, shown).unwrap();
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(shown == golden, "{name} has changed; it is now:\n{shown}");
}

#[test]
fn text_is_as_it_was() {
    assert_golden("healthy.txt", &as_text(&healthy()));
    assert_golden("troubled.txt", &as_text(&troubled()));
}

#[test]
fn html_is_as_it_was() {
    assert_golden("healthy.html", &as_html(&healthy()));
    assert_golden("troubled.html", &as_html(&troubled()));
}

#[test]
fn json_is_as_it_was() {
    let pretty = |status| serde_json::to_string_pretty(&as_json(&status)).unwrap() + "\n";
    assert_golden("healthy.json", &pretty(healthy()));
    assert_golden("troubled.json", &pretty(troubled()));
}

/// Programs get raw numbers, and the verdict beside them.
#[test]
fn json_is_raw() {
    let json = as_json(&troubled());
    assert_eq!(json["state"], "pushing_back");
    assert_eq!(json["memory"]["resident"]["peak"], 40 << 20);
    assert_eq!(json["sinks"][1]["lag"]["age_seconds"], 10_800.0);
    assert_eq!(json["sinks"][1]["dropped"]["rejected"], 4);
    assert_eq!(json["sinks"][1]["retry_at"], "2027-01-15T08:00:12Z");
    assert_eq!(json["books"]["sources"][0]["refused"]["memory"], 7);
    assert_eq!(json["books"]["difference"], 0);
}

/// A difference in the books cannot be overlooked in any form.
#[test]
fn a_difference_shows() {
    assert!(as_text(&healthy()).contains("The books close."));
    let mut status = healthy();
    status.books.sinks[1].difference = -3;
    status.books.sources[0].difference = 2;
    let text = as_text(&status);
    assert!(text.contains("THE BOOKS DO NOT CLOSE: 5 unexplained"), "{text}");
    assert!(text.contains("! -3") && text.contains("! +2"), "{text}");
    let html = as_html(&status);
    assert!(html.contains("<td class=\"right bad\">-3</td>"), "{html}");
    assert!(html.contains("<p class=\"say bad\">THE BOOKS DO NOT CLOSE"), "{html}");
    assert_eq!(as_json(&status)["books"]["difference"], 5);
}

/// The page is one file: nothing is fetched, nothing runs.
#[test]
fn the_page_stands_alone() {
    let html = as_html(&troubled());
    for outside in ["<script", "<link", "<img", "@import", "url(", "javascript:", " onload", " onclick"] {
        assert!(!html.contains(outside), "{outside}");
    }
}

/// Steps that are left out for want of room are counted, on the page and for programs.
#[test]
fn steps_that_are_not_shown_are_counted() {
    let mut status = healthy();
    assert!(!as_text(&status).contains("more: /metrics"));
    status.sinks[0].pipeline_left_out = 7;
    assert!(as_text(&status).contains("and 7 more: /metrics has them"), "{}", as_text(&status));
    assert_eq!(as_json(&status)["sinks"][0]["pipeline_left_out"], 7);
}
