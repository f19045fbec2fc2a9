"""A peer that speaks OTLP/HTTP, with TLS or without."""

import gzip
import http.server
import pathlib
import ssl
import threading

from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

TLS = pathlib.Path(__file__).parents[2] / "sender/tests/tls"


class Peer:
    """Takes everything, decodes it with OpenTelemetry's own messages. With `tls` it closes each connection."""

    def __init__(self, tls=False):
        self.spans, self.logs, self.metrics, self.resources = [], [], [], []
        peer = self

        class Requests(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = b""
                while size := int(self.rfile.readline(), 16):
                    body += self.rfile.read(size)
                    self.rfile.readline()
                self.rfile.readline()
                if self.headers["content-encoding"] == "gzip":
                    body = gzip.decompress(body)
                peer.take(self.path, body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                if tls:
                    self.send_header("Connection", "close")
                self.end_headers()

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

            def handle_error(self, *_):
                """Clients go as they like."""

        self.server = Server(("127.0.0.1", 0), Requests)
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(TLS / "server.pem", TLS / "server.key")
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"{'https' if tls else 'http'}://localhost:{self.server.server_port}"

    def take(self, path, body):
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                self.resources.append(resource.resource)
                for scope in resource.scope_spans:
                    self.spans.extend((scope.scope.name, span) for span in scope.spans)
        elif path == "/v1/logs":
            for resource in ExportLogsServiceRequest.FromString(body).resource_logs:
                self.resources.append(resource.resource)
                for scope in resource.scope_logs:
                    self.logs.extend(scope.log_records)
        else:
            for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self.resources.append(resource.resource)
                for scope in resource.scope_metrics:
                    self.metrics.extend(scope.metrics)


def attributes(event):
    values = {pair.key: pair.value for pair in event.attributes}
    return {key: getattr(value, value.WhichOneof("value") or "string_value") for key, value in values.items()}
