//! The bare cost: what no receiver that looks at its data can do without.

use crate::Failure;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Duration;
use tidegate_load::remote_write::bare_scan;
use tidegate_wire::snappy;

/// Bodies, and room to decompress one.
pub(super) struct Bare {
    bodies: Vec<Vec<u8>>,
    room: Vec<u8>,
    samples: usize,
}

impl Bare {
    /// Of compressed bodies with `samples` samples each.
    pub(super) fn of(bodies: Vec<Vec<u8>>, samples: usize) -> Result<Bare, Failure> {
        let mut longest = 0;
        for body in &bodies {
            longest = longest.max(snappy::decoded_len(body)?);
        }
        Ok(Bare { bodies, room: vec![0; longest], samples })
    }

    /// Bytes per sample before compression.
    pub(super) fn bytes_per_sample(&self) -> f64 {
        let raw: usize = self.bodies.iter().filter_map(|body| snappy::decoded_len(body).ok()).sum();
        raw as f64 / (self.bodies.len() * self.samples) as f64
    }

    /// Nanoseconds of processor time per sample to decompress the bodies and to find every name, value and
    /// sample in them: measured over all bodies, again and again for about `long`.
    pub(super) fn cost(&mut self, long: Duration) -> Result<f64, Failure> {
        let begun = processor_time();
        let mut samples = 0;
        loop {
            for body in &self.bodies {
                let decoded = snappy::decode(black_box(body), &mut self.room)?;
                black_box(bare_scan(self.room.get(..decoded).unwrap_or_default()));
                samples += self.samples;
            }
            let took = processor_time().saturating_sub(begun);
            if took >= long {
                return Ok(took.as_nanos() as f64 / samples as f64);
            }
        }
    }
}

/// The processor time of this thread.
pub(super) fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}
