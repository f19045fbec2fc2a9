//! Documents of `_bulk` bodies as OTLP log records.
//!
//! | document | log record |
//! |---|---|
//! | `@timestamp` (text, or milliseconds) | time |
//! | `message`, `body.text` | body |
//! | `log.level`, `severity_text`; `severity_number` | severity |
//! | `trace.id`, `trace_id`, `span.id`, `span_id`, if they are ids | ids |
//! | `event_name`, `observed_timestamp` | the same |
//! | `service.name`, also among `resource.attributes` | that of the resource |
//! | any other field, under its dotted name | attribute |
//! | `_index`, `_id` of the action | attributes `elasticsearch.index`, `elasticsearch.id` |
//!
//! Fields may be nested or dotted. A field that comes twice, or has no such value, is an attribute. What nests deeper
//! than [`MAX_DEPTH`] becomes JSON in a text. Where dotted names would say the same again and again, so that they were
//! longer than twice the document, the rest of its objects stay maps.

use crate::intake::name_budget::NameBudget;
use crate::intake::time;
use crate::intake::writer::{AttributeName, MessageWriter, limit};
use tidegate_wire::bulk::{self, Action, Item, Kind};
use tidegate_wire::intake::{Object, Text, Value};
use tidegate_wire::output::Full;

/// How deep fields and values nest.
const MAX_DEPTH: usize = 16;
/// The longest name of a field that means something here.
const MAX_NAME_LEN: usize = 40;

/// The result of a translation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogTranslation {
    /// How many bytes were written.
    pub bytes: usize,
    /// Log records in them.
    pub records: u64,
    /// Items that are no documents: updates, deletions, and what is no JSON.
    pub untranslatable: u64,
}

/// How much room the log records of a body of `raw_len` bytes take, about.
#[must_use]
pub fn usual_logs_len(raw_len: usize) -> usize {
    raw_len.saturating_add(raw_len / 2).saturating_add(1 << 10)
}

/// Writes the documents of the checked `_bulk` body `body` as one request of OTLP logs to the start of `space`. All are
/// observed when they were `received`, in nanoseconds since the Unix epoch. Documents of one service that follow each
/// other have one resource. Nothing is allocated.
///
/// # Errors
/// [`Full`] when there is no room for all of it; what was written then is of no use.
pub fn to_otlp_logs(body: &[u8], received: u64, space: &mut [u8]) -> Result<LogTranslation, Full> {
    let mut pieces = LogRequests::new(body, received);
    let logs = pieces.fill(MessageWriter::whole(space), usize::MAX)?;
    if pieces.is_done() { Ok(logs) } else { Err(Full) }
}

/// The documents of a checked `_bulk` body as requests of OTLP logs, each as large as there is room for. Clones go on by
/// themselves.
#[derive(Debug, Clone)]
pub struct LogRequests<'a> {
    rest: bulk::Items<'a>,
    /// The next item.
    next: Option<Item<'a>>,
    /// How many were passed.
    passed: u64,
    received: u64,
}

impl<'a> LogRequests<'a> {
    /// All documents of `body`, observed when they were `received`, in nanoseconds since the Unix epoch.
    #[must_use]
    pub fn new(body: &'a [u8], received: u64) -> Self {
        let mut pieces = Self { rest: bulk::items(body), next: None, passed: 0, received };
        pieces.next = pieces.following();
        pieces
    }

    /// How many items of the body were passed: written, counted, or skipped.
    #[must_use]
    pub fn passed(&self) -> u64 {
        self.passed
    }

    /// Whether nothing is left.
    #[must_use]
    pub fn is_done(&self) -> bool {
        self.next.is_none()
    }

    /// The length of the next item; 0 where there is none.
    #[must_use]
    pub fn next_len(&self) -> usize {
        self.next.map_or(0, |item| item.bytes.len())
    }

    /// Passes over the next items without counting them, until so many were passed in all.
    pub fn skip_to(&mut self, passed: u64) {
        while self.passed < passed && self.next.is_some() {
            self.pass();
        }
    }

    /// Writes as many documents as there is room for in `most` bytes, or one that is longer, as one request, to the start
    /// of `space`. Items that are no documents are counted as they are passed; it may be that there is nothing else.
    ///
    /// # Errors
    /// [`Full`] when there is no room for the next document.
    pub fn write(&mut self, space: &mut [u8], most: usize) -> Result<LogTranslation, Full> {
        self.fill(MessageWriter::new(space), most)
    }

    fn fill(&mut self, mut out: MessageWriter<'_>, most: usize) -> Result<LogTranslation, Full> {
        let mut logs = LogTranslation::default();
        'groups: while let Some(first) = self.next {
            if !is_document(&first) {
                logs.untranslatable += 1;
                self.pass();
                continue;
            }
            let (before, records) = (out.len(), logs.records);
            let service = service(&first);
            let group = out.open(1);
            let resource = out.open(1);
            if let Some(service) = service {
                out.with_value(1, AttributeName::fixed("service.name"), |out| out.text_field(1, service));
            }
            out.close(resource);
            let scope = out.open(2);
            while let Some(item) =
                self.next.filter(|item| is_document(item) && self::service(item) == service)
            {
                let before_record = out.len();
                record(&item, self.received, &mut out);
                if out.is_full() {
                    out.reset_to(before_record);
                    if logs.records == records {
                        out.reset_to(before);
                    } else {
                        out.close_enclosing(scope);
                        out.close_enclosing(group);
                    }
                    break 'groups;
                }
                if logs.records == 0 {
                    out.limit(limit(most, before_record));
                }
                logs.records += 1;
                self.pass();
            }
            out.close_enclosing(scope);
            out.close_enclosing(group);
        }
        logs.bytes = out.end().ok_or(Full)?;
        if logs == LogTranslation::default() && !self.is_done() { Err(Full) } else { Ok(logs) }
    }

    /// Passes over the next item.
    pub fn pass(&mut self) {
        if self.next.is_some() {
            self.passed += 1;
            self.next = self.following();
        }
    }

    fn following(&mut self) -> Option<Item<'a>> {
        self.rest.next()?.ok()
    }
}

fn is_document(item: &Item<'_>) -> bool {
    matches!(item.action.kind, Kind::Create | Kind::Index) && item.document.is_some() && item.check().is_ok()
}

fn fields<'a>(item: &Item<'a>) -> Option<Object<'a>> {
    Value::of(item.document?).object()
}

/// The name of the service that a document is of.
fn service<'a>(item: &Item<'a>) -> Option<Text<'a>> {
    let fields = fields(item)?;
    let named = |object: Object<'a>| {
        let flat = object.find(b"service.name");
        flat.or_else(|| object.at(&[b"service", b"name"])).and_then(Value::text)
    };
    named(fields).or_else(|| named(fields.at(&[b"resource", b"attributes"])?.object()?))
}

fn record(item: &Item<'_>, received: u64, out: &mut MessageWriter<'_>) {
    let Some(fields) = fields(item) else { return };
    let record = out.open(2);
    let mut known = GivenFields { done: 0, names: NameBudget::of(item.document.unwrap_or_default()) };
    for (name, value) in fields.members() {
        field(&mut [name; MAX_DEPTH], 1, value, &mut known, out);
    }
    if known.is_new(FieldMeaning::Observed) {
        out.fixed64(11, received);
    }
    action(&item.action, out);
    out.close(record);
}

fn action(action: &Action<'_>, out: &mut MessageWriter<'_>) {
    for (name, raw) in [("elasticsearch.index", action.index), ("elasticsearch.id", action.id)] {
        if let Some(raw) = raw {
            out.attribute(6, AttributeName::fixed(name), Value::of(raw));
        }
    }
}

/// The meaning of a field in a log record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FieldMeaning {
    Time,
    Observed,
    Body,
    Level,
    Severity,
    Trace,
    Span,
    Event,
    Service,
}

/// Which of them were given.
struct GivenFields {
    done: u16,
    names: NameBudget,
}

impl GivenFields {
    fn is_new(&mut self, meaning: FieldMeaning) -> bool {
        let bit = 1 << meaning as u16;
        let is_new = self.done & bit == 0;
        self.done |= bit;
        is_new
    }
}

impl FieldMeaning {
    fn of(path: &[Text<'_>]) -> Option<Self> {
        let mut name = [0; MAX_NAME_LEN];
        let mut len = 0;
        for (place, part) in path.iter().enumerate() {
            if place > 0 {
                *name.get_mut(len)? = b'.';
                len += 1;
            }
            let part = part.plain()?;
            name.get_mut(len..len + part.len())?.copy_from_slice(part);
            len += part.len();
        }
        Some(match name.get(..len)? {
            b"@timestamp" => Self::Time,
            b"observed_timestamp" => Self::Observed,
            b"message" | b"body.text" => Self::Body,
            b"log.level" | b"severity_text" => Self::Level,
            b"severity_number" => Self::Severity,
            b"trace.id" | b"trace_id" => Self::Trace,
            b"span.id" | b"span_id" => Self::Span,
            b"event_name" => Self::Event,
            b"service.name" | b"resource.attributes.service.name" => Self::Service,
            _ => return None,
        })
    }
}

/// A field: the first `depth` names of `path` are its own.
fn field<'a>(
    path: &mut [Text<'a>; MAX_DEPTH],
    depth: usize,
    value: Value<'a>,
    known: &mut GivenFields,
    out: &mut MessageWriter<'_>,
) {
    match value {
        Value::Object(object)
            if depth < MAX_DEPTH
                && !object.is_empty()
                && known.names.affords(path.get(..depth).unwrap_or_default(), object) =>
        {
            for (name, value) in object.members() {
                if let Some(place) = path.get_mut(depth) {
                    *place = name;
                }
                field(path, depth + 1, value, known, out);
            }
        }
        value => {
            let path = path.get(..depth).unwrap_or_default();
            let meaning = FieldMeaning::of(path);
            if !meaning.is_some_and(|meaning| meant(meaning, value, known, out)) {
                out.with_value(6, AttributeName { prefix: "", path }, |out| any(value, MAX_DEPTH, out));
            }
        }
    }
}

/// Writes a field that means something, if it is the first and such a value.
fn meant(
    meaning: FieldMeaning,
    value: Value<'_>,
    known: &mut GivenFields,
    out: &mut MessageWriter<'_>,
) -> bool {
    let time = || match value {
        Value::Text(text) => time::of_text(text),
        Value::Number(number) => u64::try_from(number.integer()?).ok()?.checked_mul(1_000_000),
        _ => None,
    };
    match (meaning, value) {
        (FieldMeaning::Time | FieldMeaning::Observed, _) => match time() {
            Some(time) if known.is_new(meaning) => {
                out.fixed64(if meaning == FieldMeaning::Time { 1 } else { 11 }, time)
            }
            _ => return false,
        },
        (FieldMeaning::Body, Value::Text(text)) if known.is_new(meaning) => {
            let body = out.open(5);
            out.text_field(1, text);
            out.close(body);
        }
        (FieldMeaning::Level, Value::Text(text)) if known.is_new(meaning) => {
            if let Some(number) = severity(text)
                && known.is_new(FieldMeaning::Severity)
            {
                out.varint(2, number);
            }
            out.text_field(3, text);
        }
        (FieldMeaning::Severity, Value::Number(number)) => match number.integer() {
            // The number counts, whichever comes first: of two the last does.
            Some(number @ 1..=24) => {
                known.is_new(meaning);
                out.varint(2, number.cast_unsigned());
            }
            _ => return false,
        },
        (FieldMeaning::Trace, Value::Text(text)) => match id::<16>(text) {
            Some(id) if known.is_new(meaning) => out.field(9, &id),
            _ => return false,
        },
        (FieldMeaning::Span, Value::Text(text)) => match id::<8>(text) {
            Some(id) if known.is_new(meaning) => out.field(10, &id),
            _ => return false,
        },
        (FieldMeaning::Event, Value::Text(text)) if known.is_new(meaning) => out.text_field(12, text),
        // The resource has it.
        (FieldMeaning::Service, Value::Text(_)) if known.is_new(meaning) => {}
        _ => return false,
    }
    true
}

/// The fields of an `AnyValue`. A number that is neither of OTLP's stays as it was written.
fn any(value: Value<'_>, depth: usize, out: &mut MessageWriter<'_>) {
    match value {
        Value::Number(number) if number.integer().is_none() && is_whole(number.raw()) => {
            out.field(1, number.raw())
        }
        Value::Array(array) if depth > 0 => {
            let list = out.open(5);
            for value in array.values() {
                let element = out.open(1);
                any(value, depth - 1, out);
                out.close(element);
            }
            out.close(list);
        }
        Value::Object(object) if depth > 0 => {
            let map = out.open(6);
            for (name, value) in object.members() {
                out.with_value(1, AttributeName { prefix: "", path: &[name] }, |out| {
                    any(value, depth - 1, out)
                });
            }
            out.close(map);
        }
        value => out.plain(value),
    }
}

fn is_whole(number: &[u8]) -> bool {
    !number.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'))
}

/// Bytes from as many hexadecimal digits, in small letters as everybody writes them.
fn id<const N: usize>(text: Text<'_>) -> Option<[u8; N]> {
    let text = text.plain().filter(|text| text.len() == 2 * N)?;
    let mut id = [0; N];
    for (byte, digits) in id.iter_mut().zip(text.chunks_exact(2)) {
        let [high, low] = digits else { return None };
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        *byte = value(*high)? << 4 | value(*low)?;
    }
    Some(id)
}

/// OpenTelemetry's number for a level.
fn severity(level: Text<'_>) -> Option<u64> {
    const LEVELS: [(&[u8], u64); 15] = [
        (b"trace", 1),
        (b"debug", 5),
        (b"info", 9),
        (b"information", 9),
        (b"informational", 9),
        (b"notice", 10),
        (b"warn", 13),
        (b"warning", 13),
        (b"error", 17),
        (b"err", 17),
        (b"critical", 21),
        (b"crit", 21),
        (b"fatal", 21),
        (b"alert", 22),
        (b"emergency", 24),
    ];
    let level = level.plain()?;
    LEVELS.iter().find(|(name, _)| level.eq_ignore_ascii_case(name)).map(|(_, number)| *number)
}
