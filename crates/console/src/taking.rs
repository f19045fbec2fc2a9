//! Takes the next items received, as lines that a form takes.

use crate::human::Plural;
use crate::page_buffer::PageBuffer;
use crate::trial::LONGEST_ITEMS;
use std::time::Duration;
use tidegate_arena::Arena;
use tidegate_journal::{Meta, Protocol, Signal};
use tidegate_tap::{RecordReader, Tap, TapFilter};
use tidegate_wire::otlp;
use tidegate_wire::otlp::json::{Encoder, Layout, Next};
use tidegate_wire::remote_write::{Series, Symbols, Version, view};

/// How long to wait for a request.
const WAIT: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// So many items are taken.
const MOST: usize = 10;
/// So much is written at a time. A longer text ends the taking.
const STEP: usize = 64 << 10;

/// The most memory for the symbols of a request, as a tap has it.
const MOST_SYMBOLS: usize = 256 << 10;

/// Items that were taken; none where that is not possible, and in words what was done.
pub(crate) struct TakenItems {
    pub(crate) page: Option<PageBuffer>,
    pub(crate) words: String,
}

/// Waits for requests of `signal`, and takes their first items.
pub(crate) async fn take(tap: &Tap, signal: Signal, arena: &Arena) -> TakenItems {
    let without = |words: String| TakenItems { page: None, words };
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
    let taken = taken(&reader, signal, page).await;
    drop(reader);
    tap.end("pipelines");
    taken
}

async fn taken(reader: &RecordReader, signal: Signal, page: PageBuffer) -> TakenItems {
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
    TakenItems { page: (lines.items > 0).then_some(lines.page), words }
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

    /// A series as Prometheus shows it.
    fn series(&mut self, series: &Series<'_>) {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (mut name, mut labels) = (String::new(), Vec::new());
        for label in series.labels() {
            match label.name {
                b"__name__" => name = text(label.value),
                _ => labels.push(format!("{}={:?}", quoted(text(label.name)), text(label.value))),
            }
        }
        let name = quoted(name);
        let is_inside = name.starts_with('"');
        if is_inside {
            labels.insert(0, name.clone());
        }
        let name = if is_inside { "" } else { name.as_str() };
        let line =
            if labels.is_empty() { format!("{name}\n") } else { format!("{name}{{{}}}\n", labels.join(",")) };
        if self.page.len() + line.len() <= LONGEST_ITEMS && self.page.bytes(line.as_bytes()) {
            self.items += 1;
        }
    }
}

/// A name, in quotes where it needs them.
fn quoted(name: String) -> String {
    let is_start = |letter: char| letter.is_ascii_alphabetic() || letter == '_' || letter == ':';
    let is_plain = name.chars().all(|letter| is_start(letter) || letter.is_ascii_digit());
    if name.is_empty() || is_plain && name.starts_with(is_start) { name } else { format!("{name:?}") }
}
