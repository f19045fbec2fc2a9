//! A translation that goes on where the room for the last piece ended.

use super::writer::{MessageWriter, limit};
use super::{logs, metrics, resource, signal_of, spans};
use tidegate_wire::intake::{EventKind, Object, events_from};
use tidegate_wire::otlp::Signal;
use tidegate_wire::output::Full;

/// Where a translation is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct EventPosition {
    /// The bytes of the body that are done.
    at: usize,
    /// The samples of the metricset there that are.
    samples: usize,
}

/// The contents of one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Request {
    /// The length of the request.
    pub bytes: usize,
    /// The events that are in it, or the last part of which is.
    pub events: u64,
    /// Its items as OTLP counts them: spans, log records, points.
    pub items: u64,
    /// How many of its bytes enclose them: the resource.
    pub enclosing: usize,
}

/// The events of one signal of a checked body as export requests, each as large as there is room for. Clones go on by
/// themselves.
#[derive(Debug, Clone)]
pub struct EventRequests<'a> {
    raw: &'a [u8],
    metadata: Option<Object<'a>>,
    received_at_ns: u64,
    signal: Signal,
    place: EventPosition,
}

impl<'a> EventRequests<'a> {
    /// The events of `signal`. Those without a time have that at which the body was received.
    #[must_use]
    pub fn new(raw: &'a [u8], received_at_ns: u64, signal: Signal) -> Self {
        let first = events_from(raw, 0).next().filter(|(_, event)| event.kind == EventKind::Metadata);
        let metadata = first.map(|(_, event)| event.fields());
        Self { raw, metadata, received_at_ns, signal, place: EventPosition::default() }
    }

    /// Where it is.
    #[must_use]
    pub fn place(&self) -> EventPosition {
        self.place
    }

    /// Goes on at a place where one of the same body was.
    pub fn go_to(&mut self, place: EventPosition) {
        self.place = place;
    }

    /// Whether nothing of the signal is left.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.next_len() == 0
    }

    /// The length of the next event's line; 0 where there is none.
    #[must_use]
    pub fn next_len(&self) -> usize {
        let mut at = self.place.at;
        for (end, event) in events_from(self.raw, at) {
            if signal_of(event.kind) == Some(self.signal) {
                return end.saturating_sub(at);
            }
            at = end;
        }
        0
    }

    /// Passes over the next event, or what is left of it: whether there was one.
    pub fn pass_over(&mut self) -> bool {
        for (end, event) in events_from(self.raw, self.place.at) {
            self.place = EventPosition { at: end, samples: 0 };
            if signal_of(event.kind) == Some(self.signal) {
                return true;
            }
        }
        false
    }

    /// Writes as many events as there is room for in `most` bytes, or one that is longer, as one request, to the start of
    /// `out`; of a metricset as many samples. Where there are none, nothing is written. Nothing is allocated.
    ///
    /// # Errors
    /// [`Full`] when there is no room for the next one.
    pub fn write(&mut self, out: &mut [u8], most: usize) -> Result<Request, Full> {
        self.fill(MessageWriter::new(out), most)
    }

    /// The same for all that there is: where there is no room for it, what was written is of no use.
    pub(super) fn write_whole(&mut self, out: &mut [u8]) -> Result<Request, Full> {
        let portion = self.fill(MessageWriter::whole(out), usize::MAX)?;
        if self.is_done() { Ok(portion) } else { Err(Full) }
    }

    fn fill(&mut self, mut out: MessageWriter<'_>, most: usize) -> Result<Request, Full> {
        let mut portion = Request::default();
        let group = out.open(1);
        resource(&mut out, self.metadata);
        let scope = out.open(2);
        portion.enclosing = out.len();
        let limit = limit(most, portion.enclosing);
        let mut is_full = false;
        for (end, event) in events_from(self.raw, self.place.at) {
            if signal_of(event.kind) != Some(self.signal) {
                self.place = EventPosition { at: end, samples: 0 };
                continue;
            }
            let start = out.len();
            let (fields, received) = (event.fields(), self.received_at_ns);
            match event.kind {
                EventKind::Transaction => spans::transaction(&mut out, fields, received),
                EventKind::Span => spans::span(&mut out, fields, received),
                EventKind::Error => logs::error(&mut out, fields, received),
                EventKind::Log => logs::log(&mut out, fields, received),
                EventKind::Metricset if !out.is_full() => {
                    let samples = metrics::metricset(&mut out, fields, received, (self.place.samples, limit));
                    self.place.samples += samples;
                    portion.items += samples as u64;
                }
                EventKind::Metricset | EventKind::Metadata => {}
            }
            if out.is_full() {
                // Of a metricset, what there was no room for is taken back already.
                let kept = if event.kind == EventKind::Metricset { out.len() } else { start };
                out.reset_to(kept);
                is_full = true;
                break;
            }
            portion.items += u64::from(event.kind != EventKind::Metricset);
            portion.events += 1;
            out.limit(limit);
            self.place = EventPosition { at: end, samples: 0 };
        }
        out.close_enclosing(scope);
        out.close_enclosing(group);
        if portion.items == 0 && portion.events == 0 {
            return if is_full { Err(Full) } else { Ok(Request::default()) };
        }
        portion.bytes = out.end().ok_or(Full)?;
        Ok(portion)
    }
}
