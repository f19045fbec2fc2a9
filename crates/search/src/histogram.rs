//! How many log records there are over time, by severity.

use jiff::Timestamp;
use serde::Serialize;

/// Classes of severity: none, and the six of OpenTelemetry.
const CLASSES: usize = 7;

/// Counts in steps of the same length.
pub(crate) struct Histogram {
    from_us: i64,
    step_us: i64,
    bars: Vec<[u64; CLASSES]>,
}

#[derive(Serialize)]
struct Bar {
    time: String,
    unset: u64,
    trace: u64,
    debug: u64,
    info: u64,
    warn: u64,
    error: u64,
    fatal: u64,
}

impl Histogram {
    /// So many steps between two times; `None` if there is no time between them.
    pub(crate) fn new(from: Timestamp, to: Timestamp, steps: usize) -> Option<Histogram> {
        let (from_us, to_us) = (from.as_microsecond(), to.as_microsecond());
        let all = to_us.checked_sub(from_us).filter(|all| *all > 0)?;
        let steps_us = i64::try_from(steps).ok()?;
        // Rounded up, so that the last step does not end too early.
        let step_us = (all - 1) / steps_us + 1;
        Some(Histogram { from_us, step_us, bars: vec![[0; CLASSES]; steps] })
    }

    pub(crate) fn add(&mut self, time_us: i64, severity: i32) {
        let step = time_us.checked_sub(self.from_us).map(|after| after.div_euclid(self.step_us));
        let bar = step.and_then(|step| usize::try_from(step).ok()).and_then(|step| self.bars.get_mut(step));
        let class = usize::try_from(severity.saturating_add(3) / 4).unwrap_or(0).min(CLASSES - 1);
        if let Some(count) = bar.and_then(|bar| bar.get_mut(class)) {
            *count += 1;
        }
    }

    pub(crate) fn clear(&mut self) {
        self.bars.fill([0; CLASSES]);
    }

    /// As the answer has it.
    pub(crate) fn bars(&self) -> impl Serialize {
        let bar = |(place, counts): (usize, &[u64; CLASSES])| {
            let place = i64::try_from(place).unwrap_or(i64::MAX);
            let begin = self.from_us.saturating_add(self.step_us.saturating_mul(place));
            let [unset, trace, debug, info, warn, error, fatal] = *counts;
            let time =
                Timestamp::from_microsecond(begin).map_or_else(|_| String::new(), |time| time.to_string());
            Bar { time, unset, trace, debug, info, warn, error, fatal }
        };
        self.bars.iter().enumerate().map(bar).collect::<Vec<_>>()
    }
}
