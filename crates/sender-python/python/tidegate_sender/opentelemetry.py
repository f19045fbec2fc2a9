"""Exporters for the OpenTelemetry SDK.

They write into the sender's ring, and return; retries, limits and counters are the sender's.
"""

from __future__ import annotations

from typing import Any

from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Histogram,
    MetricExporter as _MetricExporter,
    MetricExportResult,
    Sum,
)
from opentelemetry.sdk.trace.export import SpanExporter as _SpanExporter, SpanExportResult

from . import Scope, Sender

__all__ = ["LogExporter", "MetricExporter", "SpanExporter"]


class _Exporter:
    def __init__(self, sender: Sender) -> None:
        self.sender = sender
        self._scopes: dict[tuple[str, str], Scope] = {}
        self._resource: Any = None

    def _scope(self, scope: Any) -> Scope | None:
        if scope is None:
            return None
        key = (scope.name, scope.version or "")
        found = self._scopes.get(key)
        if found is None:
            found = self.sender.scope(*key)
            # The sender keeps 64; what is beyond gets the default, and is not worth remembering.
            if len(self._scopes) < 64:
                self._scopes[key] = found
        return found

    def _adopt(self, resource: Any) -> None:
        if self._resource is None and resource is not None:
            self._resource = resource
            self.sender.adopt_resource(dict(resource.attributes))


class SpanExporter(_Exporter, _SpanExporter):
    """Hands spans to a sender."""

    def __init__(self, sender: Sender) -> None:
        _Exporter.__init__(self, sender)

    def export(self, spans: Any) -> SpanExportResult:
        for span in spans:
            self._adopt(span.resource)
            context, parent = span.get_span_context(), span.parent
            self.sender.span(
                span.name,
                context.trace_id.to_bytes(16, "big"),
                context.span_id.to_bytes(8, "big"),
                span.start_time or 0,
                span.end_time or 0,
                parent_id=parent.span_id.to_bytes(8, "big") if parent else None,
                parent_is_remote=bool(parent and parent.is_remote),
                trace_state=context.trace_state.to_header() if context.trace_state else "",
                flags=int(context.trace_flags),
                kind=span.kind.value + 1,
                status=span.status.status_code.value,
                status_message=span.status.description or "",
                attributes=dict(span.attributes or {}),
                dropped_attributes=span.dropped_attributes,
                events=[(event.timestamp, event.name, dict(event.attributes or {})) for event in span.events],
                links=[
                    (link.context.trace_id.to_bytes(16, "big"), link.context.span_id.to_bytes(8, "big"), dict(link.attributes or {}))
                    for link in span.links
                ],
                scope=self._scope(span.instrumentation_scope),
            )
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        self.sender.flush()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self.sender.flush(timeout_millis / 1000) == 0


def _log_base() -> tuple[type, Any]:
    from opentelemetry.sdk._logs import export

    # Named anew in 1.39.
    base = getattr(export, "LogRecordExporter", None) or export.LogExporter
    result = getattr(export, "LogRecordExportResult", None) or export.LogExportResult
    return base, result


_LogBase, _LogResult = _log_base()


class LogExporter(_Exporter, _LogBase):
    """Hands log records to a sender."""

    def __init__(self, sender: Sender) -> None:
        _Exporter.__init__(self, sender)

    def export(self, batch: Any) -> Any:
        for data in batch:
            record = data.log_record
            self._adopt(getattr(data, "resource", None) or getattr(record, "resource", None))
            self.sender.log(
                record.body if isinstance(record.body, str) else str(record.body),
                time=record.timestamp or record.observed_timestamp or 0,
                severity=record.severity_number.value if record.severity_number else 0,
                severity_text=record.severity_text or "",
                attributes=dict(record.attributes or {}),
                trace_id=record.trace_id.to_bytes(16, "big") if record.trace_id else None,
                span_id=record.span_id.to_bytes(8, "big") if record.span_id else None,
                flags=int(record.trace_flags or 0),
                scope=self._scope(data.instrumentation_scope),
            )
        return _LogResult.SUCCESS

    def shutdown(self) -> None:
        self.sender.flush()

    def force_flush(self, timeout_millis: int = 30000) -> bool:
        return self.sender.flush(timeout_millis / 1000) == 0


class MetricExporter(_Exporter, _MetricExporter):
    """Hands metrics to a sender. Exponential histograms and exemplars are left out."""

    def __init__(self, sender: Sender, **preferred: Any) -> None:
        _MetricExporter.__init__(self, **preferred)
        _Exporter.__init__(self, sender)

    def export(self, metrics_data: Any, timeout_millis: float = 10000, **_: Any) -> MetricExportResult:
        for resource in metrics_data.resource_metrics:
            self._adopt(resource.resource)
            for group in resource.scope_metrics:
                scope = self._scope(group.scope)
                for metric in group.metrics:
                    self._metric(metric, scope)
        return MetricExportResult.SUCCESS

    def _metric(self, metric: Any, scope: Scope | None) -> None:
        data = metric.data
        for point in data.data_points:
            common = {
                "time": point.time_unix_nano or 0,
                "start": point.start_time_unix_nano or 0,
                "unit": metric.unit or "",
                "description": metric.description or "",
                "attributes": dict(point.attributes or {}),
                "scope": scope,
            }
            if isinstance(data, Gauge):
                self.sender.number(metric.name, point.value, **common)
            elif isinstance(data, Sum):
                delta = data.aggregation_temporality == AggregationTemporality.DELTA
                self.sender.number(metric.name, point.value, monotonic=data.is_monotonic, delta=delta, **common)
            elif isinstance(data, Histogram):
                self.sender.histogram(
                    metric.name,
                    list(point.explicit_bounds),
                    list(point.bucket_counts),
                    count=point.count,
                    sum=point.sum,
                    min=point.min,
                    max=point.max,
                    delta=data.aggregation_temporality == AggregationTemporality.DELTA,
                    **common,
                )

    def shutdown(self, timeout_millis: float = 30000, **_: Any) -> None:
        self.sender.flush(timeout_millis / 1000)

    def force_flush(self, timeout_millis: float = 10000) -> bool:
        return self.sender.flush(timeout_millis / 1000) == 0
