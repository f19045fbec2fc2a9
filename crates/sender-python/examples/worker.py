"""A worker that reports what it does, with a pool of forked processes.

    pip install './crates/sender-python[opentelemetry]'
    OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 python worker.py
"""

import logging
import multiprocessing
import sys

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from tidegate_sender import Sender
from tidegate_sender.logging import Handler
from tidegate_sender.opentelemetry import SpanExporter

sender = Sender(service_name="worker")
logging.basicConfig(level=logging.INFO, handlers=[Handler(sender)])
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(SpanExporter(sender)))
tracer = provider.get_tracer("worker")


def work(job: int) -> int:
    with tracer.start_as_current_span("job", kind=trace.SpanKind.CONSUMER, attributes={"job.id": job}):
        logging.info("job %d is done", job, extra={"job.id": job})
    # A forked process has a sender of its own, which ends with it: so each job sees its report off.
    return sender.flush(timeout=10)


if __name__ == "__main__":
    with multiprocessing.get_context("fork").Pool(2) as pool:
        left = sum(pool.map(work, range(10)))
    logging.info("all jobs are done")
    left += sender.shutdown(timeout=10)
    print(f"{left} events left, in {sender.memory} bytes of memory")
    sys.exit(left != 0)
