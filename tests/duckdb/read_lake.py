"""Reads a lake with DuckDB and prints, as one JSON object, what the Rust test compares.

    python read_lake.py LAKE

LAKE is the folder that has `v1`.
"""

import json
import sys

import duckdb

KEY_TYPES = {
    "metric_name": "VARCHAR",
    "unit": "VARCHAR",
    "description": "VARCHAR",
    "type": "INTEGER",
    "series_id": "BIGINT",
    "time": "TIMESTAMP WITH TIME ZONE",
    "time_ns": "INTEGER",
    "start_time": "TIMESTAMP WITH TIME ZONE",
    "flags": "INTEGER",
    "service_name": "VARCHAR",
    "resource": "VARCHAR",
    "scope_name": "VARCHAR",
    "attributes": "VARCHAR",
    "job": "VARCHAR",
    "instance": "VARCHAR",
}
POINT_TYPES = {
    "value": "DOUBLE",
    "value_int": "BIGINT",
    "exemplars": 'STRUCT("time" TIMESTAMP WITH TIME ZONE, "value" DOUBLE, trace_id BLOB, '
    "span_id BLOB, attributes VARCHAR, time_ns INTEGER, value_int BIGINT)[]",
}
HISTOGRAM_TYPES = {
    "count": "BIGINT",
    "sum": "DOUBLE",
    "bounds": "DOUBLE[]",
    "bucket_counts": "BIGINT[]",
    "scale": "INTEGER",
    "positive_offset": "INTEGER",
    "positive_counts": "BIGINT[]",
    "positive_counts_float": "DOUBLE[]",
    "temporality": "INTEGER",
}


def check_types(database, table, expected):
    found = {name: kind for name, kind, *_ in database.sql(f"DESCRIBE {table}").fetchall()}
    for column, kind in expected.items():
        if found.get(column) != kind:
            sys.exit(f"{table}.{column} is {found.get(column)} and should be {kind}")


def main(lake):
    database = duckdb.connect()
    database.sql("SET TimeZone = 'UTC'")
    for table in ["metric_points", "metric_histograms"]:
        database.sql(
            f"CREATE VIEW {table} AS SELECT * FROM read_parquet('{lake}/v1/{table}/**/*.parquet', "
            "hive_partitioning = true)"
        )
    check_types(database, "metric_points", KEY_TYPES | POINT_TYPES)
    check_types(database, "metric_histograms", KEY_TYPES | HISTOGRAM_TYPES)

    def one(query):
        return database.sql(query).fetchall()[0]

    points = one(
        """
        SELECT count(*), count(DISTINCT series_id), sum(value) FILTER (isfinite(value)),
               count(*) FILTER (isnan(value)), count(*) FILTER (flags & 1 = 1),
               epoch_us(min(time)), epoch_us(max(time)), count(DISTINCT dt || hh)
        FROM metric_points
        """
    )
    by_job = database.sql(
        "SELECT job, count(*) FROM metric_points WHERE metric_name = 'requests_total' GROUP BY job ORDER BY job"
    ).fetchall()
    label = one(
        """SELECT count(*) FROM metric_points WHERE json_extract_string(attributes, '$.zone') = 'zürich "1"'"""
    )
    exemplar = one(
        "SELECT hex(exemplars[1].trace_id), exemplars[1].value FROM metric_points WHERE len(exemplars) > 0"
    )
    histograms = one(
        "SELECT count(*), sum(count), sum(sum), sum(list_sum(positive_counts)) FROM metric_histograms"
    )
    print(
        json.dumps(
            {
                "points": points,
                "by_job": by_job,
                "label": label[0],
                "exemplar": exemplar,
                "histograms": [float(number) for number in histograms],
            }
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
