//! Fields that APM Server derives from several fields of an event, or from missing ones.

use super::event_fields::EventFields;
use super::internal::is_internal;
use super::paths::EventProperty;
use super::special_mappings::SpecialMapping;
use super::{AgentInfo, grouping, url};
use crate::documents::document_buffer::DocumentOutput;
use crate::documents::document_writer::DocumentWriter;
use crate::documents::fields::FieldValue;
use tidegate_wire::intake::address::{self, Address};
use tidegate_wire::intake::{Number, Object, Text, Value};
use tidegate_wire::otlp::AnyValue;

impl<'a, S: DocumentOutput> DocumentWriter<'_, 'a, '_, S> {
    /// Of all kinds.
    pub(super) fn inferred(&mut self, agent: AgentInfo<'a>, seen: &EventFields<'a>) {
        // A service that is named in an event has no version but that beside it.
        if seen.has(EventProperty::ServiceName) && !seen.has(EventProperty::ServiceVersion) {
            self.fields.put(b"service.version", FieldValue::Nothing);
        }
        self.client(agent, seen);
        self.target(seen);
        if let (Value::Text(page), false) =
            (seen.fact(EventProperty::PageUrl), seen.has(EventProperty::RequestUrl))
        {
            url::put(&mut self.fields, page);
        }
    }

    /// The client of the reported request.
    fn client(&mut self, agent: AgentInfo<'a>, seen: &EventFields<'a>) {
        let headers = seen.fact(EventProperty::Headers).object();
        if let Some(headers) = headers {
            let mut all =
                headers.members().filter(|(name, _)| name.raw().eq_ignore_ascii_case(b"user-agent"));
            if let Some((_, value @ (Value::Text(_) | Value::Array(_)))) = all.next() {
                self.fields.put(b"user_agent.original", FieldValue::Event(SpecialMapping::Joined, value));
            }
        }
        if agent.has_client {
            return;
        }
        let near = seen.fact(EventProperty::Remote).text().and_then(|text| address_of(text, address::parse));
        let far = headers.and_then(|headers| {
            address::HEADERS.iter().find_map(|(name, read)| {
                let mut all =
                    headers.members().filter(|(key, _)| key.raw().eq_ignore_ascii_case(name.as_bytes()));
                let value = all.next()?.1;
                let text = value.array().and_then(|all| all.values().next()).unwrap_or(value).text()?;
                address_of(text, *read)
            })
        });
        let Some((ip, port)) = far.or(near) else { return };
        self.fields.put(b"source.ip", FieldValue::Ip(ip));
        self.fields.put(b"client.ip", FieldValue::Ip(ip));
        if port > 0 {
            self.fields.put(b"source.port", FieldValue::Int(port.into()));
            if far.is_some() {
                self.fields.put(b"client.port", FieldValue::Int(port.into()));
            }
        }
        if let (Some(_), Some((ip, _))) = (far, near) {
            self.fields.put(b"source.nat.ip", FieldValue::Ip(ip));
        }
    }

    pub(super) fn transaction(&mut self, seen: &EventFields<'a>) {
        if seen.fact(EventProperty::Type).text().is_none_or(Text::is_empty) {
            self.fields.text(b"transaction.type", b"unknown");
        }
        if seen.fact(EventProperty::Sampled) != Value::Bool(false) {
            self.fields.put(b"transaction.sampled", FieldValue::Bool(true));
        }
        if seen.has(EventProperty::Experience) && !seen.has(EventProperty::LongTask) {
            for field in ["count", "sum", "max"] {
                let field = match field {
                    "count" => &b"transaction.experience.longtask.count"[..],
                    "sum" => b"transaction.experience.longtask.sum",
                    _ => b"transaction.experience.longtask.max",
                };
                self.fields.put(field, FieldValue::Int(0));
            }
        }
        self.count(b"transaction.representative_count", seen);
        let is_unknown = self.outcome(seen, 500);
        let kind = seen.fact(EventProperty::Type).text().unwrap_or(Text::EMPTY);
        let kind: &[u8] = match () {
            () if kind.is(b"messaging") => b"CONSUMER",
            () if kind.is(b"request") => b"SERVER",
            () => b"INTERNAL",
        };
        let has = |fact: EventProperty| seen.fact(fact).text().is_some_and(|text| !text.is_empty());
        if self.bridged(seen, kind, has(EventProperty::Kind), is_unknown) && !has(EventProperty::Result) {
            self.fields.text(b"transaction.result", b"Success");
        }
    }

    pub(super) fn span(&mut self, seen: &EventFields<'a>) {
        let text = |fact: EventProperty| seen.fact(fact).text().filter(|text| !text.is_empty());
        let kind = text(EventProperty::Type);
        let mut parts = [kind, text(EventProperty::Subtype), text(EventProperty::Action)]
            .map(|text| text.map_or(&[][..], Text::raw));
        if !seen.has(EventProperty::Subtype) && !seen.has(EventProperty::Action) {
            let mut rest = parts[0].splitn(3, |byte| *byte == b'.');
            parts = [(); 3].map(|()| rest.next().unwrap_or_default());
        }
        if parts[0].is_empty() {
            parts[0] = b"unknown";
        }
        let general = parts[0];
        for (field, part) in [&b"span.type"[..], b"span.subtype", b"span.action"].into_iter().zip(parts) {
            if !part.is_empty() {
                self.fields.put(field, FieldValue::Escaped(part));
            }
        }
        if let Value::Number(status) = seen.fact(EventProperty::Status)
            && let Some(status @ 1..) = status.integer()
        {
            self.fields.put(b"http.response.status_code", FieldValue::Int(status));
        }
        self.destination(seen);
        self.count(b"span.representative_count", seen);
        let is_unknown = self.outcome(seen, 400);
        let is_client = matches!(general, b"db" | b"external" | b"storage");
        let kind: &[u8] = if is_client { b"CLIENT" } else { b"INTERNAL" };
        let known: [&[u8]; 5] = [b"INTERNAL", b"SERVER", b"CLIENT", b"PRODUCER", b"CONSUMER"];
        let said = seen.fact(EventProperty::Kind).text().unwrap_or(Text::EMPTY);
        self.bridged(seen, kind, known.iter().any(|kind| said.is(kind)), is_unknown);
    }

    /// The address that a span calls, which may be one of IP.
    fn destination(&mut self, seen: &EventFields<'a>) {
        let text = seen.fact(EventProperty::Destination).text();
        let is_ip = text.and_then(Text::plain).and_then(|text| str::from_utf8(text).ok());
        if let (Some(text), Some(true)) = (text, is_ip.map(|text| text.parse::<std::net::IpAddr>().is_ok())) {
            self.fields.put(b"destination.ip", FieldValue::Escaped(text.raw()));
        }
    }

    /// The service that an event calls: as it says, else as the resource is called that it uses.
    fn target(&mut self, seen: &EventFields<'a>) {
        let text = |fact: EventProperty| seen.fact(fact).text();
        let (kind, name) = match (text(EventProperty::TargetType), text(EventProperty::Resource)) {
            (None, Some(resource)) => {
                let raw = resource.raw();
                let (before, after) = match raw.iter().position(|byte| *byte == b'/') {
                    Some(slash) => (raw.get(..slash), raw.get(slash + 1..)),
                    None => (Some(raw), None),
                };
                let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
                let is_kind = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
                let before = before.filter(|kind| !kind.is_empty() && kind.iter().all(is_kind));
                let is_name = after.is_none_or(|name| !name.is_empty() && name.iter().all(is_word));
                match before {
                    Some(kind) if is_name => (kind, after.unwrap_or_default()),
                    _ => (&[][..], raw),
                }
            }
            (None, None) if !seen.has(EventProperty::TargetName) => return,
            (kind, _) => {
                let raw = |text: Option<Text<'a>>| text.map_or(&[][..], Text::raw);
                (raw(kind), raw(text(EventProperty::TargetName)))
            }
        };
        self.fields.put(b"service.target.type", FieldValue::Escaped(kind));
        if !name.is_empty() {
            self.fields.put(b"service.target.name", FieldValue::Escaped(name));
        }
    }

    pub(super) fn error(&mut self, seen: &EventFields<'a>) {
        let (exception, log) =
            (seen.fact(EventProperty::Exception).object(), seen.fact(EventProperty::Log).object());
        if log.is_some() && !seen.has(EventProperty::Level) {
            self.fields.text(b"error.log.level", b"error");
        }
        if seen.fact(EventProperty::Sampled) == Value::Bool(true) {
            self.fields.put(b"transaction.sampled", FieldValue::Bool(true));
        }
        let message = |of: Option<Object<'a>>| {
            let text = of.and_then(|of| of.find(b"message")).and_then(Value::text);
            text.filter(|text| !text.is_empty())
        };
        if let Some(message) = message(log).or_else(|| message(exception)) {
            self.fields.put(b"message", FieldValue::Escaped(message.raw()));
        }
        self.fields.put(b"error.grouping_key", FieldValue::Digits(grouping::key(exception, log)));
    }

    /// Whether it is of an error.
    pub(super) fn log(&mut self, seen: &EventFields<'a>) -> bool {
        if let (Value::Text(id), false) =
            (seen.fact(EventProperty::Transaction), seen.has(EventProperty::Span))
        {
            self.fields.put(b"span.id", FieldValue::Escaped(id.raw()));
        }
        let is_error = seen.has(EventProperty::Error);
        if is_error {
            self.fields.put(b"error.grouping_key", FieldValue::Digits(grouping::key(None, None)));
        } else {
            self.fields.text(b"event.kind", b"event");
        }
        is_error
    }

    /// The kind of a metricset, and its dataset.
    pub(super) fn metricset(&mut self, fields: Object<'a>, seen: &EventFields<'a>) -> &'static str {
        let (transaction, span) = (seen.has(EventProperty::Transaction), seen.has(EventProperty::Span));
        let samples =
            || fields.find(b"samples").and_then(Value::object).into_iter().flat_map(Object::members);
        let is_breakdown = transaction
            && span
            && samples()
                .any(|(name, _)| matches!(name.raw(), b"span.self_time.count" | b"span.self_time.sum.us"));
        if is_breakdown {
            // Of a breakdown nothing else counts.
            for (name, _) in samples() {
                let name = name.plain().unwrap_or_default();
                if !matches!(name, b"span.self_time.count" | b"span.self_time.sum.us") {
                    self.objects.lost += 1;
                    self.fields.put(name, FieldValue::Nothing);
                }
            }
            // Whole microseconds, as Elastic APM has them.
            let sum = fields.at(&[b"samples", b"span.self_time.sum.us", b"value"]).and_then(Value::number);
            if let Some(sum) = sum {
                self.fields
                    .put(b"span.self_time.sum.us", FieldValue::Int((sum.double() * 1e3) as i64 / 1000));
            }
        }
        self.fields.text(b"metricset.name", if is_breakdown { b"span_breakdown" } else { b"app" });
        if transaction || span || samples().all(|(name, _)| is_internal(name.raw())) {
            "apm.internal"
        } else {
            "apm.app."
        }
    }

    /// How many events one stands for.
    fn count(&mut self, field: &'static [u8], seen: &EventFields<'a>) {
        let count = match seen.fact(EventProperty::SampleRate).number().map(Number::double) {
            None => 1.0,
            Some(rate) if rate > 0.0 => 1.0 / rate,
            Some(_) => return,
        };
        if count.is_finite() {
            self.fields.put(field, FieldValue::Value(AnyValue::Double(count.to_bits())));
        }
    }

    /// How it ended, by the status of an answer where it does not say: `worst` is the first that is a failure. Whether
    /// that is not known.
    fn outcome(&mut self, seen: &EventFields<'a>, worst: i64) -> bool {
        if let Some(said) = seen.fact(EventProperty::Outcome).text() {
            return said.is(b"unknown");
        }
        let status = seen.fact(EventProperty::Status).number().and_then(Number::integer);
        let outcome: &[u8] = match status {
            Some(status) if status >= worst => b"failure",
            Some(_) => b"success",
            None => b"unknown",
        };
        self.fields.text(b"event.outcome", outcome);
        status.is_none()
    }

    /// Of what an API of OpenTelemetry made: its kind, and its outcome, which is a good one unless somebody said
    /// otherwise. Whether that is so.
    fn bridged(
        &mut self,
        seen: &EventFields<'a>,
        kind: &'static [u8],
        is_known: bool,
        is_unknown: bool,
    ) -> bool {
        if !seen.has(EventProperty::Otel) && !seen.has(EventProperty::Kind) {
            return false;
        }
        if !is_known {
            self.fields.text(b"span.kind", kind);
        }
        if is_unknown {
            self.fields.text(b"event.outcome", b"success");
        }
        is_unknown
    }
}

/// Reads an address from a text, which may have been written with escapes.
fn address_of(text: Text<'_>, read: address::ReadAddress) -> Option<Address> {
    const LONGEST: usize = 512;
    let mut bytes = [0; LONGEST];
    let mut len = 0usize;
    text.pieces(|piece| {
        let end = len.saturating_add(piece.len());
        if let Some(place) = bytes.get_mut(len..end) {
            place.copy_from_slice(piece);
        }
        len = end;
    });
    read(bytes.get(..len)?)
}
