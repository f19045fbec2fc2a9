//! Requests as JSON: the last step before compression, and how long they become by that.

use super::outbound_request::Frame;
use super::peer::PREFIX;
use crate::batch::DropReason;
use crate::egress_budget::{BudgetError, EgressBudget};
use tidegate_arena::GROWTH_STEP;
use tidegate_journal::Signal;
use tidegate_wire::otlp::json::{Encoder, Layout, Next};

/// The JSON layout of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Form {
    pub(super) layout: Layout,
    /// About how long it becomes, in bytes.
    pub(super) expected: usize,
    /// How long it may be.
    pub(super) most: usize,
}

/// Writes a request of OTLP as JSON, in memory that grows as it is needed.
pub(super) async fn written(
    raw: &[u8],
    signal: Signal,
    form: Form,
    room: &EgressBudget,
) -> Result<Frame, DropReason> {
    let signal = super::spoken(signal).ok_or(DropReason::Damaged)?;
    let expected =
        form.expected.saturating_add(PREFIX).clamp(PREFIX + 1, room.longest_window().max(GROWTH_STEP));
    let mut frame = room.window(expected).await?;
    frame.skip(PREFIX);
    let mut encoder = Encoder::new(signal, raw, form.layout);
    loop {
        let progress = encoder.write(frame.spare_mut());
        frame.advance(progress.written);
        if frame.len() > form.most.saturating_add(PREFIX) {
            return Err(DropReason::TooLong);
        }
        match progress.next {
            Next::Done => return Ok(frame),
            Next::More => {}
            Next::Space => {
                let (spare, used) = (frame.spare_mut().len(), frame.len());
                // Twice as much as there is, or all that can be had.
                let wanted = used
                    .max(GROWTH_STEP)
                    .saturating_add(spare)
                    .min(spare.saturating_add(room.longest_window()));
                if wanted <= spare {
                    return Err(DropReason::Room(BudgetError::WithoutTurn));
                }
                frame.reserve(wanted).await?;
            }
        }
        tokio::task::yield_now().await;
    }
}

/// How many times longer than in protobuf requests have lately been, by signal: in sixteenths; zero while nothing is known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Growth([usize; 3]);

const ONE: usize = 16;
/// Before anything is known.
const USUAL: usize = 2 * ONE;
/// How much of a growth that was not needed is forgotten.
const FORGOTTEN: usize = 16;

impl Growth {
    /// About how long a request of `raw` bytes becomes, rather more than less.
    pub(super) fn longer(&self, signal: Signal, raw: usize) -> usize {
        raw.saturating_mul(self.generous(signal)) / ONE
    }

    /// How long a request may be in protobuf to have `most` bytes.
    pub(super) fn shorter(&self, signal: Signal, most: usize) -> usize {
        most.saturating_mul(ONE) / self.generous(signal)
    }

    fn generous(&self, signal: Signal) -> usize {
        let growth = self.0.get(at(signal)).copied().filter(|growth| *growth > 0).unwrap_or(USUAL);
        growth.saturating_add(growth.div_ceil(4))
    }

    /// Learns from a request of `raw` bytes that became `written`.
    pub(super) fn learn(&mut self, signal: Signal, raw: usize, written: usize) {
        let seen = (written.saturating_mul(ONE) / raw.max(1)).saturating_add(1);
        if let Some(growth) = self.0.get_mut(at(signal)) {
            // A longer one counts at once: requests that are too long are made again.
            *growth = seen.max(*growth - growth.saturating_sub(seen).div_ceil(FORGOTTEN));
        }
    }
}

fn at(signal: Signal) -> usize {
    match signal {
        Signal::Traces => 0,
        Signal::Metrics => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_follows_what_was_written() {
        let (signal, mut growth) = (Signal::Logs, Growth::default());
        assert_eq!(growth.longer(signal, 1000), 2500);
        growth.learn(signal, 1000, 6000);
        assert!((6000..9000).contains(&growth.longer(signal, 1000)), "{growth:?}");
        assert!(growth.longer(signal, growth.shorter(signal, 1 << 20)) <= 1 << 20);
        (0..100).for_each(|_| growth.learn(signal, 1000, 1100));
        assert!(growth.longer(signal, 1000) < 2000, "{growth:?}");
        assert_eq!(growth.longer(Signal::Traces, 1000), 2500, "signals differ");
        // Nothing, and more than there can be.
        growth.learn(signal, 0, usize::MAX);
        assert!(growth.longer(signal, usize::MAX) >= growth.shorter(signal, usize::MAX));
    }
}
