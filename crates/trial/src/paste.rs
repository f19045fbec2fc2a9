//! Reads what a person pastes: requests of OTLP/JSON, items of the sink `http`, or series; and says by line what cannot be read.

use crate::items::encode;
use crate::series::encode as encode_series;
use serde::de::IgnoredAny;
use serde_json::{Deserializer, Value as Json};
use tidegate_pipeline::Format;
use tidegate_wire::otlp::Signal;
use tidegate_wire::otlp::json::{max_len, translate};
use tidegate_wire::remote_write::Version;

/// The most items that are tried; later ones are left out, which is said.
pub const MOST_ITEMS: usize = 1000;

/// Pasted items, as bodies.
#[derive(Debug, Default)]
pub struct Pasted {
    /// The bodies in the order of the text.
    pub bodies: Vec<PastedBody>,
    /// The parts that could not be read.
    pub problems: Vec<PasteProblem>,
}

/// A body, and where its items stand in the text.
#[derive(Debug)]
pub struct PastedBody {
    /// The form of the body.
    pub format: Format,
    /// The body of a request.
    pub body: Vec<u8>,
    /// The lines of the items, counted from 1; a request of several items has one line for all of them.
    pub lines: Vec<usize>,
}

/// A part of the text that is no item.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PasteProblem {
    /// Its line, counted from 1.
    pub line: usize,
    /// The error.
    pub message: String,
}

/// Reads `text`. Nothing in it is lost without a word: it is in a body or among the problems.
#[must_use]
pub fn read(text: &str) -> Pasted {
    let mut reader =
        PasteReader { text, pasted: Pasted::default(), items: Vec::new(), signal: None, count: 0 };
    if is_json(text) {
        reader.json()
    } else {
        reader.series()
    }
    reader.flush();
    let mut pasted = reader.pasted;
    if reader.count > MOST_ITEMS {
        let message = format!("these are {} items; the first {MOST_ITEMS} of them are tried", reader.count);
        pasted.problems.push(PasteProblem { line: 1, message });
    }
    pasted
}

/// Whether the text is JSON: `{"a.name", b="c"}` and `{a="b"}` are series.
fn is_json(text: &str) -> bool {
    let text = text.trim_start();
    let Some(inner) = text.strip_prefix('{').map(str::trim_start) else { return text.starts_with('[') };
    let Some(string) = inner.strip_prefix('"') else { return inner.is_empty() || inner.starts_with('}') };
    let mut is_escaped = false;
    let end = string.find(|letter| {
        let is_end = letter == '"' && !is_escaped;
        is_escaped = letter == '\\' && !is_escaped;
        is_end
    });
    let behind = end.and_then(|end| string.get(end + 1..)).map(str::trim_start);
    behind.is_none_or(|behind| behind.starts_with(':'))
}

struct PasteReader<'a> {
    text: &'a str,
    pasted: Pasted,
    /// Neighbouring items of one signal, each with its line: they will be one request.
    items: Vec<(usize, Json)>,
    signal: Option<Signal>,
    count: usize,
}

const REQUESTS: [(&str, Signal); 3] =
    [("resourceSpans", Signal::Traces), ("resourceMetrics", Signal::Metrics), ("resourceLogs", Signal::Logs)];

impl PasteReader<'_> {
    fn series(&mut self) {
        let (mut series, mut lines) = (Vec::new(), Vec::new());
        for (at, line) in self.text.lines().enumerate() {
            let line = line.trim();
            // `# TYPE` and its like, of a page of metrics.
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match encode_series([line]) {
                Ok(_) if self.has_room() => {
                    series.push(line);
                    lines.push(at + 1);
                }
                Ok(_) => {}
                Err(error) => self.refuse(at + 1, error.why),
            }
        }
        // Each of them was read alone.
        if let Ok(body) = encode_series(series)
            && !lines.is_empty()
        {
            self.pasted.bodies.push(PastedBody { format: Format::RemoteWrite(Version::V1), body, lines });
        }
    }

    fn json(&mut self) {
        let mut at = 0;
        while let Some(rest) = self.text.get(at..).filter(|rest| !rest.trim_start().is_empty()) {
            let start = at + rest.len() - rest.trim_start().len();
            let rest = self.text.get(start..).unwrap_or_default();
            let line = self.line(start);
            let mut values = Deserializer::from_str(rest).into_iter::<IgnoredAny>();
            match values.next() {
                Some(Ok(_)) => {
                    let end = start + values.byte_offset();
                    self.value(line, self.text.get(start..end).unwrap_or_default());
                    // Commas between objects that were copied out of a list.
                    at = end + usize::from(self.text.get(end..).is_some_and(|rest| rest.starts_with(',')));
                }
                Some(Err(error)) => {
                    self.refuse(
                        line + error.line().saturating_sub(1),
                        format!("this is no JSON: {}", reason(&error)),
                    );
                    // The next line that may be the beginning of another.
                    let next = rest.match_indices("\n{").next().map(|(newline, _)| start + newline + 1);
                    at = next.unwrap_or(self.text.len());
                }
                None => break,
            }
        }
    }

    fn value(&mut self, line: usize, text: &str) {
        let value: Json = match serde_json::from_str(text) {
            Ok(value) => value,
            Err(error) => return self.refuse(line, format!("this is no JSON: {}", reason(&error))),
        };
        match &value {
            Json::Array(values) => {
                for value in values {
                    self.item(line, value, &value.to_string());
                }
            }
            value => self.item(line, value, text),
        }
    }

    fn item(&mut self, line: usize, value: &Json, text: &str) {
        if let Some((_, signal)) = REQUESTS.iter().find(|(name, _)| value.get(name).is_some()) {
            self.flush();
            return self.request(line, *signal, text);
        }
        if value.get("at").is_some() && value.get("received").is_some() {
            let words = "this is a line of `tidegate tap`, which shows items in short: take some here, or paste whole ones";
            return self.refuse(line, words.to_owned());
        }
        let signal = match value.get("signal").and_then(Json::as_str) {
            Some("traces") => Signal::Traces,
            Some("metrics") => Signal::Metrics,
            Some("logs") => Signal::Logs,
            Some(other) => {
                return self.refuse(
                    line,
                    format!("there is no signal `{other:.40}`: write logs, traces or metrics"),
                );
            }
            None => likely_signal(value),
        };
        if let Err(error) = encode(signal, std::slice::from_ref(value)) {
            return self.refuse(line, error.why);
        }
        if !self.has_room() {
            return;
        }
        if self.signal != Some(signal) {
            self.flush();
            self.signal = Some(signal);
        }
        self.items.push((line, value.clone()));
    }

    fn request(&mut self, line: usize, signal: Signal, text: &str) {
        let mut body = vec![0; max_len(text.as_bytes())];
        match translate(signal, text.as_bytes(), &mut body) {
            Ok(translated) => {
                if let Some(error) = translated.errors.first() {
                    self.refuse(line, format!("a part of this request cannot be read: {error}"));
                }
                body.truncate(translated.len);
            }
            Err(error) => return self.refuse(line, format!("this is no OTLP/JSON request: {error}")),
        }
        let items = crate::items::decode(signal, &body).len();
        let had_room = self.count < MOST_ITEMS;
        self.count += items;
        if had_room {
            self.pasted.bodies.push(PastedBody {
                format: Format::Otlp(signal),
                body,
                lines: vec![line; items],
            });
        }
    }

    /// Makes a body of the items so far.
    fn flush(&mut self) {
        let (Some(signal), false) = (self.signal, self.items.is_empty()) else { return };
        let (lines, items): (Vec<usize>, Vec<Json>) = std::mem::take(&mut self.items).into_iter().unzip();
        match encode(signal, &items) {
            Ok(body) => self.pasted.bodies.push(PastedBody { format: Format::Otlp(signal), body, lines }),
            Err(error) => self.refuse(lines.get(error.item).copied().unwrap_or(1), error.why),
        }
    }

    fn has_room(&mut self) -> bool {
        self.count += 1;
        self.count <= MOST_ITEMS
    }

    fn refuse(&mut self, line: usize, message: String) {
        self.pasted.problems.push(PasteProblem { line, message });
    }

    fn line(&self, at: usize) -> usize {
        self.text.get(..at).unwrap_or_default().matches('\n').count() + 1
    }
}

/// The error without its place, which is given in lines of the whole text.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.split(" at line ").next().unwrap_or_default().to_owned()
}

/// The signal of an item that does not say it.
fn likely_signal(item: &Json) -> Signal {
    let has = |names: &[&str]| names.iter().any(|name| item.get(name).is_some());
    if has(&["value", "type", "count", "bucket_counts", "quantile_values", "unit"]) {
        Signal::Metrics
    } else if has(&["name", "kind", "start_time", "end_time", "parent_span_id", "status", "events", "links"])
    {
        Signal::Traces
    } else {
        Signal::Logs
    }
}

#[cfg(test)]
mod tests;
