//! Promise: a client gets a file in the form that it takes, and only if it does not have it.

use super::*;

#[test]
fn gzip_is_for_those_who_take_it() {
    for (header, expected) in [
        ("gzip", true),
        ("br, GZIP;q=0.5, *;q=0", true),
        ("deflate,gzip", true),
        ("gzip;q=0", false),
        ("gzip; q=0.000", false),
        ("gzipped", false),
        ("identity", false),
        ("", false),
    ] {
        assert_eq!(accepts_gzip(header.as_bytes()), expected, "{header}");
    }
}

#[test]
fn tags_are_compared_weakly() {
    let tag = "W/\"0123456789abcdef\"";
    for (header, expected) in [
        (tag, true),
        ("\"0123456789abcdef\"", true),
        ("\"a\", W/\"0123456789abcdef\"", true),
        ("*", true),
        ("\"0123456789abcde\"", false),
        ("", false),
    ] {
        assert_eq!(has_tag(header.as_bytes(), tag), expected, "{header}");
    }
}

/// All the files together stay small: a page is there at once over a slow tunnel, too.
#[test]
fn the_pages_are_at_most_100_kb_compressed() {
    let compressed: usize = ASSETS.iter().map(|asset| asset.gzip.len()).sum();
    assert!(compressed <= 100_000, "{compressed} bytes");
}
