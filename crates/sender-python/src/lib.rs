//! The sender for Python: `tidegate_sender._native`. What users see is in `python/tidegate_sender`.

mod attributes;

use attributes::Mapping;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::time::Duration;
use tidegate_sender::{
    Builder, HistogramPoint, Link, Links, Metric, NoAttributes, Number, NumberPoint, Points, Protocol,
    RefusedEvent, Severity, SpanContext, SpanEvent, SpanEvents, SpanKind, Status, Temporality, Value,
};

#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Sender>()?;
    module.add_class::<Scope>()
}

/// Takes events from any thread, and sends them from one of its own.
#[pyclass(frozen, subclass, module = "tidegate_sender._native")]
struct Sender {
    sender: tidegate_sender::Sender,
    warnings: Vec<String>,
}

/// Which library made an event.
#[pyclass(frozen, module = "tidegate_sender")]
struct Scope(tidegate_sender::Scope);

#[pymethods]
impl Sender {
    /// Starts a sender as the environment says, and then as the arguments say.
    #[new]
    #[pyo3(signature = (
        endpoint=None, *, service_name=None, protocol=None, headers=None, resource=None, ring_bytes=None,
        event_bytes=None, batch_bytes=None, flush_interval=None, timeout=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn new(
        endpoint: Option<&str>,
        service_name: Option<&str>,
        protocol: Option<&str>,
        headers: Option<Vec<(String, String)>>,
        resource: Option<Vec<(String, String)>>,
        ring_bytes: Option<usize>,
        event_bytes: Option<usize>,
        batch_bytes: Option<usize>,
        flush_interval: Option<f64>,
        timeout: Option<f64>,
    ) -> PyResult<Sender> {
        let mut builder = Builder::from_env();
        builder = match protocol {
            None => builder,
            Some("otlp") => builder.protocol(Protocol::Otlp),
            Some("elastic_apm") => builder.protocol(Protocol::ElasticApm),
            Some(other) => {
                let what = format!("the protocol `{other}` is unknown: give 'otlp' or 'elastic_apm'");
                return Err(PyValueError::new_err(what));
            }
        };
        if let Some(endpoint) = endpoint {
            builder = builder.endpoint(endpoint);
        }
        if let Some(name) = service_name {
            builder = builder.service(name);
        }
        for (name, value) in headers.into_iter().flatten() {
            builder = builder.header(name, value);
        }
        for (name, value) in resource.into_iter().flatten() {
            builder = builder.resource(name, value);
        }
        if let Some(bytes) = ring_bytes {
            builder = builder.ring_bytes(bytes);
        }
        if let Some(bytes) = event_bytes {
            builder = builder.event_bytes(bytes);
        }
        if let Some(bytes) = batch_bytes {
            builder = builder.batch_bytes(bytes);
        }
        if let Some(seconds) = flush_interval {
            builder = builder.flush_interval(duration(seconds)?);
        }
        if let Some(seconds) = timeout {
            builder = builder.timeout(duration(seconds)?);
        }
        let warnings = builder.warnings().to_vec();
        let sender = builder.start().map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Sender { sender, warnings })
    }

    /// Warnings about environment variables that were interpreted differently than intended.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }

    /// How many events wait to be sent.
    #[getter]
    fn queued(&self) -> u64 {
        self.sender.stats().queued
    }

    /// A scope for the events of one library.
    #[pyo3(signature = (name, version=""))]
    fn scope(&self, name: &str, version: &str) -> Scope {
        Scope(self.sender.scope(name, version))
    }

    /// Says more about the resource; once.
    fn adopt_resource(&self, attributes: &Bound<'_, PyDict>) {
        self.sender.adopt_resource(&Mapping(attributes));
    }

    /// Takes a span that ended. Returns whether it was taken; refusals are counted.
    #[pyo3(signature = (
        name, trace_id, span_id, start, end, *, parent_id=None, parent_is_remote=false, trace_state="", flags=1,
        kind=1, status=0, status_message="", attributes=None, dropped_attributes=0, events=None, links=None,
        scope=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn span(
        &self,
        name: &str,
        trace_id: [u8; 16],
        span_id: [u8; 8],
        start: u64,
        end: u64,
        parent_id: Option<[u8; 8]>,
        parent_is_remote: bool,
        trace_state: &str,
        flags: u8,
        kind: u8,
        status: u8,
        status_message: &str,
        attributes: Option<&Bound<'_, PyDict>>,
        dropped_attributes: u32,
        events: Option<&Bound<'_, PyList>>,
        links: Option<&Bound<'_, PyList>>,
        scope: Option<&Scope>,
    ) -> PyResult<bool> {
        let mapping = attributes.map(Mapping);
        let happened = events.map(Events);
        let linked = links.map(Linked);
        taken(self.sender.span(&tidegate_sender::Span {
            context: SpanContext { trace_id, span_id, flags },
            parent: parent_id,
            parent_is_remote,
            trace_state,
            name,
            kind: match kind {
                2 => SpanKind::Server,
                3 => SpanKind::Client,
                4 => SpanKind::Producer,
                5 => SpanKind::Consumer,
                _ => SpanKind::Internal,
            },
            start,
            end,
            attributes: mapping.as_ref().map_or(&NoAttributes, |mapping| mapping),
            dropped_attributes,
            events: happened.as_ref().map_or(&NoAttributes, |events| events),
            links: linked.as_ref().map_or(&NoAttributes, |links| links),
            status: match status {
                1 => Status::Ok,
                2 => Status::Error(status_message),
                _ => Status::Unset,
            },
            scope: scope.map_or_else(Default::default, |scope| scope.0),
        }))
    }

    /// Takes a log record. Returns whether it was taken; refusals are counted.
    #[pyo3(signature = (
        body, *, time=0, severity=9, severity_text="", attributes=None, trace_id=None, span_id=None, flags=1,
        scope=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn log(
        &self,
        body: &str,
        time: u64,
        severity: u8,
        severity_text: &str,
        attributes: Option<&Bound<'_, PyDict>>,
        trace_id: Option<[u8; 16]>,
        span_id: Option<[u8; 8]>,
        flags: u8,
        scope: Option<&Scope>,
    ) -> PyResult<bool> {
        let mapping = attributes.map(Mapping);
        taken(self.sender.log(&tidegate_sender::Log {
            time,
            observed: time,
            severity: Severity(severity.min(24)),
            severity_text,
            body: Value::Str(body),
            event_name: "",
            attributes: mapping.as_ref().map_or(&NoAttributes, |mapping| mapping),
            context: trace_id.map(|trace_id| SpanContext {
                trace_id,
                span_id: span_id.unwrap_or_default(),
                flags,
            }),
            scope: scope.map_or_else(Default::default, |scope| scope.0),
        }))
    }

    /// Takes one number of a metric: a sum if `monotonic` or `delta` is given, else a gauge.
    #[pyo3(signature = (
        name, value, *, time, start=0, unit="", description="", monotonic=None, delta=false, attributes=None,
        scope=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn number(
        &self,
        name: &str,
        value: &Bound<'_, PyAny>,
        time: u64,
        start: u64,
        unit: &str,
        description: &str,
        monotonic: Option<bool>,
        delta: bool,
        attributes: Option<&Bound<'_, PyDict>>,
        scope: Option<&Scope>,
    ) -> PyResult<bool> {
        let mapping = attributes.map(Mapping);
        let value = match value.extract::<i64>() {
            Ok(whole) => Number::Int(whole),
            Err(_) => Number::Double(value.extract()?),
        };
        let attributes: &dyn tidegate_sender::Attributes =
            mapping.as_ref().map_or(&NoAttributes, |mapping| mapping);
        let points = [NumberPoint { attributes, start, time, value }];
        let points = match monotonic {
            Some(monotonic) => Points::Sum { points: &points, temporality: temporality(delta), monotonic },
            None => Points::Gauge(&points),
        };
        let scope = scope.map_or_else(Default::default, |scope| scope.0);
        taken(self.sender.metric(&Metric { name, description, unit, points, scope }))
    }

    /// Takes one histogram.
    #[pyo3(signature = (
        name, bounds, counts, *, count, sum=None, min=None, max=None, time, start=0, unit="", description="",
        delta=false, attributes=None, scope=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "keywords in Python")]
    fn histogram(
        &self,
        name: &str,
        bounds: Vec<f64>,
        counts: Vec<u64>,
        count: u64,
        sum: Option<f64>,
        min: Option<f64>,
        max: Option<f64>,
        time: u64,
        start: u64,
        unit: &str,
        description: &str,
        delta: bool,
        attributes: Option<&Bound<'_, PyDict>>,
        scope: Option<&Scope>,
    ) -> PyResult<bool> {
        let mapping = attributes.map(Mapping);
        let attributes: &dyn tidegate_sender::Attributes =
            mapping.as_ref().map_or(&NoAttributes, |mapping| mapping);
        let points = [HistogramPoint {
            attributes,
            start,
            time,
            count,
            sum,
            min,
            max,
            bounds: &bounds,
            counts: &counts,
        }];
        let points = Points::Histogram { points: &points, temporality: temporality(delta) };
        let scope = scope.map_or_else(Default::default, |scope| scope.0);
        taken(self.sender.metric(&Metric { name, description, unit, points, scope }))
    }

    /// Has everything sent that was taken so far. Returns how many events are left after so many seconds.
    #[pyo3(signature = (timeout=5.0))]
    fn flush(&self, py: Python<'_>, timeout: f64) -> PyResult<u64> {
        let timeout = duration(timeout)?;
        Ok(py.detach(|| self.sender.flush(timeout)).events)
    }

    /// The same, and takes no more. What is left is dropped, and counted.
    #[pyo3(signature = (timeout=5.0))]
    fn shutdown(&self, py: Python<'_>, timeout: f64) -> PyResult<u64> {
        let timeout = duration(timeout)?;
        Ok(py.detach(|| self.sender.shutdown(timeout)).events)
    }

    /// Counters: enqueued == sent + dropped + queued when nobody is in the middle of a call.
    fn stats<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let stats = self.sender.stats();
        let counters = PyDict::new(py);
        counters.set_item("enqueued", stats.enqueued_total())?;
        counters.set_item("sent", stats.sent_total())?;
        counters.set_item("dropped", stats.dropped_total())?;
        let reasons = PyDict::new(py);
        for class in tidegate_sender::Class::ALL {
            for reason in tidegate_sender::Reason::ALL {
                let events = stats.dropped(class, reason);
                if events > 0 {
                    reasons.set_item((class.name(), reason.name()), events)?;
                }
            }
        }
        counters.set_item("dropped_by", reasons)?;
        counters.set_item("queued", stats.queued)?;
        counters.set_item("queued_bytes", stats.queued_bytes)?;
        counters.set_item("ring_bytes", stats.ring_bytes)?;
        counters.set_item("requests", stats.requests)?;
        counters.set_item("retries", stats.retries)?;
        counters.set_item("wire_bytes", stats.wire_bytes)?;
        Ok(counters)
    }

    /// Bytes that this sender takes, now and at any time.
    #[getter]
    fn memory(&self) -> usize {
        self.sender.memory().total()
    }
}

/// `[(time, name, attributes), …]`
struct Events<'a, 'py>(&'a Bound<'py, PyList>);

impl SpanEvents for Events<'_, '_> {
    fn each(&self, visit: &mut dyn FnMut(&SpanEvent<'_>)) {
        for event in self.0.iter() {
            let Ok((time, name, attributes)) =
                event.extract::<(u64, Bound<'_, PyAny>, Option<Bound<'_, PyDict>>)>()
            else {
                continue;
            };
            let Ok(name) = name.extract::<&str>() else { continue };
            let mapping = attributes.as_ref().map(Mapping);
            visit(&SpanEvent {
                time,
                name,
                attributes: mapping.as_ref().map_or(&NoAttributes, |mapping| mapping),
            });
        }
    }
}

/// `[(trace_id, span_id, attributes), …]`
struct Linked<'a, 'py>(&'a Bound<'py, PyList>);

impl Links for Linked<'_, '_> {
    fn each(&self, visit: &mut dyn FnMut(&Link<'_>)) {
        for link in self.0.iter() {
            let Ok((trace_id, span_id, attributes)) =
                link.extract::<([u8; 16], [u8; 8], Option<Bound<'_, PyDict>>)>()
            else {
                continue;
            };
            let mapping = attributes.as_ref().map(Mapping);
            visit(&Link {
                context: SpanContext { trace_id, span_id, flags: 0 },
                trace_state: "",
                attributes: mapping.as_ref().map_or(&NoAttributes, |mapping| mapping),
            });
        }
    }
}

fn taken(result: Result<(), RefusedEvent>) -> PyResult<bool> {
    Ok(result.is_ok())
}

fn temporality(delta: bool) -> Temporality {
    if delta { Temporality::Delta } else { Temporality::Cumulative }
}

fn duration(seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|error| PyRuntimeError::new_err(format!("{seconds} seconds are no duration: {error}")))
}
