"""The wheel as it is installed, seen from a peer that speaks OTLP/HTTP."""

import logging
import os
import pathlib
import subprocess
import sys
import unittest

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from peer import Peer, attributes
from tidegate_sender import Sender
from tidegate_sender.logging import Handler
from tidegate_sender.opentelemetry import MetricExporter, SpanExporter


class Sending(unittest.TestCase):
    def setUp(self):
        self.peer = Peer()
        self.sender = Sender(self.peer.url, service_name="tests", flush_interval=60, timeout=60)

    def tearDown(self):
        self.sender.shutdown(1)
        stats = self.sender.stats()
        self.assertEqual(stats["enqueued"], stats["sent"] + stats["dropped"] + stats["queued"])

    def test_log_records_arrive_with_extra_exception_and_span(self):
        logger = logging.Logger("shop")
        logger.addHandler(Handler(self.sender))
        tracer = TracerProvider().get_tracer("library")
        with tracer.start_as_current_span("outer") as span:
            logger.warning("stock of %s is low", "tea", extra={"item": 17})
        try:
            raise ValueError("no")
        except ValueError:
            logger.exception("failed")
        self.assertEqual(self.sender.flush(60), 0)
        low, failed = self.peer.logs
        self.assertEqual((low.body.string_value, low.severity_number, low.severity_text), ("stock of tea is low", 13, "WARNING"))
        self.assertEqual(attributes(low)["item"], 17)
        self.assertEqual(low.span_id, span.get_span_context().span_id.to_bytes(8, "big"))
        self.assertEqual(attributes(failed)["exception.type"], "ValueError")
        self.assertIn("raise ValueError", attributes(failed)["exception.stacktrace"])

    def test_spans_of_the_sdk_arrive(self):
        provider = TracerProvider(resource=Resource.create({"service.name": "of the SDK"}))
        provider.add_span_processor(SimpleSpanProcessor(SpanExporter(self.sender)))
        tracer = provider.get_tracer("library", "1")
        other = trace.SpanContext(5, 6, False)
        links = [trace.Link(other, {"why": "batch"})]
        with tracer.start_as_current_span("outer", kind=trace.SpanKind.SERVER, links=links):
            with tracer.start_as_current_span("inner", attributes={"list": [1, 2], "ok": True, "ratio": 0.5}) as inner:
                inner.add_event("cached", {"hit": True})
                inner.set_status(trace.StatusCode.ERROR, "broken")
        self.assertEqual(self.sender.flush(60), 0)
        spans = {span.name: (scope, span) for scope, span in self.peer.spans}
        scope, inner = spans["inner"]
        self.assertEqual(scope, "library")
        self.assertEqual(inner.parent_span_id, spans["outer"][1].span_id)
        self.assertEqual((inner.status.code, inner.status.message), (2, "broken"))
        self.assertEqual(spans["outer"][1].kind, 2)
        self.assertEqual(spans["outer"][1].links[0].span_id, (6).to_bytes(8, "big"))
        self.assertEqual(attributes(spans["outer"][1].links[0]), {"why": "batch"})
        self.assertEqual([value.int_value for value in attributes(inner)["list"].values], [1, 2])
        self.assertEqual(attributes(inner.events[0]), {"hit": True})
        self.assertEqual(attributes(self.peer.resources[0])["service.name"], "of the SDK")

    def test_the_name_given_to_the_sender_wins_over_the_default_of_the_sdk(self):
        provider = TracerProvider()
        self.assertTrue(provider.resource.attributes["service.name"].startswith("unknown_service"))
        provider.add_span_processor(SimpleSpanProcessor(SpanExporter(self.sender)))
        provider.get_tracer("library").start_span("one").end()
        self.assertEqual(self.sender.flush(60), 0)
        self.assertEqual(attributes(self.peer.resources[0])["service.name"], "tests")

    def test_metrics_of_the_sdk_arrive(self):
        reader = PeriodicExportingMetricReader(MetricExporter(self.sender), export_interval_millis=60000)
        provider = MeterProvider(metric_readers=[reader])
        meter = provider.get_meter("library")
        meter.create_counter("requests").add(5, {"route": "/"})
        meter.create_histogram("latency", explicit_bucket_boundaries_advisory=[1, 2]).record(1.5)
        provider.force_flush()
        self.assertEqual(self.sender.flush(60), 0)
        metrics = {metric.name: metric for metric in self.peer.metrics}
        self.assertEqual(metrics["requests"].sum.data_points[0].as_int, 5)
        self.assertEqual(list(metrics["latency"].histogram.data_points[0].bucket_counts), [0, 1, 0])
        provider.shutdown()

    def test_a_forked_child_sends_its_own_and_only_its_own(self):
        self.sender.log("of the parent")
        child = os.fork()
        if child == 0:
            self.sender.log("of the child")
            os._exit(min(self.sender.flush(60), 100))
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(self.sender.flush(60), 0)
        self.assertEqual(sorted(log.body.string_value for log in self.peer.logs), ["of the child", "of the parent"])

    def test_odd_values_are_shown_and_wrong_settings_said(self):
        odd = {"none": None, "large": 2**70, "object": pathlib.PurePosixPath("/x"), "bytes": b"\x01", 5: "no name"}
        self.assertTrue(self.sender.log("odd", attributes=odd))
        self.assertEqual(self.sender.flush(60), 0)
        got = attributes(self.peer.logs[0])
        self.assertEqual((got["large"], got["object"], got["bytes"]), (str(2**70), "/x", b"\x01"))
        with self.assertRaisesRegex(ValueError, "has no scheme"):
            Sender("nowhere")

    def test_the_example_reports_its_jobs(self):
        example = pathlib.Path(__file__).parent.parent / "examples/worker.py"
        environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": self.peer.url}
        said = subprocess.run([sys.executable, example], env=environment, capture_output=True, text=True, timeout=300)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        self.assertEqual(len(self.peer.spans), 10)
        self.assertEqual(len(self.peer.logs), 11)


if __name__ == "__main__":
    unittest.main()
