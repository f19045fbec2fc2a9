"""Creates the views that `tidegate lake views --duckdb` prints, and prints as one JSON object what the Rust
test compares.

    python read_views.py FILE

FILE has the statements.
"""

import json
import sys

import duckdb

# Columns of the ClickHouse exporter's tables that queries rely on.
COLUMNS = {
    "otel_traces": "Timestamp TraceId SpanId ParentSpanId TraceState SpanName SpanKind ServiceName "
    "ResourceAttributes ScopeName ScopeVersion SpanAttributes Duration StatusCode StatusMessage "
    "Events.Timestamp Events.Name Events.Attributes Links.TraceId Links.SpanId Links.TraceState Links.Attributes",
    "otel_logs": "Timestamp TraceId SpanId TraceFlags SeverityText SeverityNumber ServiceName Body "
    "ResourceSchemaUrl ResourceAttributes ScopeSchemaUrl ScopeName ScopeVersion ScopeAttributes LogAttributes",
    "otel_metrics_gauge": "ResourceAttributes ScopeName ServiceName MetricName MetricDescription MetricUnit "
    "Attributes StartTimeUnix TimeUnix Value Flags Exemplars.TraceId",
    "otel_metrics_sum": "MetricName Attributes Value AggregationTemporality IsMonotonic",
    "otel_metrics_histogram": "MetricName Count Sum BucketCounts ExplicitBounds Min Max AggregationTemporality",
    "otel_metrics_exponential_histogram": "MetricName Count Sum Scale ZeroCount PositiveOffset "
    "PositiveBucketCounts NegativeOffset NegativeBucketCounts",
    "otel_metrics_summary": "MetricName Count Sum ValueAtQuantiles.Quantile ValueAtQuantiles.Value",
}


def main(path):
    database = duckdb.connect()
    with open(path) as statements:
        database.sql(statements.read())
    for view, columns in COLUMNS.items():
        found = {name for name, *_ in database.sql(f"DESCRIBE {view}").fetchall()}
        missing = set(columns.split()) - found
        if missing:
            sys.exit(f"{view} has no {missing}")

    def one(query):
        return database.sql(query).fetchall()[0]

    print(
        json.dumps(
            {
                "span": one(
                    'SELECT TraceId, SpanId, ParentSpanId, SpanKind, StatusCode, Duration, epoch_ns("Timestamp"), '
                    "SpanAttributes, ResourceAttributes['service.name'], \"Events.Name\", \"Links.TraceId\", "
                    "\"Events.Attributes\"[1]['exception.type'] FROM otel_traces WHERE SpanName = 'GET /é'"
                ),
                "log": one(
                    "SELECT TraceId, SeverityText, SeverityNumber, Body, LogAttributes, ServiceName FROM otel_logs"
                ),
                "gauge": one("SELECT MetricName, Value, Attributes, epoch_ns(TimeUnix) FROM otel_metrics_gauge"),
                "sums": one(
                    "SELECT count(*), sum(Value), min(AggregationTemporality), bool_and(IsMonotonic) "
                    "FROM otel_metrics_sum"
                ),
                "histogram": one("SELECT Count, Sum, BucketCounts, ExplicitBounds, Min FROM otel_metrics_histogram"),
                "exponential": one(
                    "SELECT Count, Scale, ZeroCount, PositiveOffset, PositiveBucketCounts "
                    "FROM otel_metrics_exponential_histogram"
                ),
                "summary": one(
                    'SELECT Count, Sum, "ValueAtQuantiles.Quantile", "ValueAtQuantiles.Value" '
                    "FROM otel_metrics_summary"
                ),
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
