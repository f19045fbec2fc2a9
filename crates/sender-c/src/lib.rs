//! The sender for C: see `include/tidegate_sender.h`, which is the documentation.
//!
//! Promises: no panic crosses over to C (it is turned into `TIDEGATE_WRONG`), no pointer is kept beyond the
//! call, nothing is called back. Left to the caller: that pointers point to what the header says.

mod types;

pub use types::{
    Attribute, Log, Metric, Span, Stats, TIDEGATE_FULL, TIDEGATE_LEFT, TIDEGATE_OK, TIDEGATE_SHUT_DOWN,
    TIDEGATE_TOO_LARGE, TIDEGATE_WRONG, Text,
};

use std::ffi::{c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;
use tidegate_sender::{
    Attributes, Builder, Number, NumberPoint, Points, Reason, RefusedEvent, Sender, Severity, SpanContext,
    SpanKind, Status, Temporality, UnsentEvents, Value,
};

/// # Safety
/// As the header says: `error` is NULL, or has room for `error_len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_sender_new(
    endpoint: Text,
    service_name: Text,
    error: *mut c_char,
    error_len: usize,
) -> *mut Sender {
    // SAFETY: the caller's promise about texts.
    let (endpoint, service) = unsafe { (endpoint.as_str(), service_name.as_str()) };
    let started = catch_unwind(|| {
        let mut builder = Builder::from_env();
        if !endpoint.is_empty() {
            builder = builder.endpoint(endpoint);
        }
        if !service.is_empty() {
            builder = builder.service(service);
        }
        let warnings = builder.warnings().join("\n");
        builder.start().map(|sender| (sender, warnings)).map_err(|error| error.to_string())
    });
    let (sender, said) = match started {
        Ok(Ok((sender, warnings))) => (Box::into_raw(Box::new(sender)), warnings),
        Ok(Err(why)) => (std::ptr::null_mut(), why),
        Err(_) => (std::ptr::null_mut(), "starting the sender failed inside of it".to_owned()),
    };
    if !error.is_null() && error_len > 0 {
        let len = said.len().min(error_len - 1);
        // SAFETY: the caller promised `error_len` bytes there, and `len` and the zero fit into them.
        unsafe {
            std::ptr::copy_nonoverlapping(said.as_ptr().cast(), error, len);
            error.add(len).write(0);
        }
    }
    sender
}

/// # Safety
/// As the header says: both pointers are NULL or valid, and so is what the span points to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_sender_span(sender: *const Sender, span: *const Span) -> c_int {
    // SAFETY: the caller's promise about both pointers.
    let (Some(sender), Some(span)) = (unsafe { sender.as_ref() }, unsafe { Span::read(span) }) else {
        return TIDEGATE_WRONG;
    };
    let kind = match span.kind {
        0 | 1 => SpanKind::Internal,
        2 => SpanKind::Server,
        3 => SpanKind::Client,
        4 => SpanKind::Producer,
        5 => SpanKind::Consumer,
        _ => return TIDEGATE_WRONG,
    };
    // SAFETY: the caller's promise about texts and attributes.
    let (name, message, attributes) = unsafe {
        (span.name.as_str(), span.status_message.as_str(), slice(span.attributes, span.attribute_count))
    };
    let status = match span.status {
        0 => Status::Unset,
        1 => Status::Ok,
        2 => Status::Error(message),
        _ => return TIDEGATE_WRONG,
    };
    guarded(|| {
        sender.span(&tidegate_sender::Span {
            context: SpanContext { trace_id: span.trace_id, span_id: span.span_id, flags: span.flags },
            parent: (span.parent_id != [0; 8]).then_some(span.parent_id),
            parent_is_remote: span.parent_is_remote != 0,
            name,
            kind,
            status,
            start: span.start_unix_nano,
            end: span.end_unix_nano,
            attributes: &Given(attributes),
            ..Default::default()
        })
    })
}

/// # Safety
/// As the header says: both pointers are NULL or valid, and so is what the log points to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_sender_log(sender: *const Sender, log: *const Log) -> c_int {
    // SAFETY: the caller's promise about both pointers.
    let (Some(sender), Some(log)) = (unsafe { sender.as_ref() }, unsafe { Log::read(log) }) else {
        return TIDEGATE_WRONG;
    };
    let Ok(severity @ 0..=24) = u8::try_from(log.severity) else { return TIDEGATE_WRONG };
    // SAFETY: the caller's promise about texts and attributes.
    let (body, event_name, attributes) =
        unsafe { (log.body.as_str(), log.event_name.as_str(), slice(log.attributes, log.attribute_count)) };
    let context = SpanContext { trace_id: log.trace_id, span_id: log.span_id, flags: log.flags };
    guarded(|| {
        sender.log(&tidegate_sender::Log {
            time: log.time_unix_nano,
            observed: log.time_unix_nano,
            severity: Severity(severity),
            body: Value::Str(body),
            event_name,
            attributes: &Given(attributes),
            context: (log.trace_id != [0; 16]).then_some(context),
            ..Default::default()
        })
    })
}

/// # Safety
/// As the header says: both pointers are NULL or valid, and so is what the metric points to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_sender_metric(sender: *const Sender, metric: *const Metric) -> c_int {
    // SAFETY: the caller's promise about both pointers.
    let (Some(sender), Some(metric)) = (unsafe { sender.as_ref() }, unsafe { Metric::read(metric) }) else {
        return TIDEGATE_WRONG;
    };
    // SAFETY: the caller's promise about texts and attributes.
    let (name, unit, description, attributes) = unsafe {
        let texts = (metric.name.as_str(), metric.unit.as_str(), metric.description.as_str());
        (texts.0, texts.1, texts.2, slice(metric.attributes, metric.attribute_count))
    };
    let value =
        if metric.is_integer != 0 { Number::Int(metric.integer) } else { Number::Double(metric.number) };
    let attributes = Given(attributes);
    let points = [NumberPoint {
        attributes: &attributes,
        start: metric.start_unix_nano,
        time: metric.time_unix_nano,
        value,
    }];
    let points = if metric.is_sum != 0 {
        Points::Sum { points: &points, temporality: Temporality::Cumulative, monotonic: true }
    } else {
        Points::Gauge(&points)
    };
    let scope = tidegate_sender::Scope::default();
    guarded(|| sender.metric(&tidegate_sender::Metric { name, description, unit, points, scope }))
}

/// # Safety
/// As the header says: `trace_id` is NULL or has room for 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_new_trace_id(trace_id: *mut [u8; 16]) {
    // SAFETY: the caller's promise.
    if let Some(room) = unsafe { trace_id.as_mut() } {
        *room = Sender::new_span_context(None).trace_id;
    }
}

/// # Safety
/// As the header says: `span_id` is NULL or has room for 8 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_new_span_id(span_id: *mut [u8; 8]) {
    // SAFETY: the caller's promise.
    if let Some(room) = unsafe { span_id.as_mut() } {
        *room = Sender::new_span_context(None).span_id;
    }
}

/// # Safety
/// As the header says: both pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_sender_flush(
    sender: *const Sender,
    timeout_ms: u64,
    left: *mut u64,
) -> c_int {
    // SAFETY: the caller's promise about both pointers.
    let (sender, left) = unsafe { (sender.as_ref(), left.as_mut()) };
    waited(sender, left, |sender| sender.flush(Duration::from_millis(timeout_ms)))
}

/// # Safety
/// As the header says: both pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_sender_shutdown(
    sender: *const Sender,
    timeout_ms: u64,
    left: *mut u64,
) -> c_int {
    // SAFETY: the caller's promise about both pointers.
    let (sender, left) = unsafe { (sender.as_ref(), left.as_mut()) };
    waited(sender, left, |sender| sender.shutdown(Duration::from_millis(timeout_ms)))
}

/// # Safety
/// As the header says: both pointers are NULL or valid, and `stats->size` is the room there is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_sender_stats(sender: *const Sender, stats: *mut Stats) -> c_int {
    // SAFETY: the caller's promise about the pointer.
    let Some(sender) = (unsafe { sender.as_ref() }) else { return TIDEGATE_WRONG };
    let counted = sender.stats();
    let filled = Stats {
        size: size_of::<Stats>(),
        enqueued: counted.enqueued_total(),
        sent: counted.sent_total(),
        dropped: counted.dropped_total(),
        queued: counted.queued,
        queued_bytes: counted.queued_bytes,
        ring_bytes: counted.ring_bytes,
        requests: counted.requests,
        retries: counted.retries,
        wire_bytes: counted.wire_bytes,
        memory_bytes: sender.memory().total() as u64,
    };
    // SAFETY: the caller's promise about the room.
    if unsafe { filled.write_to(stats) } { TIDEGATE_OK } else { TIDEGATE_WRONG }
}

/// # Safety
/// As the header says: NULL, or from `tidegate_sender_new` and not yet given back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tidegate_sender_free(sender: *mut Sender) {
    if !sender.is_null() {
        // SAFETY: the caller's promise; `tidegate_sender_new` made it with `Box::into_raw`.
        drop(unsafe { Box::from_raw(sender) });
    }
}

/// Attributes as C has them.
struct Given<'a>(&'a [Attribute]);

impl Attributes for Given<'_> {
    fn each(&self, visit: &mut dyn FnMut(&str, Value<'_>)) {
        for attribute in self.0 {
            // SAFETY: whoever made this was promised that all texts inside are valid during the call.
            let (key, text) = unsafe { (attribute.key.as_str(), attribute.text.as_bytes()) };
            visit(
                key,
                match attribute.kind {
                    1 => Value::Str(types::valid(text)),
                    2 => Value::Bool(attribute.boolean != 0),
                    3 => Value::Int(attribute.integer),
                    4 => Value::Double(attribute.number),
                    5 => Value::Bytes(text),
                    _ => Value::Empty,
                },
            );
        }
    }
}

/// # Safety
/// `first` is NULL, or the first of `count` values that live as long as the result is used.
unsafe fn slice<'a>(first: *const Attribute, count: usize) -> &'a [Attribute] {
    if first.is_null() || count == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(first, count) }
}

fn guarded(take: impl FnOnce() -> Result<(), RefusedEvent>) -> c_int {
    match catch_unwind(AssertUnwindSafe(take)) {
        Ok(Ok(())) => TIDEGATE_OK,
        Ok(Err(RefusedEvent { reason: Reason::TooLarge, .. })) => TIDEGATE_TOO_LARGE,
        Ok(Err(RefusedEvent { reason: Reason::Shutdown, .. })) => TIDEGATE_SHUT_DOWN,
        Ok(Err(_)) => TIDEGATE_FULL,
        Err(_) => TIDEGATE_WRONG,
    }
}

fn waited(
    sender: Option<&Sender>,
    left: Option<&mut u64>,
    wait: impl FnOnce(&Sender) -> UnsentEvents,
) -> c_int {
    let Some(sender) = sender else { return TIDEGATE_WRONG };
    let Ok(unsent) = catch_unwind(AssertUnwindSafe(|| wait(sender))) else { return TIDEGATE_WRONG };
    if let Some(left) = left {
        *left = unsent.events;
    }
    if unsent.is_nothing() { TIDEGATE_OK } else { TIDEGATE_LEFT }
}
