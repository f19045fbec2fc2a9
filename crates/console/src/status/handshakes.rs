//! TLS handshakes in numbers.

use serde::Serialize;

/// How TLS handshakes ended since the process started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Handshakes {
    /// Those that became connections.
    pub done: u64,
    /// Those that came to nothing, by reason; reasons for which none did are left out.
    pub failed: Vec<Failed>,
}

/// Handshakes that came to nothing for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Failed {
    /// The reason, as metrics name it.
    pub reason: &'static str,
    /// How many.
    pub count: u64,
    /// The remedy.
    pub advice: &'static str,
}

impl Handshakes {
    /// `done` that became connections, and these; the most frequent reasons first.
    pub fn of(done: u64, mut failed: Vec<Failed>) -> Handshakes {
        failed.retain(|failed| failed.count > 0);
        failed.sort_by_key(|failed| std::cmp::Reverse(failed.count));
        Handshakes { done, failed }
    }
}
