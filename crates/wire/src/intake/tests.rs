//! What is checked is checked, what is accepted is shown as serde_json reads it, and nothing else decides.
#![allow(clippy::indexing_slicing, reason = "what is read here was written here")]

mod captured;
mod oracle;
mod rules;

use super::*;

/// The faults of all lines but the first, by their number.
fn faults(body: &str) -> Vec<String> {
    let mut faults = Vec::new();
    check(body.as_bytes(), LONGEST_LINE, |_, fault| faults.push(fault.to_string())).unwrap();
    faults
}

const METADATA: &str = r#"{"metadata":{"service":{"name":"shop","agent":{"name":"go","version":"2.0"}}}}"#;
