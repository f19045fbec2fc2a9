//! Everything that can be measured.

mod allocations;
mod apm;
mod backlog;
mod bare;
mod connections;
mod cpu;
mod derived_metrics;
mod durability;
mod elasticsearch;
mod files;
mod files_idle;
mod fleet;
mod fleet_tls;
mod idle;
mod kubernetes_api;
mod log_lines;
mod observation;
mod opamp;
mod otlp;
mod router;
mod searches;
mod storm;
mod tail_sampling;
mod thanos_router;
mod tls;
mod traffic;
mod turns;
mod unmatched;
mod uploads;

use crate::Failure;
use crate::figure::Row;

/// Everything that can be measured, in the order in which it is.
const ROWS: &[Row] = &[
    cpu::FORWARDING,
    cpu::INGEST,
    router::ROW,
    durability::ROW,
    allocations::ROW,
    otlp::INGEST,
    otlp::FORWARDING,
    otlp::ALLOCATIONS,
    tail_sampling::CPU,
    tail_sampling::MEMORY,
    derived_metrics::CPU,
    unmatched::ROW,
    apm::ROW,
    uploads::ROW,
    elasticsearch::ROW,
    files::PLAIN,
    files::CONTAINER,
    files::KUBERNETES,
    files_idle::ROW,
    storm::ROW,
    fleet::ROW,
    fleet_tls::ROW,
    opamp::ROW,
    searches::ROW,
    connections::ROW,
    tls::ROW,
    idle::ROW,
    observation::ROW,
    backlog::ROW,
];

/// The rows of these names; all of them when there is none.
pub(crate) fn chosen(names: &[String]) -> Result<Vec<&'static Row>, Failure> {
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
