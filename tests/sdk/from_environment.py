"""Sends a span, a log record and a metric with OpenTelemetry's SDK for Python, which is told everything by its environment.

Usage: from_environment.py
"""

import logging

from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider, LoggingHandler
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

tracing = TracerProvider()
tracing.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
with tracing.get_tracer("tests").start_as_current_span("a span"):
    pass
logs = LoggerProvider()
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter()))
logger = logging.getLogger("tests")
logger.addHandler(LoggingHandler(logger_provider=logs))
logger.warning("a record")
metering = MeterProvider(metric_readers=[PeriodicExportingMetricReader(OTLPMetricExporter())])
metering.get_meter("tests").create_counter("a.counter").add(1)
for provider in (tracing, logs, metering):
    provider.shutdown()
