"""Sends events with Elastic's agent for Python, and prints what it sent as one JSON object.

Usage: python.py SERVER_URL
"""

import json
import sys

import elasticapm

client = elasticapm.Client(
    service_name="shop-python", service_version="1.2.3", environment="test", server_url=sys.argv[1],
    secret_token="secret", global_labels="team=core", api_request_time="1s", metrics_interval="1s",
    cloud_provider="none",
)
client.begin_transaction("request")
elasticapm.label(region="eu", ok=True, count=3)
elasticapm.set_user_context(user_id=7, username="bob")
elasticapm.set_custom_context({"cart": [1, 2]})
spans = []
for number in range(3):
    with elasticapm.capture_span(
        f"SELECT t{number}", span_type="db", span_subtype="postgresql", span_action="query", labels={"number": number},
        extra={"db": {"type": "sql", "statement": f"SELECT {number}"}}, leaf=True,
    ) as span:
        spans.append(span.id)
trace_id, transaction_id = elasticapm.get_trace_id(), elasticapm.get_transaction_id()
try:
    raise ValueError("boom")
except ValueError:
    client.capture_exception(handled=True)
client.end_transaction("GET /item/{id}", "HTTP 2xx")
client.close()
print(json.dumps({
    "service": "shop-python", "trace_id": trace_id, "transaction_id": transaction_id, "spans": spans,
}))
