//! Checks a received body and prepares it for the journal.

use super::browser::BrowserClient;
use super::refused_lines::RefusedLines;
use super::request_head::{Events, sniffed};
use super::{AnonymousAgents, ElasticApm, agents};
use crate::body::{Inspection, InspectionError, LARGE, Received, decode};
use tidegate_admission::{DecodeBuffer, Gate, Permit, Rejection, Size};
use tidegate_arena::Share;
use tidegate_journal::{Encoding, Protocol as Layout, Signal};
use tidegate_ledger::{Counts, Refusal, Signal as Booked};
use tidegate_wire::intake;

/// The expected expansion of a long body: agents' lines are similar, and expand about tenfold.
const MOST_RATIO: usize = 256;
/// The threshold of a long body.
const LONG: usize = 8 << 20;

const UNHEARD: &str =
    "without credentials only browser agents are accepted; see `sources.elastic_apm.rum.anonymous_agents`\n";

/// The result of a body.
pub(super) enum BodyVerdict {
    /// This is for the journal.
    Useful(Received, Content),
    /// Nothing of it can be used, and this is to be said.
    Useless(Box<RefusedLines>),
}

/// How many events of each signal there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Items {
    pub(super) traces: u32,
    pub(super) metrics: u32,
    pub(super) logs: u32,
}

impl Items {
    /// Those that were counted; nothing where they are more than a record can have.
    fn of(counts: &intake::Counts) -> Option<Items> {
        let count = |events: u64| u32::try_from(events).ok();
        count(counts.events)?;
        Some(Items {
            traces: count(counts.traces)?,
            metrics: count(counts.metrics)?,
            logs: count(counts.logs)?,
        })
    }

    /// All of them.
    pub(super) fn all(self) -> u32 {
        self.traces.saturating_add(self.metrics).saturating_add(self.logs)
    }

    /// The signal of the record: theirs, if they are of one.
    pub(super) fn signal(self) -> Signal {
        match (self.traces, self.metrics, self.logs) {
            (_, 0, 0) => Signal::Traces,
            (0, _, 0) => Signal::Metrics,
            (0, 0, _) => Signal::Logs,
            _ => Signal::Events,
        }
    }

    /// The ledger's entry for a body of `bytes` received bytes.
    pub(super) fn counts(self, bytes: u64) -> Counts {
        let traces = Counts::of(Booked::Traces, self.traces.into(), bytes);
        traces.and(Booked::Metrics, self.metrics.into()).and(Booked::Logs, self.logs.into())
    }
}

/// The contents of a checked body.
pub(super) struct Content {
    pub(super) items: Items,
    /// Lines that were refused.
    pub(super) refused: u64,
    pub(super) raw_len: u32,
    /// The length in which it came.
    pub(super) as_sent: usize,
    pub(super) encoding: Encoding,
    /// The report on refused lines, if there are any.
    pub(super) report: Option<Box<RefusedLines>>,
}

impl ElasticApm {
    /// Checks the body, decompressed in memory of its own, which is free again on return.
    pub(super) async fn inspect(
        &self,
        (gate, passage): (&Gate, &Permit),
        (form, browser): (Events, Option<BrowserClient>),
        mut body: Received,
    ) -> Result<BodyVerdict, Rejection> {
        let encoding = form.encoding.unwrap_or_else(|| sniffed(body.bytes()));
        let most = self.most(gate, encoding, body.range.len());
        let inspection = Inspection { gate, passage, pool: &self.pool, encoding, most, large: LARGE };
        let mut memory = inspection.begin(&body).await?;
        let stranger = form.stranger;
        let checked = inspection.here(&mut body, &mut memory, |body, room, most| {
            self.check(gate, (encoding, stranger, browser.as_ref()), body, room, most)
        });
        if let Some(checked) = checked {
            return checked.map(|checked| checked.of(body));
        }
        let (source, its_gate) = (self.clone(), gate.clone());
        let check = move |body: &mut Received, room: Option<&mut DecodeBuffer>, most| {
            source.check(&its_gate, (encoding, stranger, browser.as_ref()), body, room, most)
        };
        let (body, checked) = inspection.in_pool(body, memory, check).await?;
        Ok(checked.of(body))
    }

    /// Decompresses the body into `room` and checks it. Where lines are refused, the body becomes one without them; that
    /// of a browser, one that says who sent it. `most` bounds what it may decompress to.
    fn check(
        &self,
        gate: &Gate,
        (encoding, stranger, browser): (Encoding, bool, Option<&BrowserClient>),
        body: &mut Received,
        mut room: Option<&mut DecodeBuffer>,
        most: usize,
    ) -> Result<Checked, InspectionError> {
        let as_sent = body.range.len();
        let raw = match &mut room {
            None => body.bytes(),
            Some(room) => {
                decode::decode(gate, encoding, body, room, most)?;
                &***room
            }
        };
        let raw_len = raw.len();
        let size = match (encoding, browser) {
            // It is journalled decompressed, and longer.
            (_, Some(browser)) => {
                let kept = raw_len.saturating_add(browser.member().len()).saturating_add(1);
                Size { kept, decoded: 0, item: 0 }
            }
            (Encoding::Identity, None) => Size { kept: raw_len, decoded: 0, item: 0 },
            _ => Size { kept: as_sent, decoded: raw_len, item: 0 },
        };
        // Of which signals it is, is known when all of it was read.
        gate.check_deliverable(Layout::Intake, Signal::Events, size)?;
        if stranger && !self.is_heard(raw) {
            return Err(Rejection::new(Refusal::Forbidden, UNHEARD).into());
        }
        let mut report = None::<Box<RefusedLines>>;
        let found = intake::check(raw, self.limits.max_event, |line, error| {
            let line = raw.get(line).unwrap_or_default();
            report.get_or_insert_default().add(error, line);
        });
        let counts = match found {
            Ok(counts) => counts,
            Err(refused) => {
                let mut report = Box::<RefusedLines>::default();
                report.add(refused.error, raw.get(refused.line).unwrap_or_default());
                return Ok(Checked::Useless(report));
            }
        };
        let items = Items::of(&counts).ok_or_else(|| Rejection::too_large(self.limits.max_body))?;
        let mut content =
            Content { items, refused: counts.refused, raw_len: 0, as_sent, encoding, report: None };
        let mut kept = raw_len;
        let is_cut = report.is_some();
        if let Some(mut report) = report {
            report.accepted = counts.events;
            if items.all() == 0 {
                return Ok(Checked::Useless(report));
            }
            content.report = Some(report);
        }
        if items.all() > 0 && (is_cut || browser.is_some()) {
            kept = self.cut(gate, body, (is_cut, browser), room)?;
            content.encoding = Encoding::Identity;
        }
        let item = counts.largest_item + browser.map_or(0, |browser| browser.member().len() + 1);
        let size = match content.encoding {
            Encoding::Identity => Size { kept, decoded: 0, item },
            _ => Size { kept: as_sent, decoded: kept, item },
        };
        gate.check_deliverable(Layout::Intake, items.signal(), size)?;
        content.raw_len = u32::try_from(kept).map_err(|_| Rejection::too_large(self.limits.max_body))?;
        Ok(Checked::Useful(content))
    }

    /// Whether the agent that a body says it is of needs no credentials.
    fn is_heard(&self, raw: &[u8]) -> bool {
        let Some(AnonymousAgents(agents)) = &self.strangers else { return false };
        let name = agents::name_of(raw);
        name.is_some_and(|name| agents.iter().any(|agent| agent.as_bytes() == name))
    }

    /// Takes the lines out of a body that were refused, and puts in who sent it; what was decompressed becomes the body.
    /// Returns how long that is.
    fn cut(
        &self,
        gate: &Gate,
        body: &mut Received,
        (is_cut, browser): (bool, Option<&BrowserClient>),
        room: Option<&mut DecodeBuffer>,
    ) -> Result<usize, InspectionError> {
        let longest = self.limits.max_event;
        let cut = |raw: &mut [u8]| if is_cut { intake::retain_valid(raw, longest) } else { raw.len() };
        let in_place = room.is_none();
        let decode = room.as_deref().map_or(0, DecodeBuffer::charged);
        let (raw, kept): (&[u8], _) = match room {
            Some(room) => {
                let kept = cut(room);
                (&**room, kept)
            }
            None => {
                let raw = body.window.get_mut(body.range.clone()).unwrap_or_default();
                let kept = cut(raw);
                (raw, kept)
            }
        };
        if in_place && browser.is_none() {
            body.range.end = body.range.start.saturating_add(kept);
            return Ok(kept);
        }
        let raw = raw.get(..kept).unwrap_or_default();
        let at = browser.and_then(|_| intake::metadata_end(raw)).unwrap_or(kept);
        let (before, after) = raw.split_at_checked(at).unwrap_or((raw, &[]));
        let parts = match browser.filter(|_| !after.is_empty()) {
            Some(browser) => [before, b",", browser.member(), after],
            None => [before, after, &[], &[]],
        };
        let len = parts.iter().map(|part| part.len()).sum();
        // Holding decode memory, nobody waits for more.
        let window = self.arena.try_window(Share::Ingest, len).and_then(|mut window| {
            for part in parts {
                window.append(part)?;
            }
            Ok(window)
        });
        let ingest = body.window.charged().saturating_add(len);
        let window = window.map_err(|refused| gate.memory_rejection(refused, ingest, decode, kept / 2))?;
        *body = Received { range: 0..window.len(), window };
        Ok(len)
    }

    /// The most bytes that a body of `as_sent` bytes may decompress to now.
    fn most(&self, gate: &Gate, encoding: Encoding, as_sent: usize) -> usize {
        let most = self.limits.max_body.min(gate.most_decoded());
        match encoding {
            Encoding::Identity => most,
            _ => most.min(as_sent.saturating_mul(MOST_RATIO).max(LONG)),
        }
    }
}

/// A verdict without the body that it is about.
enum Checked {
    Useful(Content),
    Useless(Box<RefusedLines>),
}

impl Checked {
    fn of(self, body: Received) -> BodyVerdict {
        match self {
            Checked::Useful(content) => BodyVerdict::Useful(body, content),
            Checked::Useless(report) => BodyVerdict::Useless(report),
        }
    }
}
