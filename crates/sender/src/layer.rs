//! A layer for `tracing-subscriber`.

mod event;
mod open;
mod record;

use crate::class::{Class, Reason};
use crate::clock;
use crate::record::{Scope, SpanKind, Status};
use crate::sender::Sender;
use crate::worker::on_sending_thread;
use event::Fields;
use open::{OpenSpans, SpanStart};
use record::Recorder;
use std::sync::Arc;
use tracing_core::span::{Attributes, Id, Record};
use tracing_core::{Event, Subscriber};
use tracing_subscriber::layer::Context;
use tracing_subscriber::registry::LookupSpan;

/// Sends the spans and events of `tracing`: spans when they close, events as log records that know their
/// span, or as events of that span.
///
/// An open span's fields are stored, already flat, in one of a fixed number of slots; nothing is allocated for them.
/// (The registry of `tracing-subscriber`, which this layer needs, has its own pool of spans.)
///
/// Some fields of spans are understood:
///
/// | field | meaning |
/// |---|---|
/// | `otel.name` | the name of the span, where the one in the macro is too general |
/// | `otel.kind` | `server`, `client`, `producer`, `consumer` or `internal` |
/// | `otel.status_code` | `ok` or `error` |
/// | `otel.status_message` | what went wrong |
/// | `traceparent` | the W3C header of the request that is served: its trace goes on |
///
/// ```
/// use tracing_subscriber::prelude::*;
///
/// let sender = tidegate_sender::Sender::builder().service("shop").start()?;
/// tracing_subscriber::registry().with(tidegate_sender::Layer::new(sender.clone())).init();
/// # let _ = sender.shutdown(std::time::Duration::ZERO);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Layer {
    sender: Sender,
    open: Arc<OpenSpans>,
    events: EventsAs,
    scope: Scope,
}

/// The treatment of `tracing` events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum EventsAs {
    /// log records
    #[default]
    Logs,
    /// events of the span that they happen in; log records outside of any
    SpanEvents,
}

impl Layer {
    /// A layer on that sender, with places for 1,024 open spans of 1 KiB each.
    pub fn new(sender: Sender) -> Layer {
        Layer::with_open_spans(sender, 1024, 1024)
    }

    /// A layer with places for so many open spans, each with so many bytes for attributes and events. What
    /// does not fit is counted: attributes in the span itself, spans as dropped for `too_many_open`.
    pub fn with_open_spans(sender: Sender, spans: usize, bytes: usize) -> Layer {
        let open = Arc::new(OpenSpans::new(spans, bytes));
        Layer { sender, open, events: EventsAs::Logs, scope: Scope::default() }
    }

    /// The treatment of events.
    #[must_use]
    pub fn events(mut self, events: EventsAs) -> Layer {
        self.events = events;
        self
    }

    /// The heap memory of this layer, in addition to the sender's.
    pub fn memory(&self) -> usize {
        self.open.memory()
    }

    /// The identity of an open span, to be handed on in a `traceparent` header. Nothing for spans that are
    /// not open or had no slot.
    pub fn span_context(&self, id: &Id) -> Option<crate::SpanContext> {
        self.open.with(id, |span| span.context)
    }

    fn parent<S>(&self, ctx: &Context<'_, S>, id: Option<&Id>) -> Option<crate::SpanContext>
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        // The nearest that has a slot: some may have been filtered out.
        ctx.span(id?)?.scope().find_map(|span| self.span_context(&span.id()))
    }
}

impl<S> tracing_subscriber::Layer<S> for Layer
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        if on_sending_thread() {
            return;
        }
        let current;
        let parent = match attributes.parent() {
            Some(parent) => Some(parent),
            None if attributes.is_contextual() => {
                current = ctx.current_span().id().cloned();
                current.as_ref()
            }
            None => None,
        };
        let parent = self.parent(&ctx, parent);
        let begun = SpanStart { name: attributes.metadata().name(), parent, start: clock::now() };
        let opened = self.open.begin(id, begun, |span| attributes.record(&mut Recorder::attributes(span)));
        if !opened {
            self.sender.refuse(Class::Span, Reason::TooManyOpen);
        }
    }

    fn on_record(&self, id: &Id, values: &Record<'_>, _ctx: Context<'_, S>) {
        self.open.with(id, |span| values.record(&mut Recorder::attributes(span)));
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, _ctx: Context<'_, S>) {
        if let Some(context) = self.span_context(follows) {
            self.open.with(id, |span| span.link(context));
        }
    }

    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        if on_sending_thread() {
            return;
        }
        let span = ctx.event_span(event).map(|span| span.id());
        if self.events == EventsAs::SpanEvents
            && let Some(id) = &span
        {
            let kept = self.open.with(id, |span| {
                span.event(clock::now(), |span| event.record(&mut Recorder::event(span)));
                if *event.metadata().level() == tracing_core::Level::ERROR {
                    span.error = true;
                }
            });
            if kept.is_some() {
                return;
            }
        }
        let context = self.parent(&ctx, span.as_ref());
        // Counted if it is refused; an event has nobody to tell.
        let _ = self.sender.log(&Fields(event).log(context, self.scope));
    }

    fn on_close(&self, id: Id, _ctx: Context<'_, S>) {
        self.open.end(&id, |open| {
            let span = crate::Span {
                context: open.context,
                parent: open.parent,
                parent_is_remote: open.parent_is_remote,
                name: open.name(),
                kind: open.kind.unwrap_or(SpanKind::Internal),
                start: open.start,
                end: clock::now(),
                attributes: &open.attributes(),
                dropped_attributes: open.dropped,
                events: &open.events(),
                links: &open.links(),
                status: if open.error {
                    Status::Error(open.message())
                } else if open.ok {
                    Status::Ok
                } else {
                    Status::Unset
                },
                scope: self.scope,
                ..crate::Span::default()
            };
            let _ = self.sender.span(&span);
        });
    }
}

impl std::fmt::Debug for Layer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Layer").field("sender", &self.sender).finish_non_exhaustive()
    }
}
