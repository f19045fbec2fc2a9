//! Captures the next items received, as lines for a form.

use crate::human::Plural;
use crate::page_buffer::PageBuffer;
use crate::trial::LONGEST_ITEMS;
use std::fmt::{self, Write as _};
use std::time::Duration;
use tidegate_arena::Arena;
use tidegate_journal::{Meta, Protocol, Signal};
use tidegate_tap::{RecordReader, Tap, TapFilter};
use tidegate_wire::otlp;
use tidegate_wire::otlp::json::{Encoder, Layout, Next};
use tidegate_wire::remote_write::{Series, Symbols, Version, view, write_series};

/// How long to wait for a request.
const WAIT: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// The most items of a capture.
const MOST: usize = 10;
/// Bytes written at a time. A longer text ends the capture.
const STEP: usize = 64 << 10;

/// The most memory for the symbols of a request, as a tap has it.
const MOST_SYMBOLS: usize = 256 << 10;

/// Captured items, none where that is not possible; and a sentence for the person who asked.
pub(crate) struct CapturedItems {
    pub(crate) page: Option<PageBuffer>,
    pub(crate) words: String,
}

/// Waits for requests of `signal`, and captures their first items.
pub(crate) async fn capture(tap: &Tap, signal: Signal, arena: &Arena) -> CapturedItems {
    let without = |words: String| CapturedItems { page: None, words };
    let filter = TapFilter {
        id: "pipelines".to_owned(),
        source: Some("*".to_owned()),
        signal: Some(signal),
        ..TapFilter::default()
    };
    let reader = match tap.open(filter).await {
        Ok(reader) => reader,
        Err(refused) => return without(format!("Nothing was taken: {refused}.")),
    };
    let mut left = WAIT;
    while !left.is_zero() && reader.waiting() == 0 && !reader.is_over() {
        tokio::time::sleep(POLL_INTERVAL).await;
        left = left.saturating_sub(POLL_INTERVAL);
    }
    let Ok(page) = PageBuffer::take(arena) else {
        return without(
            "Nothing was taken: the console's memory for concurrent responses is used up.".to_owned(),
        );
    };
    let captured = captured(&reader, signal, page).await;
    drop(reader);
    tap.end("pipelines");
    captured
}

async fn captured(reader: &RecordReader, signal: Signal, page: PageBuffer) -> CapturedItems {
    let mut lines = LineWriter { page, items: 0, form: None };
    let mut why = None;
    while lines.items < MOST
        && let Some(read) = reader.read_next(|meta, body| lines.record(meta, body))
    {
        why = read.err().or(why);
        tokio::task::yield_now().await;
    }
    let words = match (lines.items, why) {
        (0, Some(why)) => format!("Nothing was taken: {why}."),
        (0, None) => format!("No {} were received within {} seconds.", signal.name(), WAIT.as_secs()),
        (items, _) => format!("Took {}.", Plural(items as u64, "item")),
    };
    CapturedItems { page: (lines.items > 0).then_some(lines.page), words }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Series,
}

struct LineWriter {
    page: PageBuffer,
    items: usize,
    /// That of the first record; a text has one.
    form: Option<Form>,
}

impl LineWriter {
    fn record(&mut self, meta: &Meta, body: Result<&[u8], &'static str>) -> Result<(), &'static str> {
        let raw = body?;
        let (form, version) = match meta.protocol {
            Protocol::Otlp => (Form::Json, None),
            Protocol::RemoteWrite1 => (Form::Series, Some(Version::V1)),
            Protocol::RemoteWrite2 => (Form::Series, Some(Version::V2)),
            _ => return Err("pipelines leave requests of this protocol as they are"),
        };
        if *self.form.get_or_insert(form) != form {
            return Ok(());
        }
        let before = self.items;
        match version {
            None => self.otlp(meta.signal, raw),
            Some(Version::V2) if Symbols::bytes_for(raw) > MOST_SYMBOLS => {
                return Err("the request has too many symbols");
            }
            Some(version) => {
                let mut symbols = Symbols::new();
                let request = view(version, raw, &mut symbols).map_err(|_| "the body is damaged")?;
                for series in request.series().take(MOST.saturating_sub(self.items)) {
                    self.series(&series);
                }
            }
        }
        if self.items > before { Ok(()) } else { Err("the items are too long to be shown in a form") }
    }

    /// Items as the sink `http` writes them.
    fn otlp(&mut self, signal: Signal, raw: &[u8]) {
        let signal = match signal {
            Signal::Metrics => otlp::Signal::Metrics,
            Signal::Logs => otlp::Signal::Logs,
            Signal::Traces => otlp::Signal::Traces,
            Signal::Events | Signal::Profiles => return,
        };
        let mut encoder = Encoder::new(signal, raw, Layout::Lines);
        let mut space = vec![0; STEP];
        // The end of the last whole item.
        let mut end = self.page.len();
        loop {
            let progress = encoder.write(&mut space);
            let from = self.page.len();
            let has_room = self.page.bytes(space.get(..progress.written).unwrap_or_default());
            for (at, byte) in self.page.since(from).iter().enumerate() {
                if *byte == b'\n' && self.items < MOST && from + at < LONGEST_ITEMS {
                    (end, self.items) = (from + at + 1, self.items + 1);
                }
            }
            let is_stuck = progress.next == Next::Space && progress.written == 0;
            if progress.next == Next::Done
                || !has_room
                || is_stuck
                || self.items >= MOST
                || self.page.len() > LONGEST_ITEMS
            {
                break;
            }
        }
        self.page.truncate(end);
    }

    /// A series as Prometheus shows it; nothing of one that does not fit.
    fn series(&mut self, series: &Series<'_>) {
        let before = self.page.len();
        let mut line = SeriesLine(&mut self.page);
        if write_series(series, &mut line).and_then(|()| line.write_str("\n")).is_ok() {
            self.items += 1;
        } else {
            self.page.truncate(before);
        }
    }
}

/// Writes straight into the page, whose memory is charged, and refuses what is beyond the longest items of a form: the text of a
/// series can be a thousand times as long as the request.
struct SeriesLine<'a>(&'a mut PageBuffer);

impl fmt::Write for SeriesLine<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST_ITEMS { Err(fmt::Error) } else { self.0.write_str(text) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Console;
    use tidegate_journal::{Encoding, Tenant};

    fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
        let (mut out, mut length) = (vec![number << 3 | 2], bytes.len());
        while length >= 0x80 {
            out.push((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        out.push(length as u8);
        [out, bytes.to_vec()].concat()
    }

    /// A short request whose text is 65 MB to 260 MB long takes no more memory than any other, and the next series is still taken.
    #[test]
    fn a_series_of_any_length_takes_no_memory() {
        let long = "\u{1}".repeat(65_000);
        let symbols = ["", "__name__", "long", "k", &long, "short", "a\u{1}\"b"];
        let symbols = symbols.map(|symbol| field(4, symbol.as_bytes())).concat();
        let series = |references: &[u8]| field(5, &field(1, references));
        let long = series(&[&[1, 2][..], &[3, 4].repeat(1_000)].concat());
        let body = [symbols, long.clone(), long, series(&[1, 5, 3, 6])].concat();
        let meta = Meta {
            tenant: Tenant::NONE,
            signal: Signal::Metrics,
            protocol: Protocol::RemoteWrite2,
            encoding: Encoding::Identity,
            items: 3,
            raw_len: u32::try_from(body.len()).unwrap(),
            received_at_ns: 1,
        };
        let arena = Console::reserve().unwrap();
        let mut lines = LineWriter { page: PageBuffer::take(&arena).unwrap(), items: 0, form: None };
        let heap = allocation_counter::measure(|| lines.record(&meta, Ok(&body)).unwrap());
        assert!(heap.bytes_max <= 4 << 10, "{} bytes", heap.bytes_max);
        let held: u64 = arena.usage().shares.iter().map(|share| share.used).sum();
        assert!(held <= 2 * LONGEST_ITEMS as u64, "{held} bytes of pages");
        assert_eq!(lines.items, 1);
        assert_eq!(lines.page.since(0), b"short{k=\"a\\x01\\\"b\"}\n");
    }
}
