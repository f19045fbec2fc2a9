//! Intake events of Elastic's agents as the documents that Elastic APM makes of them, in the data streams that it
//! puts them into.
//!
//! | event | `processor.event` | data stream |
//! |---|---|---|
//! | transaction, span | `transaction`, `span` | `traces-apm-<ns>`; of browsers and phones `traces-apm.rum-<ns>` |
//! | error | `error` | `logs-apm.error-<ns>` |
//! | log | `log` | `logs-apm.app.<service>-<ns>` |
//! | metricset of a breakdown, or of metrics that agents know | `metric` | `metrics-apm.internal-<ns>` |
//! | other metricset | `metric` | `metrics-apm.app.<service>-<ns>` |

mod frames;
mod paths;

use super::ecs::Service;
use super::fields::Said;
use super::page::Sheet;
use super::pen::{Kind, Pen, Time};
use super::stream::Wishes;
use super::{Place, Settings, Written};
use frames::Errors;
use paths::{To, is_internal};
use tidegate_wire::intake::{self, Event, Object, Value};
use tidegate_wire::otlp::AnyValue;
use tidegate_wire::output::Full;
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// How long a path of names may be that is known.
const LONGEST_PATH: usize = 96;

pub(super) fn intake(
    raw: &[u8],
    from: Place,
    prefix: &str,
    settings: &Settings<'_>,
    sheet: &mut impl Sheet,
) -> Result<Written, Full> {
    let mut pen = Pen::new(sheet, prefix, from, settings);
    let mut agent = Agent::default();
    let mut count = 0;
    pen.fields.clear();
    for event in intake::events(raw) {
        if event.kind == intake::Kind::Metadata {
            agent = pen.metadata(event.fields());
            continue;
        }
        count += 1;
        if count <= from.item {
            continue;
        }
        if pen.intake_event(agent, event).is_err() {
            return pen.finished(true);
        }
        pen.next(count);
    }
    pen.finished(false)
}

/// What of the metadata matters for more than its fields.
#[derive(Debug, Clone, Copy, Default)]
struct Agent<'a> {
    service: &'a [u8],
    is_rum: bool,
}

/// An event that is being looked at, and what of it matters for more than its fields.
struct Seen<'a> {
    to: fn(&[u8]) -> Option<To>,
    keeps_unknown: bool,
    path: [u8; LONGEST_PATH],
    time: Time<'a>,
    service: &'a [u8],
    exception: Option<Object<'a>>,
    /// Values of fields that are written by their own functions, by their number.
    lists: [Value<'a>; 4],
    listed: usize,
}

/// Where a field of an event goes, by its path.
type Paths = fn(&[u8]) -> Option<To>;

impl<'a, S: Sheet> Pen<'_, 'a, '_, S> {
    /// Puts the fields that all events have.
    fn metadata(&mut self, metadata: Object<'a>) -> Agent<'a> {
        self.fields.clear();
        let text = |path: &[&[u8]]| metadata.at(path).and_then(Value::text);
        let detected = text(&[b"system", b"detected_hostname"]).or_else(|| text(&[b"system", b"hostname"]));
        let configured = text(&[b"system", b"configured_hostname"]).or(detected);
        // Stands for the name of a node that was given none.
        if let Some(node) = text(&[b"system", b"container", b"id"]).or(configured) {
            self.fields.put(b"service.node.name", Said::Escaped(node.raw()));
        }
        if let Some(name) = detected.or(configured) {
            self.fields.put(b"host.hostname", Said::Escaped(name.raw()));
        }
        if let Some(name) = configured {
            self.fields.put(b"host.name", Said::Escaped(name.raw()));
        }
        self.look(metadata, &mut Seen::new(paths::of_metadata, &[]));
        self.fields.end_resource();
        let agent = text(&[b"service", b"agent", b"name"]).and_then(|name| name.plain()).unwrap_or_default();
        Agent {
            service: text(&[b"service", b"name"]).and_then(|name| name.plain()).unwrap_or_default(),
            is_rum: matches!(agent, b"rum-js" | b"js-base" | b"iOS/swift"),
        }
    }

    fn intake_event(&mut self, agent: Agent<'a>, event: Event<'a>) -> Result<(), Full> {
        self.fields.begin();
        let fields = event.fields();
        let (to, processor, kind): (Paths, &[u8], _) = match event.kind {
            intake::Kind::Metadata => return Ok(()),
            intake::Kind::Transaction => (paths::of_transaction, b"transaction", Kind::Traces),
            intake::Kind::Span => (paths::of_span, b"span", Kind::Traces),
            intake::Kind::Error => (paths::of_error, b"error", Kind::Logs),
            intake::Kind::Metricset => (paths::of_metricset, b"metric", Kind::Metrics),
            intake::Kind::Log => (paths::of_log, b"log", Kind::Logs),
        };
        self.fields.text(b"processor.event", processor);
        let mut seen = Seen::new(to, agent.service);
        seen.keeps_unknown = event.kind == intake::Kind::Log;
        self.look(fields, &mut seen);
        let dataset = match event.kind {
            intake::Kind::Transaction | intake::Kind::Span if agent.is_rum => "apm.rum",
            intake::Kind::Transaction | intake::Kind::Span => "apm",
            intake::Kind::Error => {
                self.error(fields, seen.exception);
                "apm.error"
            }
            intake::Kind::Metricset => self.metricset(fields),
            _ => "apm.app.",
        };
        let time = match seen.time {
            Time::At(0) => Time::At(self.settings.received),
            said => said,
        };
        if let Time::At(time) = time
            && (kind == Kind::Traces || event.kind == intake::Kind::Error)
        {
            self.fields.put(b"timestamp.us", Said::Int((time / 1000).cast_signed()));
        }
        let service = Service { name: seen.service };
        self.service = seen.service;
        let (exception, lists) = (seen.exception, seen.lists);
        self.ecs_document(
            kind,
            dataset,
            service,
            Wishes::default(),
            time,
            |_| Ok(()),
            |number, objects, out| {
                let list = usize::try_from(number).ok().and_then(|number| lists.get(number));
                match (list, exception) {
                    (Some(Value::Array(list)), _) => frames::frames(*list, objects, out),
                    (None, Some(exception)) if number == EXCEPTION => {
                        Errors::new(objects, out).tree(exception)
                    }
                    (None, _) if number == LINKS => frames::links(fields, out),
                    _ => out.put(b"null"),
                }
            },
        )?;
        self.end(1)
    }

    /// Puts the fields of an object's members, and of those of the objects in it.
    fn look(&mut self, object: Object<'a>, seen: &mut Seen<'a>) {
        self.members(object, 0, seen);
    }

    fn members(&mut self, object: Object<'a>, prefix: usize, seen: &mut Seen<'a>) {
        for (name, value) in object.members() {
            let is_empty = match value {
                Value::Null => true,
                Value::Object(object) => object.is_empty(),
                Value::Array(array) => array.values().next().is_none(),
                _ => false,
            };
            if is_empty {
                continue;
            }
            let Some(len) = seen.step(prefix, name.raw()) else {
                self.objects.lost += 1;
                continue;
            };
            match (seen.to)(seen.path.get(..len).unwrap_or_default()) {
                // Every level has a name of its own, so paths that are known bound the depth.
                Some(To::Enter) => match value.object() {
                    Some(object) => self.members(object, len, seen),
                    None => self.objects.lost += 1,
                },
                Some(to) => self.field(to, value, seen),
                // Log records have fields of their own making.
                None if prefix == 0 && seen.keeps_unknown => self.fields.tag(name, value),
                None => self.objects.lost += 1,
            }
        }
    }

    fn field(&mut self, to: To, value: Value<'a>, seen: &mut Seen<'a>) {
        match to {
            To::Text(path) => self.word(path, value, seen),
            To::Both(one, two) => {
                self.word(one, value, seen);
                self.word(two, value, seen);
            }
            To::Json(path) => self.json(path, value),
            To::Duration(path) => match value.number() {
                // Milliseconds of less than a billion years.
                Some(number) => {
                    self.fields.put(path.as_bytes(), Said::Int((number.double() * 1000.0).round() as i64))
                }
                None => self.objects.lost += 1,
            },
            To::Rate(path) => match value.number().map(|rate| 1.0 / rate.double()) {
                Some(count) if count.is_finite() => {
                    self.fields.put(path.as_bytes(), Said::Value(AnyValue::Double(count.to_bits())));
                }
                Some(_) => self.fields.put(path.as_bytes(), Said::Int(0)),
                None => self.objects.lost += 1,
            },
            To::Address(one, two) => {
                let text =
                    value.text().and_then(|text| text.plain()).and_then(|text| str::from_utf8(text).ok());
                match text.filter(|text| text.parse::<std::net::IpAddr>().is_ok()) {
                    Some(text) => {
                        self.fields.text(one.as_bytes(), text.as_bytes());
                        self.fields.text(two.as_bytes(), text.as_bytes());
                    }
                    None => self.objects.lost += 1,
                }
            }
            To::Labels => {
                for (key, value) in value.object().into_iter().flat_map(Object::members) {
                    self.fields.tag(key, value);
                }
            }
            To::Headers(path) => {
                self.json(path, value);
                for (name, value) in value.object().into_iter().flat_map(Object::members) {
                    if name.raw().eq_ignore_ascii_case(b"user-agent") {
                        self.fields.put(b"user_agent.original", Said::Word(first(value)));
                    }
                }
            }
            To::Frames(path) => match seen.lists.get_mut(seen.listed) {
                Some(place) if value.array().is_some() => {
                    *place = value;
                    self.fields
                        .put(path.as_bytes(), Said::Other(u32::try_from(seen.listed).unwrap_or(u32::MAX)));
                    seen.listed += 1;
                }
                _ => self.objects.lost += 1,
            },
            To::Links => self.fields.put(b"span.links", Said::Other(LINKS)),
            To::Exception => {
                seen.exception = value.object();
                self.fields.put(b"error.exception", Said::Other(EXCEPTION));
            }
            To::Samples => {
                for (name, sample) in value.object().into_iter().flat_map(Object::members) {
                    self.sample(name.plain().unwrap_or_default(), sample);
                }
            }
            To::Time => match value {
                Value::Text(text) => seen.time = Time::Said(text),
                Value::Number(number) => {
                    let microseconds = number.integer().and_then(|number| u64::try_from(number).ok());
                    // Go writes it with an exponent.
                    let microseconds = microseconds.unwrap_or_else(|| number.double().max(0.0) as u64);
                    seen.time = Time::At(microseconds.saturating_mul(1000));
                }
                _ => self.objects.lost += 1,
            },
            To::Enter | To::Elsewhere => {}
        }
    }

    /// Puts a field that is a text.
    fn word(&mut self, path: &'static str, value: Value<'a>, seen: &mut Seen<'a>) {
        if path == "service.name"
            && let Some(name) = value.text().and_then(|name| name.plain())
        {
            seen.service = name;
        }
        if path == "url.scheme"
            && let Some(scheme) = value.text().and_then(|scheme| scheme.raw().strip_suffix(b":"))
        {
            return self.fields.put(path.as_bytes(), Said::Escaped(scheme));
        }
        self.fields.put(path.as_bytes(), Said::Word(value));
    }

    fn json(&mut self, path: &'static str, value: Value<'a>) {
        let said = match value {
            Value::Null => return,
            Value::Bool(value) => Said::Bool(value),
            Value::Number(number) => Said::Json(number.raw()),
            Value::Text(text) => Said::Escaped(text.raw()),
            Value::Array(array) => Said::Json(array.raw()),
            Value::Object(object) => Said::Json(object.raw()),
        };
        self.fields.put(path.as_bytes(), said);
    }

    /// Puts a metric under its name: a number, or the values and counts of a histogram.
    fn sample(&mut self, name: &'a [u8], sample: Value<'a>) {
        let sample = sample.object();
        let value = sample.and_then(|sample| sample.find(b"value")).and_then(Value::number);
        let is_histogram = sample.is_some_and(|sample| sample.find(b"values").is_some());
        match (value, sample) {
            _ if !super::ecs::is_nameable(name) => self.objects.lost += 1,
            (Some(number), _) => self.fields.put(name, Said::Json(number.raw())),
            (None, Some(sample)) if is_histogram => self.fields.put(name, Said::Json(sample.raw())),
            _ => self.objects.lost += 1,
        }
    }

    /// What a metricset is of, and its dataset.
    fn metricset(&mut self, fields: Object<'a>) -> &'static str {
        let is_breakdown = [&b"transaction"[..], b"span"]
            .iter()
            .any(|name| fields.find(name).and_then(Value::object).is_some_and(|object| !object.is_empty()));
        self.fields.text(b"metricset.name", if is_breakdown { b"span_breakdown" } else { b"app" });
        let samples =
            || fields.find(b"samples").and_then(Value::object).into_iter().flat_map(Object::members);
        if is_breakdown || samples().all(|(name, _)| is_internal(name.raw())) {
            "apm.internal"
        } else {
            "apm.app."
        }
    }

    /// What an error says, and what it is grouped by: its exception's type, or its message; and where it was.
    fn error(&mut self, fields: Object<'a>, exception: Option<Object<'a>>) {
        let of_exception =
            |name: &[u8]| exception.and_then(|exception| exception.find(name)).and_then(Value::text);
        let of_log = |name: &[u8]| fields.at(&[b"log", name]).and_then(Value::text);
        if let Some(message) = of_log(b"message").or_else(|| of_exception(b"message")) {
            self.fields.put(b"message", Said::Escaped(message.raw()));
        }
        let told = of_exception(b"type")
            .or_else(|| of_log(b"param_message"))
            .or_else(|| of_exception(b"message"))
            .or_else(|| of_log(b"message"));
        let place = fields.find(b"culprit").and_then(Value::text);
        let [told, place] = [told, place].map(|text| text.map_or(&[][..], |text| text.raw()));
        self.fields
            .put(b"error.grouping_key", Said::Digits(xxh3_64_with_seed(told, xxh3_64_with_seed(place, 0))));
    }
}

/// The numbers of fields that are no lists of frames.
const EXCEPTION: u32 = 100;
const LINKS: u32 = 101;

impl<'a> Seen<'a> {
    fn new(to: fn(&[u8]) -> Option<To>, service: &'a [u8]) -> Self {
        Self {
            to,
            keeps_unknown: false,
            path: [0; LONGEST_PATH],
            time: Time::At(0),
            service,
            exception: None,
            lists: [Value::Null; 4],
            listed: 0,
        }
    }

    /// Appends a name to the first `prefix` bytes of the path; how long it is then.
    fn step(&mut self, prefix: usize, name: &[u8]) -> Option<usize> {
        let mut at = prefix;
        if prefix > 0 {
            *self.path.get_mut(at)? = b'.';
            at += 1;
        }
        self.path.get_mut(at..at + name.len())?.copy_from_slice(name);
        Some(at + name.len())
    }
}

/// A header's value: the first, if it has several.
fn first(value: Value<'_>) -> Value<'_> {
    value.array().and_then(|all| all.values().next()).unwrap_or(value)
}
