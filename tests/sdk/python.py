"""Sends telemetry with OpenTelemetry's SDK for Python, and prints what it sent as one JSON object.

Usage: python.py grpc|http ENDPOINT
"""

import json
import logging
import sys

from opentelemetry import trace
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.metrics.view import ExponentialBucketHistogramAggregation, View
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

transport, endpoint = sys.argv[1:]
if transport == "grpc":
    from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

    spans, logs, metrics = (make(endpoint=endpoint, insecure=True) for make in (
        OTLPSpanExporter, OTLPLogExporter, OTLPMetricExporter))
else:
    from opentelemetry.exporter.otlp.proto.http import Compression
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    # As many users run it: compressed.
    spans = OTLPSpanExporter(endpoint=f"{endpoint}/v1/traces", compression=Compression.Gzip)
    logs = OTLPLogExporter(endpoint=f"{endpoint}/v1/logs", compression=Compression.Gzip)
    metrics = OTLPMetricExporter(endpoint=f"{endpoint}/v1/metrics", compression=Compression.Gzip)

resource = Resource.create({"service.name": f"python-{transport}", "service.version": "1.2.3"})
attributes = {
    "text": "grüße",
    "whole": 2**53 + 1,
    "negative": -7,
    "ratio": 0.25,
    "yes": True,
    "texts": ["a", "b"],
    "numbers": [1, 2, 3],
    "http.request.method": "GET",
    "http.response.status_code": 503,
}

tracing = TracerProvider(resource=resource)
tracing.add_span_processor(BatchSpanProcessor(spans))
tracer = tracing.get_tracer("tests", "0.1")
with tracer.start_as_current_span("parent", attributes=attributes) as parent:
    parent.add_event("cache miss", {"key": "user:7"})
    with tracer.start_as_current_span("child", kind=trace.SpanKind.CLIENT) as child:
        child.set_attribute("db.system", "postgresql")
        child.set_status(trace.Status(trace.StatusCode.ERROR, "timed out"))
        logging_provider = LoggerProvider(resource=resource)
        logging_provider.add_log_record_processor(BatchLogRecordProcessor(logs))
        logger = logging.getLogger("tests")
        logger.setLevel(logging.INFO)
        logger.addHandler(LoggingHandler(logger_provider=logging_provider))
        logger.warning("it took %s", "long", extra={"attempt": 3})

metering = MeterProvider(
    resource=resource,
    metric_readers=[PeriodicExportingMetricReader(metrics, export_interval_millis=3_600_000)],
    views=[View(instrument_name="sizes", aggregation=ExponentialBucketHistogramAggregation())],
)
meter = metering.get_meter("tests", "0.1")
meter.create_counter("requests", unit="{request}").add(41, {"route": "/a"})
meter.create_up_down_counter("open").add(-2)
meter.create_gauge("temperature").set(21.5)
for instrument in ("latency", "sizes"):
    histogram = meter.create_histogram(instrument, unit="s")
    for value in (0.5, 1.5, 80.0):
        histogram.record(value, {"route": "/a"})

for provider in (tracing, logging_provider, metering):
    provider.shutdown()

context = parent.get_span_context()
print(json.dumps({
    "service": f"python-{transport}",
    "trace_id": f"{context.trace_id:032x}",
    "parent_id": f"{context.span_id:016x}",
    "child_id": f"{child.get_span_context().span_id:016x}",
    "attributes": attributes,
}))
