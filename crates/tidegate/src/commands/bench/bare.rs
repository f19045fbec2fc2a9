//! The bare cost: what no receiver that looks at its data can do without.

use crate::Failure;
use rustix::time::{ClockId, clock_gettime};
use std::hint::black_box;
use std::time::Duration;
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
                black_box(scan(self.room.get(..decoded).unwrap_or_default()));
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

/// The barest walk that still finds every name, value and sample: one pass, no checks but of bounds.
fn scan(raw: &[u8]) -> usize {
    let mut request = raw;
    let mut sum = 0;
    while let Some((_, mut series)) = field(&mut request) {
        while let Some((tag, mut message)) = field(&mut series) {
            if tag == 0x0a {
                let (name, value) = (field(&mut message), field(&mut message));
                sum += name.map_or(0, |(_, name)| name.len()) ^ value.map_or(0, |(_, value)| value.len());
            } else if let Some(bits) = message.get(1..9) {
                sum += usize::from(bits == [0; 8]);
                sum += message.get(10..).unwrap_or_default().iter().take_while(|&&byte| byte >= 0x80).count();
            }
        }
    }
    sum
}

/// A field with a one-byte tag and a length below 16,384.
#[inline(always)]
fn field<'a>(message: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&[tag, low], rest) = message.split_first_chunk()?;
    let (len, rest) = match low {
        0x80.. => {
            let (&high, rest) = rest.split_first()?;
            (usize::from(low & 0x7f) | usize::from(high) << 7, rest)
        }
        low => (usize::from(low), rest),
    };
    let (payload, rest) = rest.split_at_checked(len)?;
    *message = rest;
    Some((tag, payload))
}

#[cfg(test)]
mod tests {
    use super::super::traffic::{PER_REQUEST, Traffic};
    use super::*;

    #[test]
    fn the_scan_reads_every_series_of_the_traffic_to_its_end() {
        let bodies = Traffic::brief().bodies();
        let mut raw = vec![0; snappy::decoded_len(&bodies[0]).unwrap()];
        snappy::decode(&bodies[0], &mut raw).unwrap();
        let (mut request, mut series) = (raw.as_slice(), 0);
        while field(&mut request).is_some() {
            series += 1;
        }
        assert_eq!((series, request.len()), (PER_REQUEST, 0));
        assert!(scan(&raw) > 0);
    }
}
