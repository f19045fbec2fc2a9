//! Intake events, said in OTLP before they become rows.

use super::{Failure, Lake};
use crate::room::{Held, NoRoom};
use std::ops::Range;
use tidegate_arena::Window;
use tidegate_elastic::intake;
use tidegate_ledger::Dropped;
use tidegate_wire::otlp::Signal;
use tidegate_wire::output::Full;

const SIGNALS: [Signal; 3] = [Signal::Traces, Signal::Metrics, Signal::Logs];

/// A body said in OTLP: a request for each signal, one after the other.
pub(super) struct Said {
    window: Held<Window>,
    parts: [Range<usize>; SIGNALS.len()],
    /// The events that are in them.
    pub(super) events: u64,
}

impl Said {
    /// The requests, some of which may be empty.
    pub(super) fn parts(&self) -> [(Signal, &[u8]); SIGNALS.len()] {
        let mut parts = SIGNALS.map(|signal| (signal, &[][..]));
        for ((_, part), range) in parts.iter_mut().zip(&self.parts) {
            *part = self.window.get(range.clone()).unwrap_or_default();
        }
        parts
    }
}

impl Lake {
    /// Says the events of a checked body in OTLP, in twice the room whenever there was not enough.
    pub(super) fn said(&self, raw: &[u8], received_at_ns: u64) -> Result<Said, Failure> {
        let mut len = intake::usual_len(raw.len());
        loop {
            let mut window = self.wait(self.room.window(len))??;
            match parts(raw, received_at_ns, &mut window) {
                Ok((parts, events)) => return Ok(Said { window, parts, events }),
                // It takes no more than some times as much: then the fault is elsewhere.
                Err(Full) if len / 64 > raw.len() => return Err(Failure::Lost(Dropped::Untranslatable)),
                Err(Full) => len = len.checked_mul(2).ok_or(Failure::Room(NoRoom::Never))?,
            }
        }
    }
}

/// Where the request of each signal is in the window, and how many events are in them.
fn parts(
    raw: &[u8],
    received_at_ns: u64,
    window: &mut Window,
) -> Result<([Range<usize>; SIGNALS.len()], u64), Full> {
    let mut events = 0;
    let mut parts = [const { 0..0 }; SIGNALS.len()];
    for (part, signal) in parts.iter_mut().zip(SIGNALS) {
        let start = window.len();
        let done = intake::to_otlp(raw, received_at_ns, signal, window.spare_mut())?;
        window.advance(done.bytes);
        *part = start..window.len();
        events += done.events;
    }
    Ok((parts, events))
}
