//! The envelope of a request's events: the resource and the scopes.

use super::proto::{bytes_field_len, message_head, text_field};
use super::value::attributes;
use crate::record::Attributes;
use crate::ring::{Counted, EventOutput};

/// `Resource`, as field 1 of `ResourceSpans`, `ResourceLogs` or `ResourceMetrics`.
pub(crate) fn resource<O: EventOutput>(out: &mut O, pairs: &dyn Attributes) {
    let mut len = Counted::default();
    attributes(&mut len, 1, pairs);
    message_head(out, 1, len.0);
    attributes(out, 1, pairs);
}

/// `InstrumentationScope`, as field 1 of `ScopeSpans`, `ScopeLogs` or `ScopeMetrics`.
pub(crate) fn scope<O: EventOutput>(out: &mut O, name: &str, version: &str) {
    let write = |out: &mut dyn EventOutput| {
        let mut out = out;
        text_field(&mut out, 1, name);
        text_field(&mut out, 2, version);
    };
    let mut len = Counted::default();
    write(&mut len);
    message_head(out, 1, len.0);
    write(out);
}

/// In front of the events of one scope: `encoded` is what [`scope`] wrote. Returns how long it all will be.
pub(crate) fn scope_head<O: EventOutput>(out: &mut O, encoded: &[u8], events: usize) -> usize {
    message_head(out, 2, encoded.len() + events);
    out.put(encoded);
    bytes_field_len(2, encoded.len() + events)
}

/// In front of everything: `encoded` is what [`resource`] wrote, `scopes` the sum of [`scope_head`].
pub(crate) fn request_head<O: EventOutput>(out: &mut O, encoded: &[u8], scopes: usize) {
    message_head(out, 1, encoded.len() + scopes);
    out.put(encoded);
}
