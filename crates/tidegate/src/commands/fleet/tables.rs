//! Tables of JSON objects.

use serde_json::Value;
use std::fmt::Write as _;

/// A line for each row, with these columns.
pub(super) fn table(columns: &[&str], rows: &[&Value]) -> String {
    let heads = columns.iter().map(|column| column.replace('_', " ")).collect();
    let cells = |row: &&Value| columns.iter().map(|column| cell(row.get(*column))).collect();
    let lines: Vec<Vec<String>> = std::iter::once(heads).chain(rows.iter().map(cells)).collect();
    let width = |column: usize| {
        lines.iter().filter_map(|line| line.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns.len()).map(width).collect();
    let mut text = String::new();
    for line in &lines {
        let mut padded = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            let _ = write!(padded, "{cell:<width$}  ");
        }
        let _ = writeln!(text, "{}", padded.trim_end());
    }
    text
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => "no".to_owned(),
        // It may come from an agent.
        Some(Value::String(text)) => tidegate_plain::line(text).into_owned(),
        Some(value) => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn columns_are_aligned() {
        let rows = [json!({"id": "a", "last_seen": "now"}), json!({"id": "long", "last_seen": null})];
        let rows: Vec<&Value> = rows.iter().collect();
        assert_eq!(table(&["id", "last_seen"], &rows), "id    last seen\na     now\nlong  -\n");
    }
}
