//! Writes requests in another form, the last step before compression, and estimates their length.

use super::outbound_request::Frame;
use super::peer::PREFIX;
use super::push;
use super::settings::Form;
use crate::batch::DropReason;
use crate::egress_budget::{BudgetError, EgressBudget};
use std::sync::Arc;
use tidegate_arena::GROWTH_STEP;
use tidegate_journal::Signal;
use tidegate_wire::otlp::json::{Encoder, Layout, Next, Progress};
use tidegate_wire::otlp::splunk_hec::{self, Metadata};

/// The form of a request.
#[derive(Debug, Clone)]
pub(super) struct OutputForm {
    pub(super) form: Form,
    /// The expected length, in bytes.
    pub(super) expected: usize,
    /// The longest permitted length, in bytes.
    pub(super) most: usize,
}

/// The layout of JSON requests.
#[derive(Debug, Clone)]
pub(super) enum JsonWriter {
    /// Items with the names of OTLP.
    Otlp(Layout),
    /// Events of Splunk's HTTP Event Collector.
    SplunkHec(Arc<Metadata>),
}

/// An encoder of either layout.
#[allow(clippy::large_enum_variant, reason = "there is one at a time, on the stack")]
enum AnyEncoder<'a> {
    Otlp(Encoder<'a>),
    SplunkHec(splunk_hec::Encoder<'a>),
}

impl AnyEncoder<'_> {
    fn write(&mut self, space: &mut [u8]) -> Progress {
        match self {
            AnyEncoder::Otlp(encoder) => encoder.write(space),
            AnyEncoder::SplunkHec(encoder) => encoder.write(space),
        }
    }
}

/// A request in its form.
pub(super) struct Written {
    pub(super) frame: Frame,
    /// How long it is before compression, in bytes.
    pub(super) len: usize,
}

/// Writes an OTLP request in another form.
pub(super) async fn written(
    raw: &[u8],
    signal: Signal,
    form: OutputForm,
    room: &EgressBudget,
) -> Result<Written, DropReason> {
    match &form.form {
        Form::Json(writer) => {
            let frame = as_json(raw, signal, writer, &form, room).await?;
            let len = frame.len().saturating_sub(PREFIX);
            Ok(Written { frame, len })
        }
        Form::Push(rules) => push::written(raw, rules, &form, room).await,
    }
}

/// Writes an OTLP request as JSON into a window that grows on demand.
async fn as_json(
    raw: &[u8],
    signal: Signal,
    writer: &JsonWriter,
    form: &OutputForm,
    room: &EgressBudget,
) -> Result<Frame, DropReason> {
    let signal = super::wire_signal(signal).ok_or(DropReason::Damaged)?;
    let expected =
        form.expected.saturating_add(PREFIX).clamp(PREFIX + 1, room.longest_window().max(GROWTH_STEP));
    let mut frame = room.window(expected).await?;
    frame.skip(PREFIX);
    let mut encoder = match writer {
        JsonWriter::Otlp(layout) => AnyEncoder::Otlp(Encoder::new(signal, raw, *layout)),
        JsonWriter::SplunkHec(metadata) => AnyEncoder::SplunkHec(splunk_hec::Encoder::new(raw, metadata)),
    };
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
                // Doubles the window, or takes all available memory.
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

/// The recent length of requests in their form relative to protobuf, by signal, in sixteenths; zero while unknown.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Growth([usize; 3]);

const ONE: usize = 16;
/// The assumption while nothing is known.
const USUAL: usize = 2 * ONE;
/// Each request lowers an estimate that was too high by this part of the difference.
const FORGOTTEN: usize = 16;

impl Growth {
    /// Estimates the JSON length of `raw` bytes of protobuf, with a margin of a quarter.
    pub(super) fn longer(&self, signal: Signal, raw: usize) -> usize {
        raw.saturating_mul(self.generous(signal)) / ONE
    }

    /// Estimates the protobuf length that becomes `most` bytes of JSON.
    pub(super) fn shorter(&self, signal: Signal, most: usize) -> usize {
        most.saturating_mul(ONE) / self.generous(signal)
    }

    fn generous(&self, signal: Signal) -> usize {
        let growth = self.0.get(at(signal)).copied().filter(|growth| *growth > 0).unwrap_or(USUAL);
        growth.saturating_add(growth.div_ceil(4))
    }

    /// Learns from `raw` bytes of protobuf that became `written` bytes of JSON.
    pub(super) fn learn(&mut self, signal: Signal, raw: usize, written: usize) {
        let seen = (written.saturating_mul(ONE) / raw.max(1)).saturating_add(1);
        if let Some(growth) = self.0.get_mut(at(signal)) {
            // Rises at once: a request that is too long is prepared again.
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
    fn the_growth_estimate_follows_the_written_lengths() {
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
