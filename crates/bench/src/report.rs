//! The figures as people read them, and as programs do.

use crate::Args;
use crate::Failure;
use crate::figure::{Bar, Figure};
use crate::subject::Program;
use serde_json::{Value, json};

/// A table in Markdown that is readable as it is.
pub(crate) fn table(figures: &[Figure]) -> String {
    let head = ["what", "bar", "measured", "of the bar", ""].map(str::to_owned);
    let rows: Vec<[String; 5]> = std::iter::once(head).chain(figures.iter().map(row)).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; 5] = std::array::from_fn(width);
    let mut text = String::new();
    for (number, row) in rows.iter().enumerate() {
        for (cell, width) in row.iter().zip(widths) {
            text.push_str(&format!("| {cell:<width$} "));
        }
        text.push_str("|\n");
        if number == 0 {
            widths.iter().for_each(|width| text.push_str(&format!("|{}", "-".repeat(width + 2))));
            text.push_str("|\n");
        }
    }
    for figure in figures {
        let details: Vec<String> =
            figure.details.iter().map(|(name, value)| format!("{name} {}", number(*value))).collect();
        if !details.is_empty() {
            text.push_str(&format!("\n- {}: {}", figure.name, details.join(", ")));
        }
    }
    text.push('\n');
    text
}

fn row(figure: &Figure) -> [String; 5] {
    let words = match figure.bar {
        Bar::AtMost(_) => "at most",
        Bar::AtLeast(_) => "at least",
    };
    let of_bar = figure.measured / figure.bar.value();
    [
        figure.what.clone(),
        format!("{words} {}", number(figure.bar.value())),
        number(figure.measured),
        if of_bar.is_finite() { format!("{:.0} %", of_bar * 100.0) } else { String::new() },
        if figure.bar.is_met(figure.measured) { "met" } else { "missed" }.to_owned(),
    ]
}

/// As many digits as say something.
fn number(value: f64) -> String {
    match value.abs() {
        0.0 => "0".to_owned(),
        small if small < 10.0 => format!("{value:.2}"),
        middle if middle < 100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Everything that is known, in JSON.
pub(crate) fn json(figures: &[Figure], args: &Args, subject: &Program) -> Result<String, Failure> {
    let figures = figures.iter().map(|figure| {
        let details: serde_json::Map<String, Value> =
            figure.details.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
        json!({
            "name": figure.name,
            "what": figure.what,
            "bar": figure.bar.value(),
            "at_most": matches!(figure.bar, Bar::AtMost(_)),
            "measured": figure.measured,
            "met": figure.bar.is_met(figure.measured),
            "details": details,
        })
    });
    let all = json!({
        "version": subject.version,
        "at": jiff::Timestamp::now().to_string(),
        "seconds": args.seconds,
        "quick": args.quick,
        "machine": { "processor": processor(), "cores": cores(), "kernel": kernel() },
        "figures": figures.collect::<Vec<_>>(),
    });
    Ok(serde_json::to_string_pretty(&all)? + "\n")
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn processor() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = info.lines().find_map(|line| line.strip_prefix("model name"));
    name.unwrap_or_default().trim_start_matches(['\t', ' ', ':']).to_owned()
}

fn kernel() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_shows_met_and_missed_targets() {
        let figure = |bar, measured| Figure {
            name: "idle",
            what: "resident memory, MiB".to_owned(),
            bar,
            measured,
            details: vec![("rounds", 3.0)],
        };
        let text = table(&[figure(Bar::AtMost(12.0), 9.5), figure(Bar::AtLeast(0.8), 0.5)]);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[2].contains("at most 12.0") && lines[2].contains("9.50") && lines[2].contains("| met"));
        assert!(
            lines[3].contains("at least 0.80") && lines[3].contains("62 %") && lines[3].contains("missed")
        );
        assert_eq!(lines[0].len(), lines[2].len(), "columns are aligned");
        assert!(text.contains("- idle: rounds 3.00"));
    }
}
