//! One walk over an event: its members become fields, and what of them decides about others is noted.

use super::paths::{EVENT_PROPERTIES, EventProperty, FieldMapping};
use super::special_mappings::{SpecialMapping, fits};
use crate::documents::document_buffer::DocumentOutput;
use crate::documents::document_writer::DocumentWriter;
use crate::documents::fields::FieldValue;
use crate::intake::time::of_text;
use tidegate_wire::intake::{Number, Object, Value};

/// How long a path of names may be that is known.
const MAX_PATH_LEN: usize = 96;

/// Where a field of an event goes, by its path.
pub(super) type Paths = fn(&[u8]) -> Option<FieldMapping>;

/// An event that is being looked at, and what of it matters for more than its fields.
pub(super) struct EventFields<'a> {
    paths: Paths,
    pub(super) keeps_unknown: bool,
    path: [u8; MAX_PATH_LEN],
    time: Option<u64>,
    pub(super) service: &'a [u8],
    facts: [Value<'a>; EVENT_PROPERTIES],
}

impl<'a> EventFields<'a> {
    pub(super) fn new(paths: Paths, service: &'a [u8]) -> Self {
        let (path, facts) = ([0; MAX_PATH_LEN], [Value::Null; EVENT_PROPERTIES]);
        Self { paths, keeps_unknown: false, path, time: None, service, facts }
    }

    /// The value found; `null` if there is none.
    pub(super) fn fact(&self, fact: EventProperty) -> Value<'a> {
        self.facts.get(fact as usize).copied().unwrap_or(Value::Null)
    }

    pub(super) fn has(&self, fact: EventProperty) -> bool {
        self.fact(fact) != Value::Null
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

impl<'a, S: DocumentOutput> DocumentWriter<'_, 'a, '_, S> {
    /// Puts the fields of an object's members, and of those of the objects in it.
    pub(super) fn look(&mut self, object: Object<'a>, seen: &mut EventFields<'a>) {
        self.members(object, 0, seen);
    }

    /// When the event was, in nanoseconds: as it says, else when it was received, a span then as much later as it says.
    pub(super) fn time(&self, seen: &EventFields<'a>) -> u64 {
        seen.time.unwrap_or_else(|| {
            let start = seen.fact(EventProperty::Start).number().map_or(0.0, Number::double);
            self.settings.received.saturating_add((start * 1e6) as u64)
        })
    }

    fn members(&mut self, object: Object<'a>, prefix: usize, seen: &mut EventFields<'a>) {
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
            match (seen.paths)(seen.path.get(..len).unwrap_or_default()) {
                Some(to) => self.field(to, value, len, seen),
                // Log records have fields of their own making.
                None if prefix == 0 && seen.keeps_unknown => self.fields.tag(name, value),
                None => self.objects.lost += 1,
            }
        }
    }

    /// Puts what a value becomes. `path` is how long its path is.
    fn field(&mut self, to: FieldMapping, value: Value<'a>, path: usize, seen: &mut EventFields<'a>) {
        match to {
            // Every level has a name of its own, so paths that are known bound the depth.
            FieldMapping::Enter => match value.object() {
                Some(object) => self.members(object, path, seen),
                None => self.objects.lost += 1,
            },
            FieldMapping::User => match value.object() {
                Some(user) => {
                    self.another_user(user);
                    self.members(user, path, seen);
                }
                None => self.objects.lost += 1,
            },
            FieldMapping::Known(fact, to) => {
                if let Some(place) = seen.facts.get_mut(fact as usize) {
                    *place = value;
                }
                if let Some(to) = to {
                    self.field(*to, value, path, seen);
                }
            }
            FieldMapping::Text(field) => self.word(field, value, seen),
            FieldMapping::Both(one, two) => {
                self.word(one, value, seen);
                self.word(two, value, seen);
            }
            FieldMapping::Scheme(field) => match value.text() {
                Some(text) => {
                    let scheme = text.raw().strip_suffix(b":").unwrap_or(text.raw());
                    self.fields.put(field.as_bytes(), FieldValue::Escaped(scheme));
                }
                None => self.objects.lost += 1,
            },
            FieldMapping::Whole(field) => match whole(value) {
                Some(0) => {}
                Some(number) => self.fields.put(field.as_bytes(), FieldValue::Int(number)),
                None => self.objects.lost += 1,
            },
            FieldMapping::Count(field) => match whole(value) {
                Some(number) => self.fields.put(field.as_bytes(), FieldValue::Int(number)),
                None => self.objects.lost += 1,
            },
            FieldMapping::Number(field) => match value.number().filter(|number| number.double() >= 0.0) {
                Some(number) => self.fields.put(field.as_bytes(), FieldValue::Json(number.raw())),
                None => self.objects.lost += 1,
            },
            FieldMapping::Truth(field) => match value {
                Value::Bool(value) => self.fields.put(field.as_bytes(), FieldValue::Bool(value)),
                _ => self.objects.lost += 1,
            },
            FieldMapping::Free(field) => self.free(field, value),
            FieldMapping::Shaped(shape, field) if fits(shape, value) => {
                self.fields.put(field.as_bytes(), FieldValue::Event(shape, value));
            }
            FieldMapping::Shaped(..) => self.objects.lost += 1,
            FieldMapping::Duration(field) => match value.number() {
                // Milliseconds of less than a billion years, and whole nanoseconds in between, as Elastic APM has it.
                Some(number) => {
                    let microseconds = (number.double() * 1e6) as i64 / 1000;
                    self.fields.put(field.as_bytes(), FieldValue::Int(microseconds));
                }
                None => self.objects.lost += 1,
            },
            FieldMapping::Labels => {
                for (key, value) in value.object().into_iter().flat_map(Object::members) {
                    self.fields.tag(key, value);
                }
            }
            FieldMapping::Samples => {
                for (name, sample) in value.object().into_iter().flat_map(Object::members) {
                    self.sample(name.plain().unwrap_or_default(), sample);
                }
            }
            FieldMapping::Time => match when(value) {
                Some(time) => seen.time = Some(time),
                None => self.objects.lost += 1,
            },
            FieldMapping::Elsewhere => {}
        }
    }

    /// Puts a field that is a text; of numbers their digits.
    fn word(&mut self, field: &'static str, value: Value<'a>, seen: &mut EventFields<'a>) {
        match value {
            Value::Text(text) if text.is_empty() => return,
            Value::Text(text) if field == "service.name" => {
                seen.service = text.plain().unwrap_or(seen.service);
            }
            Value::Object(_) | Value::Array(_) => {
                self.objects.lost += 1;
                return;
            }
            _ => {}
        }
        self.fields.put(field.as_bytes(), FieldValue::Word(value));
    }

    /// Puts a field that is not indexed, as it stands.
    fn free(&mut self, field: &'static str, value: Value<'a>) {
        let said = match value {
            Value::Null => return,
            Value::Bool(value) => FieldValue::Bool(value),
            Value::Number(number) => FieldValue::Json(number.raw()),
            Value::Text(text) => FieldValue::Escaped(text.raw()),
            Value::Array(array) => FieldValue::Json(array.raw()),
            Value::Object(object) => FieldValue::Json(object.raw()),
        };
        self.fields.put(field.as_bytes(), said);
    }

    /// Takes away what the metadata say of a user, where the event has one of its own: two are never mixed.
    fn another_user(&mut self, user: Object<'a>) {
        let known: [&[u8]; 4] = [b"id", b"username", b"email", b"domain"];
        if known.iter().any(|name| user.find(name).is_some()) {
            for field in [&b"user.id"[..], b"user.name", b"user.email", b"user.domain"] {
                self.fields.put(field, FieldValue::Nothing);
            }
        }
    }

    /// Puts a metric under its name: a number, or the values and counts of a histogram.
    fn sample(&mut self, name: &'a [u8], sample: Value<'a>) {
        let value = sample.object().and_then(|sample| sample.find(b"value")).and_then(Value::number);
        match value {
            _ if !super::super::ecs::is_nameable(name) => self.objects.lost += 1,
            _ if fits(SpecialMapping::Histogram, sample) => {
                self.fields.put(name, FieldValue::Event(SpecialMapping::Histogram, sample));
            }
            Some(number) => self.fields.put(name, FieldValue::Sample(number)),
            None => self.objects.lost += 1,
        }
    }
}

/// A number that is whole and not negative; some write one as a text, or with a fraction of nothing.
fn whole(value: Value<'_>) -> Option<i64> {
    let number = match value {
        Value::Number(number) => number.integer().or_else(|| {
            let double = number.double();
            (double.fract() == 0.0 && double < 1e18).then_some(double as i64)
        }),
        Value::Text(text) => str::from_utf8(text.plain()?).ok()?.parse().ok(),
        _ => None,
    };
    number.filter(|number| *number >= 0)
}

/// A time in nanoseconds, of microseconds or as ECS writes it.
fn when(value: Value<'_>) -> Option<u64> {
    match value {
        Value::Text(text) => of_text(text),
        Value::Number(number) => {
            let microseconds = number.integer().and_then(|number| u64::try_from(number).ok());
            // Go writes it with an exponent.
            let microseconds = microseconds.unwrap_or_else(|| number.double().max(0.0) as u64);
            Some(microseconds.saturating_mul(1000)).filter(|time| *time > 0)
        }
        _ => None,
    }
}
