//! The report on refused lines.

use tidegate_wire::intake::EventError;
use tidegate_wire::json::append_string;

/// The most lines that are spoken of; the others are counted by nobody but the client.
const MOST: usize = 5;
/// The most bytes of a line that are sent back.
const ECHOED: usize = 1 << 10;

/// The lines that were refused, of which the first are described.
#[derive(Debug, Default)]
pub(super) struct RefusedLines {
    /// How many events were taken.
    pub(super) accepted: u64,
    /// Messages and documents, in JSON, one after the other.
    errors: Vec<u8>,
    described: usize,
}

impl RefusedLines {
    /// Adds a line that was refused, and how its body began.
    pub(super) fn add(&mut self, error: EventError, line: &[u8]) {
        if self.described == MOST {
            return;
        }
        if self.described > 0 {
            self.errors.push(b',');
        }
        self.described += 1;
        self.errors.extend_from_slice(b"\n    {\n      \"message\": ");
        string(error.to_string().as_bytes(), &mut self.errors);
        self.errors.extend_from_slice(b",\n      \"document\": ");
        let line = line.trim_ascii();
        string(line.get(..ECHOED).unwrap_or(line), &mut self.errors);
        self.errors.extend_from_slice(b"\n    }");
    }

    /// As APM Server writes it.
    pub(super) fn json(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(format!("{{\n  \"accepted\": {},\n  \"errors\": [", self.accepted).as_bytes());
        out.extend_from_slice(&self.errors);
        out.extend_from_slice(b"\n  ]\n}\n");
        out
    }
}

/// Appends `bytes` as a string of JSON; what is not UTF-8, or was cut in the middle, becomes U+FFFD.
pub(super) fn string(bytes: &[u8], out: &mut Vec<u8>) {
    append_string(out, String::from_utf8_lossy(bytes).as_bytes());
}
