//! How slowly a body may arrive.

use crate::settings::Settings;
use std::time::Duration;
use tokio::time::Instant;

/// The deadlines of one body: in all, since the last byte, and for the least rate.
#[derive(Debug, Clone, Copy)]
pub struct BodyDeadlines {
    begun: Instant,
    /// Milliseconds from the beginning to the last byte.
    heard: u32,
    received: usize,
    /// Whether it may be slow, so that only the deadline for all of it counts.
    patient: bool,
}

impl BodyDeadlines {
    /// Of a body that begins now.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "the moment matters")]
    pub fn new() -> BodyDeadlines {
        BodyDeadlines { begun: Instant::now(), heard: 0, received: 0, patient: false }
    }

    /// Of one that may be slow.
    #[must_use]
    pub fn with_timeouts() -> BodyDeadlines {
        BodyDeadlines { patient: true, ..BodyDeadlines::new() }
    }

    /// Notes that bytes arrived.
    pub fn extend(&mut self, bytes: usize) {
        self.received = self.received.saturating_add(bytes);
        self.heard = u32::try_from(self.begun.elapsed().as_millis()).unwrap_or(u32::MAX);
    }

    /// When the body is too slow if nothing arrives before. The bytes received buy time at the least
    /// rate, so the rate needs no clock of its own.
    pub fn deadline(&self, settings: &Settings) -> Instant {
        if self.patient {
            return self.begun + settings.body;
        }
        let bought = self.received as f64 / f64::from(settings.body_rate.max(1));
        // The cap comes first, so that no time is added that a clock cannot hold.
        let bought = Duration::from_secs_f64(bought.min(settings.body.as_secs_f64()));
        let by_rate = self.begun + settings.body_grace + bought;
        let by_stall = self.begun + Duration::from_millis(self.heard.into()) + settings.body_stall;
        by_rate.min(by_stall).min(self.begun + settings.body)
    }
}
