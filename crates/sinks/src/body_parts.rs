//! Splits bodies into OTLP requests: OTLP as it is, and other formats by translating a piece at a time. Only the body
//! itself is ever whole in memory.

use crate::signals::Signals;
use tidegate_elastic::documents::{LogRequests, usual_logs_len};
use tidegate_elastic::intake;
use tidegate_journal::Signal;
use tidegate_wire::otlp::Signal as WireSignal;
use tidegate_wire::otlp::prometheus::{OtlpTranslation, RemoteWritePieces, RemoteWritePlace};
use tidegate_wire::otlp::{Piece, Split};
use tidegate_wire::output::{Full, SliceOutput};

/// The signals that events of Elastic APM become, in the order in which they are sent.
const SIGNALS: [(Signal, WireSignal); 3] = [
    (Signal::Traces, WireSignal::Traces),
    (Signal::Metrics, WireSignal::Metrics),
    (Signal::Logs, WireSignal::Logs),
];

/// A body from which pieces are taken in order. A clone continues on its own.
pub(crate) trait BodyParts: Clone {
    /// Whether [`wanted`](Self::wanted) is the exact length of the next piece.
    const IS_EXACT: bool;

    /// The signal of the next piece.
    fn signal(&self) -> Signal;

    /// About how much room a next piece of up to `most` bytes takes; `None` at the end.
    fn wanted(&mut self, most: usize) -> Option<usize>;

    /// Whether the next piece, which did not fit, would be shorter with a smaller `most`.
    fn is_divisible(&self) -> bool;

    /// Writes the next piece to the start of `space`: up to `most` bytes, or more when its first item or the envelope alone
    /// is longer. Counts items that cannot be translated; there may be no others.
    fn write(&mut self, space: &mut [u8], most: usize) -> Result<BodyPart, Full>;

    /// Skips the next item.
    fn pass_over(&mut self) -> BodyPart;

    /// Where it is.
    fn place(&self) -> BodyPosition;
}

/// The content of a piece.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct BodyPart {
    pub(crate) bytes: usize,
    /// How many of those are the envelope of its items.
    pub(crate) enclosing: usize,
    /// Its items as OTLP counts them.
    pub(crate) items: u64,
    /// Its items as the books count them.
    pub(crate) booked: u64,
    /// Items that were left out because OTLP has no form for them.
    pub(crate) untranslatable: u64,
}

/// A position in a body, in the unit of its format.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BodyPosition {
    /// Items, in the order of the body.
    items: u64,
    series: RemoteWritePlace,
    /// The index of the signal in [`SIGNALS`], of events.
    stage: usize,
    events: intake::EventPosition,
}

impl BodyPart {
    /// Whether it can be split without repeating the envelope out of proportion to the items.
    pub(crate) fn is_cuttable(&self, smallest: usize) -> bool {
        /// How many times the items' length the envelope may be.
        const TIMES: usize = 16;
        let inside = self.bytes.saturating_sub(self.enclosing);
        self.items > 1 && self.bytes > smallest && self.enclosing / TIMES <= inside
    }
}

/// A request of OTLP.
#[derive(Clone)]
pub(crate) struct BodySplitter<'a> {
    signal: Signal,
    split: Split<'a>,
    /// The next piece, and what comes behind it.
    ahead: Option<(Piece<'a>, Split<'a>)>,
    done: u64,
}

impl<'a> BodySplitter<'a> {
    pub(crate) fn new(signal: Signal, mut split: Split<'a>, from: &BodyPosition) -> Self {
        split.skip_items(from.items);
        BodySplitter { signal, split, ahead: None, done: from.items }
    }

    fn take(&mut self) -> Option<Piece<'a>> {
        let (piece, behind) = self.ahead.take()?;
        self.split = behind;
        self.done += piece.items();
        Some(piece)
    }
}

impl BodyParts for BodySplitter<'_> {
    const IS_EXACT: bool = true;

    fn signal(&self) -> Signal {
        self.signal
    }

    fn wanted(&mut self, most: usize) -> Option<usize> {
        self.split.limit(most);
        loop {
            let mut behind = self.split.clone();
            let piece = behind.next()?;
            if piece.items() > 0 {
                self.ahead = Some((piece, behind));
                return Some(piece.len());
            }
            // A piece without items is of no use.
            self.split = behind;
        }
    }

    fn is_divisible(&self) -> bool {
        self.ahead.as_ref().is_some_and(|(piece, _)| piece.items() > 1)
    }

    fn write(&mut self, space: &mut [u8], _: usize) -> Result<BodyPart, Full> {
        let (piece, _) = self.ahead.as_ref().ok_or(Full)?;
        piece.write(&mut SliceOutput::new(space))?;
        let Some(piece) = self.take() else { return Err(Full) };
        let items = piece.items();
        let (bytes, enclosing) = (piece.len(), piece.enclosing());
        Ok(BodyPart { bytes, enclosing, items, booked: items, untranslatable: 0 })
    }

    fn pass_over(&mut self) -> BodyPart {
        let items = self.take().map_or(0, |piece| piece.items());
        BodyPart { items, booked: items, ..BodyPart::default() }
    }

    fn place(&self) -> BodyPosition {
        BodyPosition { items: self.done, ..BodyPosition::default() }
    }
}

/// Documents of `_bulk`.
#[derive(Clone)]
pub(crate) struct DocumentParts<'a> {
    pieces: LogRequests<'a>,
    /// About how long all of them are in one piece.
    usual: usize,
}

impl<'a> DocumentParts<'a> {
    pub(crate) fn new(body: &'a [u8], received_at_ns: u64, from: &BodyPosition) -> Self {
        let mut pieces = LogRequests::new(body, received_at_ns);
        pieces.skip_to(from.items);
        DocumentParts { pieces, usual: usual_logs_len(body.len()) }
    }
}

impl BodyParts for DocumentParts<'_> {
    const IS_EXACT: bool = false;

    fn signal(&self) -> Signal {
        Signal::Logs
    }

    fn wanted(&mut self, most: usize) -> Option<usize> {
        let next = usual_logs_len(self.pieces.next_len());
        (!self.pieces.is_done()).then(|| self.usual.min(most).max(next))
    }

    fn is_divisible(&self) -> bool {
        false
    }

    fn write(&mut self, space: &mut [u8], most: usize) -> Result<BodyPart, Full> {
        let logs = self.pieces.write(space, most)?;
        let (bytes, items, untranslatable) = (logs.bytes, logs.records, logs.untranslatable);
        Ok(BodyPart { bytes, enclosing: 0, items, booked: items, untranslatable })
    }

    fn pass_over(&mut self) -> BodyPart {
        self.pieces.pass();
        BodyPart { items: 1, booked: 1, ..BodyPart::default() }
    }

    fn place(&self) -> BodyPosition {
        BodyPosition { items: self.pieces.passed(), ..BodyPosition::default() }
    }
}

/// Events of Elastic APM, one signal after the other.
#[derive(Clone)]
pub(crate) struct EventParts<'a> {
    raw: &'a [u8],
    received_at_ns: u64,
    /// The signals whose events are taken.
    taken: Signals,
    stage: usize,
    pieces: intake::EventRequests<'a>,
}

impl<'a> EventParts<'a> {
    /// Those of the signals `taken`.
    pub(crate) fn new(raw: &'a [u8], received_at_ns: u64, taken: Signals, from: &BodyPosition) -> Self {
        let mut events = EventParts::at(raw, received_at_ns, taken, from.stage);
        events.pieces.go_to(from.events);
        events
    }

    fn at(raw: &'a [u8], received_at_ns: u64, taken: Signals, stage: usize) -> Self {
        let (_, signal) = stage_signals(stage);
        EventParts {
            raw,
            received_at_ns,
            taken,
            stage,
            pieces: intake::EventRequests::new(raw, received_at_ns, signal),
        }
    }
}

impl BodyParts for EventParts<'_> {
    const IS_EXACT: bool = false;

    fn signal(&self) -> Signal {
        stage_signals(self.stage).0
    }

    fn wanted(&mut self, most: usize) -> Option<usize> {
        while !self.taken.contains(self.signal()) || self.pieces.is_done() {
            if self.stage + 1 >= SIGNALS.len() {
                return None;
            }
            *self = EventParts::at(self.raw, self.received_at_ns, self.taken, self.stage + 1);
        }
        let next = intake::usual_len(self.pieces.next_len());
        Some(intake::usual_len(self.raw.len()).min(most).max(next))
    }

    fn is_divisible(&self) -> bool {
        false
    }

    fn write(&mut self, space: &mut [u8], most: usize) -> Result<BodyPart, Full> {
        let portion = self.pieces.write(space, most)?;
        let intake::Request { bytes, events, items, enclosing } = portion;
        Ok(BodyPart { bytes, enclosing, items, booked: events, untranslatable: 0 })
    }

    fn pass_over(&mut self) -> BodyPart {
        let booked = u64::from(self.pieces.pass_over());
        BodyPart { items: booked, booked, ..BodyPart::default() }
    }

    fn place(&self) -> BodyPosition {
        BodyPosition { stage: self.stage, events: self.pieces.place(), ..BodyPosition::default() }
    }
}

/// The signal of a stage.
fn stage_signals(stage: usize) -> (Signal, WireSignal) {
    SIGNALS.get(stage).copied().unwrap_or((Signal::Logs, WireSignal::Logs))
}

/// Series of remote write.
#[derive(Clone)]
pub(crate) struct SampleParts<'a> {
    pieces: RemoteWritePieces<'a>,
    /// How long all of them are, about.
    usual: usize,
}

impl<'a> SampleParts<'a> {
    pub(crate) fn new(mut pieces: RemoteWritePieces<'a>, usual: usize, from: &BodyPosition) -> Self {
        pieces.skip_to(from.series);
        SampleParts { pieces, usual }
    }
}

impl BodyParts for SampleParts<'_> {
    const IS_EXACT: bool = false;

    fn signal(&self) -> Signal {
        Signal::Metrics
    }

    fn wanted(&mut self, most: usize) -> Option<usize> {
        (!self.pieces.is_done()).then(|| self.usual.min(most))
    }

    fn is_divisible(&self) -> bool {
        false
    }

    fn write(&mut self, space: &mut [u8], most: usize) -> Result<BodyPart, Full> {
        let done = self.pieces.write(space, most)?;
        Ok(BodyPart {
            bytes: done.bytes,
            enclosing: 0,
            items: done.points,
            booked: done.points + done.exemplars,
            untranslatable: done.dropped + done.dropped_exemplars,
        })
    }

    fn pass_over(&mut self) -> BodyPart {
        let mut done = OtlpTranslation::default();
        let booked = self.pieces.skip_value(&mut done);
        let untranslatable = done.dropped + done.dropped_exemplars;
        BodyPart { items: booked.min(1), booked, untranslatable, ..BodyPart::default() }
    }

    fn place(&self) -> BodyPosition {
        BodyPosition { series: self.pieces.position(), ..BodyPosition::default() }
    }
}
