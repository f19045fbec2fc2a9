//! Finds what a message says about all of its members, wherever that is in it, before the walk goes through them.

use super::open::{Container, Phase};
use super::rope::Full;
use super::walk::FIELD;
use super::{WORK, Walk};
use crate::record::message::{FieldRanges, body};
use crate::record::shape::Shape;
use tidegate_wire::proto::{Reader, WireType};

impl Walk<'_> {
    /// Looks for own fields: some of them.
    pub(super) fn scan(&mut self) -> Result<usize, Full> {
        const FIELDS: usize = 64;
        let access = self.pass.access;
        let Some(top) = self.stack.get_mut(self.depth) else { return Ok(FIELD) };
        let kind = top.kind;
        let is_data = top.phase == Phase::ScanData;
        // The reader of a metric's data begins there.
        let (content, base) = match (is_data, top.own.message) {
            (true, Some((_, start, end))) => (start..end, start),
            _ => (top.content(), 0),
        };
        let raw = self.body;
        let needs_fields = access.needs_data_fields();
        let needs_all = kind.level().is_some_and(|level| access.writes_level(level)) || access.schema_url;
        let mut cost = FIELD * FIELDS;
        for _ in 0..FIELDS {
            let before = base + top.reader.offset();
            let Ok(Some(key)) = top.reader.key() else { return self.scanned().map(|()| FIELD * FIELDS) };
            let members = if is_data { 1 << 1 } else { kind.members() };
            if top.reader.skip(key).is_err() {
                return self.scanned().map(|()| FIELD * FIELDS);
            }
            let field = before..base + top.reader.offset();
            let payload = || {
                let mut reader = Reader::new(raw.get(field.clone()).unwrap_or_default());
                let len =
                    reader.key().ok().flatten().and_then(|key| reader.bytes(key).ok()).map_or(0, <[u8]>::len);
                field.end - len..field.end
            };
            if is_data {
                let data = &mut self.tools.record.data;
                if key.field == 1 {
                    data.points += usize::from(key.wire == WireType::Length);
                    let open = data.attributes.open();
                    if open > 0 {
                        let number = Shape::of_points(data.kind()).attributes();
                        data.attributes.look(&self.memory, body(&payload()), number);
                        cost = cost.saturating_add(field.len().saturating_mul(open));
                        if cost > WORK {
                            break;
                        }
                    } else if !needs_fields {
                        return self.scanned().map(|()| cost);
                    }
                    continue;
                }
                top.own.data_bytes += field.len();
                if !top.own.is_data_scattered && !data.message.fields.add(field) {
                    top.own.is_data_scattered = true;
                    data.message.fields = FieldRanges::all(content.clone(), members);
                }
                continue;
            }
            if kind == Container::Span {
                top.counts.add(key);
            }
            let is_owner = matches!(kind, Container::Resource | Container::Scope);
            match key.field {
                1 if is_owner => {
                    let payload = payload();
                    top.own.message = Some((1, payload.start, payload.end));
                    top.own.add(field, content.clone(), members);
                    if !needs_all {
                        return self.scanned().map(|()| FIELD * FIELDS);
                    }
                }
                3 if is_owner => {
                    top.own.schema_url = body(&payload());
                    top.own.add(field, content.clone(), members);
                }
                number if number < 32 && members & 1 << number != 0 => {
                    if kind == Container::Metric {
                        let payload = payload();
                        top.own.message = Some((number, payload.start, payload.end));
                    }
                }
                _ => top.own.add(field, content.clone(), members),
            }
        }
        Ok(cost)
    }

    /// Own fields are known: they become the current resource, scope, span or metric.
    fn scanned(&mut self) -> Result<(), Full> {
        let access = self.pass.access;
        let record = &mut *self.tools.record;
        let Some(top) = self.stack.get_mut(self.depth) else { return Ok(()) };
        let own = top.own;
        let owner = own.message.map_or(FieldRanges::NONE, |(_, start, end)| FieldRanges::all(start..end, 0));
        match top.kind {
            Container::Resource => record.resource.begin(Shape::Resource, owner, own.schema_url),
            Container::Scope => record.scope.begin(Shape::Scope, owner, own.schema_url),
            Container::Span => {
                record.begin_span(own.fields, body(&top.content()), Some(top.counts));
            }
            Container::Metric if top.phase == Phase::Scan => {
                record.item.begin(Shape::Metric, own.fields);
                let (kind, start, end) = own.message.unwrap_or_default();
                let keys = &*self.pass.point_keys;
                record.data.begin(kind, body(&(start..end)), keys);
                if let Some((_, start, end)) = own.message
                    && (access.needs_data_fields() || !keys.is_empty())
                {
                    top.phase = Phase::ScanData;
                    top.reader = Reader::new(self.body.get(start..end).unwrap_or_default());
                    return Ok(());
                }
            }
            _ => {}
        }
        top.reader = top.start;
        top.phase = Phase::Walk;
        self.entered()
    }
}
