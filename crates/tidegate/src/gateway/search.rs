//! Searches in the journal and the lake, each in a process of its own: what columns of a file or records of the journal take is not
//! known beforehand.

use super::bounded_process::{self, BoundedCommand, MIB};
use super::plan::{self, GatewayPlan};
use super::search_pace::SearchPace;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::{Arena, Share};
use tidegate_config::{Bytes, Config, Durability, Sink};
use tidegate_console::{LONGEST_SEARCH_ANSWER, ProcessError, ProcessInput, ProcessOutput};
use tidegate_http1::Body;
use tidegate_search::Order;

/// How long a search looks for rows: the answer has those that were found by then.
const TIME: Duration = Duration::from_secs(10);

/// The command that searches.
const SEARCH: BoundedCommand = BoundedCommand {
    arguments: &["search-process"],
    sizes: &[(32 * MIB, 16 * MIB), (24 * MIB, 12 * MIB), (16 * MIB, 8 * MIB), (12 * MIB, 4 * MIB)],
    wait: Duration::from_secs(2),
    wall_time: Duration::from_secs(25),
};

/// Where to search, as `config` says.
pub(super) fn order(config: &Config, kind: &'static str, journal_id: u64) -> Order {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let lake = config.sinks.iter().find_map(|(name, sink)| match sink {
        Sink::Lake(lake) => Some((name, absolute(&lake.folder(&config.data)))),
        _ => None,
    });
    let lake_sink = lake.as_ref().map(|(name, _)| name.to_string()).unwrap_or_default();
    let is_on_disk = config.journal.durability != Durability::Memory;
    Order {
        kind: kind.to_owned(),
        journal: is_on_disk.then(|| absolute(&config.data.join("journal"))),
        lake: lake.map(|(_, dir)| dir),
        lake_sink,
        dead_letters: absolute(&config.data.join("dead-letters")),
        node: format!("{journal_id:016x}"),
        answer: LONGEST_SEARCH_ANSWER,
        milliseconds: u64::try_from(TIME.as_millis()).unwrap_or(u64::MAX),
        prompt_milliseconds: 0,
    }
}

/// A warning where no search could ever have its memory, so that each would be refused.
pub(crate) fn shortfall(config: &Config, planned: &GatewayPlan) -> Option<String> {
    let left = |planned: &GatewayPlan| planned.plan.ceiling(Share::Ingest);
    if !config.console.search || left(planned) >= SEARCH.least() {
        return None;
    }
    let sufficient = plan::sufficient(config, planned, |more| left(more) >= SEARCH.least());
    Some(format!(
        "the console refuses searches: they need {}, and `memory: {}` leaves {} for requests and them; it takes {sufficient}",
        Bytes::new(SEARCH.least()),
        planned.budget.bytes,
        Bytes::new(left(planned) / MIB * MIB)
    ))
}

/// Runs a search, promptly while there is time for that, and after a rest otherwise. One runs at a time.
///
/// # Errors
/// [`ProcessError`].
pub(super) async fn run(
    arena: &Arena,
    pace: &SearchPace,
    mut order: Order,
    query: Arc<Body>,
    output: &mut ProcessOutput<'_>,
) -> Result<(), ProcessError> {
    let running = pace.begin().await;
    order.prompt_milliseconds = running.prompt_ms;
    let mut line = serde_json::to_string(&order).unwrap_or_default();
    line.push('\n');
    let input = vec![ProcessInput::Text(line), ProcessInput::Body(query)];
    bounded_process::run(arena, &SEARCH, input, output).await
}

#[cfg(test)]
mod tests {
    use super::shortfall;
    use crate::gateway::plan;
    use tidegate_console::SEARCHES;
    use tidegate_search::Kind;

    /// Where a search could never have its memory, it is said, with an amount that suffices and one MiB less that does not.
    #[test]
    fn too_little_memory_for_searches_is_said() {
        let of = |memory: &str, more: &str| {
            let text = format!("memory: {memory}\n{more}\nsinks: {{lake: {{type: lake}}}}\n");
            let config = tidegate_config::parse("test", &text, &|_| None).unwrap();
            shortfall(&config, &plan::of(&config))
        };
        let fleet = "listen: {fleet: {address: '127.0.0.1:8220'}}";
        let said = of("96MiB", fleet).unwrap();
        let sufficient = said.rsplit_once("it takes ").unwrap().1;
        assert_eq!(of(sufficient, fleet), None);
        let less = sufficient.trim_end_matches("MiB").parse::<u64>().unwrap() - 1;
        assert!(of(&format!("{less}MiB"), fleet).is_some(), "{said}");
        assert_eq!(of("96MiB", ""), None);
        assert_eq!(of("96MiB", &format!("{fleet}\nconsole: {{search: false}}")), None);
    }

    #[test]
    fn the_console_knows_all_kinds() {
        assert_eq!(SEARCHES, Kind::ALL.map(Kind::name));
    }
}
