//! The same search for DuckDB, over the files of the lake.

use std::path::Path;
use tidegate_lake::{Query, Table};

/// The rows of `query`, the newest first.
pub(crate) fn rows(lake: &Path, query: &Query, limit: usize) -> String {
    let table = query.table;
    let (time, _) = table.time_columns();
    let files = lake.join("v1").join(table.name()).join("**").join("*.parquet");
    let mut conditions = Vec::new();
    if let Some(from) = query.from {
        conditions.push(format!("{time} >= TIMESTAMPTZ '{from}'"));
    }
    if let Some(to) = query.to {
        conditions.push(format!("{time} < TIMESTAMPTZ '{to}'"));
    }
    if let Some(id) = query.trace_id {
        conditions.push(format!("trace_id = from_hex('{:032x}')", u128::from_be_bytes(id)));
    }
    let mut equals = |column: &str, value: Option<&String>| {
        conditions.extend(value.map(|value| format!("{column} = {}", quoted(value))));
    };
    equals("service_name", query.service.as_ref());
    equals("metric_name", query.metric.as_ref());
    equals(if table == Table::Spans { "span_name" } else { "event_name" }, query.name.as_ref());
    if let Some(least) = query.severity {
        conditions.push(format!("severity_number >= {least}"));
    }
    if let Some(part) = &query.contains {
        conditions.push(format!("contains(body, {})", quoted(part)));
    }
    if query.failed {
        conditions.push("status_code = 2".to_owned());
    }
    let (least, most) = query.duration_ns;
    conditions.extend(least.map(|least| format!("duration_ns >= {least}")));
    conditions.extend(most.map(|most| format!("duration_ns <= {most}")));
    for label in &query.labels {
        let operator = if label.negated { "<>" } else { "=" };
        let value = quoted(&label.value);
        conditions.push(if table.promoted().contains(&label.name.as_str()) {
            format!("coalesce(\"{}\"::VARCHAR, '') {operator} {value}", label.name)
        } else {
            let path = quoted(&format!("$.\"{}\"", label.name.replace('"', "\\\"")));
            format!(
                "coalesce(json_extract_string(attributes, {path}), json_extract_string(resource, {path}), '') {operator} {value}"
            )
        });
    }
    let conditions = if conditions.is_empty() {
        String::new()
    } else {
        format!("\nWHERE {}", conditions.join("\n  AND "))
    };
    let files = quoted(&files.display().to_string());
    format!(
        "SELECT *\nFROM read_parquet({files}, union_by_name = true){conditions}\nORDER BY {time} DESC\nLIMIT {limit};"
    )
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
