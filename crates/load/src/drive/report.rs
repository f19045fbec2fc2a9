use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use tidegate_meters::Summary;

use crate::compare::AcknowledgedSamples;

/// The results of a run's requests.
#[derive(Clone, Debug, Default)]
pub struct LoadReport {
    /// Answers, by status.
    pub answers: BTreeMap<u16, u64>,
    /// Requests that got no answer: no connection, a broken one, or none in time.
    pub failed: u64,
    /// Refusals that came with `Retry-After`.
    pub with_retry_after: u64,
    /// Connections that were made.
    pub connections: u64,
    /// Samples of accepted requests.
    pub samples: u64,
    /// Bytes of accepted bodies.
    pub body_bytes: u64,
    /// Which samples were acknowledged.
    pub acked: AcknowledgedSamples,
    /// Time from a request's first byte to its answer's last, in nanoseconds.
    pub latency: Summary,
    /// How long the run took.
    pub elapsed: Duration,
    /// The first few reasons that came with refusals.
    pub reasons: Vec<String>,
}

const MAX_REASONS: usize = 5;

impl LoadReport {
    pub(super) fn of(series: usize) -> Self {
        Self { acked: AcknowledgedSamples::none(series), ..Self::default() }
    }

    /// Requests that were answered with success.
    pub fn accepted(&self) -> u64 {
        self.answers.range(200..300).map(|(_, count)| count).sum()
    }

    /// Requests that were answered otherwise.
    pub fn refused(&self) -> u64 {
        self.answers.values().sum::<u64>() - self.accepted()
    }

    pub(super) fn reason(&mut self, reason: &str) {
        if self.reasons.len() < MAX_REASONS && !self.reasons.iter().any(|known| known == reason) {
            self.reasons.push(reason.chars().take(200).collect());
        }
    }

    /// Adds what one connection did, whose first series is the one at `index`.
    pub(super) fn merge(&mut self, index: usize, other: &Self) {
        for (status, count) in &other.answers {
            *self.answers.entry(*status).or_default() += count;
        }
        self.failed += other.failed;
        self.with_retry_after += other.with_retry_after;
        self.connections += other.connections;
        self.samples += other.samples;
        self.body_bytes += other.body_bytes;
        self.acked.merge(index, &other.acked);
        other.reasons.iter().for_each(|reason| self.reason(reason));
    }
}

/// A few lines for people.
impl fmt::Display for LoadReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.elapsed.as_secs_f64().max(1e-9);
        let millis = |q: f64| self.latency.quantile(q).unwrap_or(0) as f64 / 1e6;
        writeln!(
            f,
            "{} samples accepted in {seconds:.1} s: {:.0} a second, {:.1} MB a second of compressed bodies",
            self.samples,
            self.samples as f64 / seconds,
            self.body_bytes as f64 / 1e6 / seconds
        )?;
        let answers: Vec<String> =
            self.answers.iter().map(|(status, count)| format!("{status}: {count}")).collect();
        writeln!(f, "answers: {}; not answered: {}", answers.join(", "), self.failed)?;
        write!(
            f,
            "answered within {:.1} ms (half), {:.1} ms (99 %), {:.1} ms (all)",
            millis(0.5),
            millis(0.99),
            millis(1.0)
        )?;
        for reason in &self.reasons {
            write!(f, "\nrefused: {reason}")?;
        }
        Ok(())
    }
}
