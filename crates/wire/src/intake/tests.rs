//! Every line is checked, accepted lines read as in serde_json, and no other rule applies.
#![allow(clippy::indexing_slicing, reason = "what is read here was written here")]

mod captured;
mod oracle;
mod rules;

use super::*;

/// The errors of all lines but the first, by their number.
fn errors(body: &str) -> Vec<String> {
    let mut errors = Vec::new();
    check(body.as_bytes(), LONGEST_LINE, |_, error| errors.push(error.to_string())).unwrap();
    errors
}

const METADATA: &str = r#"{"metadata":{"service":{"name":"shop","agent":{"name":"go","version":"2.0"}}}}"#;
