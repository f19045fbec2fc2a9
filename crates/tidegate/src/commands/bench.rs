//! `tidegate bench`: what this gateway costs, each figure against its bar.
//!
//! A gateway under test is a process of its own, measured from outside (`/proc`); the load, the receiver
//! and whatever a figure is compared with are in this one. Machines differ and are rarely quiet: so what
//! is compared is measured in turns within one run, processor time is used rather than time, and of
//! several rounds the median counts.

mod allocations;
mod apm;
mod backlog;
mod bare;
mod connections;
mod cpu;
mod durability;
mod elasticsearch;
mod figure;
mod idle;
mod observation;
mod otlp;
mod report;
mod storm;
mod subject;
mod tls;
mod traffic;
mod uploads;

use crate::cli::BenchArgs;
use crate::{Failure, Outcome, output};
use figure::{Bench, Figure, Row};

/// Everything that can be measured, in the order in which it is.
const ROWS: [Row; 16] = [
    cpu::FORWARDING,
    cpu::INGEST,
    durability::ROW,
    allocations::ROW,
    otlp::INGEST,
    otlp::FORWARDING,
    otlp::ALLOCATIONS,
    apm::ROW,
    uploads::ROW,
    elasticsearch::ROW,
    storm::ROW,
    connections::ROW,
    tls::ROW,
    idle::ROW,
    observation::ROW,
    backlog::ROW,
];

/// `tidegate bench`
pub(crate) fn bench(args: &BenchArgs) -> Outcome {
    let rows = chosen(&args.names)?;
    if args.list {
        let lines = rows.iter().map(|row| format!("{:<16}{}\n", row.name, row.what));
        return Ok(output::print(&lines.collect::<String>())?);
    }
    let bench = Bench::new(args)?;
    let mut figures: Vec<Figure> = Vec::new();
    for row in rows {
        tracing::info!(row = row.name, "measuring: {}", row.what);
        let measured = (row.measure)(&bench)
            .map_err(|Failure(message)| Failure(format!("measuring `{}`: {message}", row.name)))?;
        figures.extend(measured);
    }
    output::print(&report::table(&figures))?;
    if let Some(file) = &args.output {
        let written = std::fs::write(file, report::json(&figures, args)?);
        written.map_err(|error| format!("writing the figures to {}: {error}", file.display()))?;
    }
    Ok(())
}

/// The rows of these names; all of them when there is none.
fn chosen(names: &[String]) -> Result<Vec<&'static Row>, Failure> {
    const { assert!(!ROWS.is_empty()) };
    if names.is_empty() {
        return Ok(ROWS.iter().collect());
    }
    let row = |name: &String| {
        ROWS.iter().find(|row| row.name == name).ok_or_else(|| {
            let known: Vec<&str> = ROWS.iter().map(|row| row.name).collect();
            Failure(format!("nothing is measured under the name `{name}`; there are: {}", known.join(", ")))
        })
    };
    names.iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_by_name_and_an_unknown_name_is_answered_with_the_known_ones() {
        assert_eq!(chosen(&[]).unwrap().len(), ROWS.len());
        let some = chosen(&["idle".to_owned(), "fsync".to_owned()]).unwrap();
        assert_eq!(some.iter().map(|row| row.name).collect::<Vec<_>>(), ["idle", "fsync"]);
        let Err(Failure(message)) = chosen(&["speed".to_owned()]) else { panic!("there is no such row") };
        assert!(message.contains("`speed`") && message.contains("allocations"), "{message}");
    }
}
