//! Searches in the journal and the lake, each in a process of its own: what columns of a file or records of the journal take is not
//! known beforehand.

use super::bounded_process::{self, BoundedCommand, MIB};
use super::plan::{self, GatewayPlan};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tidegate_arena::{Arena, Share};
use tidegate_config::{Bytes, Config, Durability, Sink};
use tidegate_console::{LONGEST_SEARCH_ANSWER, ProcessError, ProcessInput, ProcessOutput};
use tidegate_http1::Body;
use tidegate_limit::{Moment, PerSecond, Rate};
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

/// Processor time that a search may take beside the data, in milliseconds: enough for a short one, which is then answered on a busy machine,
/// too. A longer one runs only where a processor would be idle.
const PROMPT_MS: u64 = 40;
/// What all searches have of it: ten searches at once, and 10 ms for each second without one. A person who looks around gets prompt answers,
/// and programs that search without pause do not take the processors from the data. A search counts as [`PROMPT_MS`], however little it
/// takes.
const PROMPT_OF_ALL: PerSecond = PerSecond { rate: 10, burst: 10 * PROMPT_MS };

/// Prompt answers for those who search now and then, and rests for those who search without pause.
pub(crate) struct SearchPace {
    prompt: Rate,
    /// When the next search may begin that is not prompt.
    rested: Mutex<Instant>,
}

/// How a search begins.
#[derive(Debug, PartialEq, Eq)]
enum Start {
    /// At once, and beside the data at first.
    Prompt,
    /// Then, and only where a processor would be idle.
    At(Instant),
}

impl Default for SearchPace {
    fn default() -> Self {
        SearchPace { prompt: Rate::new(Some(PROMPT_OF_ALL)), rested: Mutex::new(Instant::now()) }
    }
}

impl SearchPace {
    fn start(&self, now: Moment) -> Start {
        match self.prompt.take(now, PROMPT_MS) {
            Ok(()) => Start::Prompt,
            Err(_) => Start::At(*self.rested.lock().unwrap_or_else(PoisonError::into_inner)),
        }
    }

    /// Notes that a search took so long. The next one rests as long: even what runs where a processor would be idle takes caches and memory
    /// bandwidth from the data.
    fn ended(&self, now: Moment, at: Instant, took: Duration) {
        let unearned = took.as_millis() * u128::from(PROMPT_OF_ALL.rate) / 1000;
        self.prompt.charge(now, u64::try_from(unearned).unwrap_or(u64::MAX));
        *self.rested.lock().unwrap_or_else(PoisonError::into_inner) = at + took;
    }
}

/// A search that runs. It ends with its client, too.
struct RunningSearch<'p> {
    pace: &'p SearchPace,
    begun: Instant,
}

impl Drop for RunningSearch<'_> {
    fn drop(&mut self) {
        self.pace.ended(Moment::now(), Instant::now(), self.begun.elapsed());
    }
}

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
    match pace.start(Moment::now()) {
        Start::Prompt => order.prompt_milliseconds = PROMPT_MS,
        Start::At(rested) => tokio::time::sleep_until(rested.into()).await,
    }
    let _running = RunningSearch { pace, begun: Instant::now() };
    let mut line = serde_json::to_string(&order).unwrap_or_default();
    line.push('\n');
    let input = vec![ProcessInput::Text(line), ProcessInput::Body(query)];
    bounded_process::run(arena, &SEARCH, input, output).await
}

#[cfg(test)]
mod tests {
    use super::{SearchPace, Start, shortfall};
    use crate::gateway::plan;
    use std::time::{Duration, Instant};
    use tidegate_console::SEARCHES;
    use tidegate_limit::Moment;
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

    /// Ten searches at once are prompt, then one for every four seconds in which there is none.
    #[test]
    fn searches_without_pause_are_not_prompt() {
        let pace = SearchPace::default();
        let prompt = |second: u64, searches: usize| {
            let now = Moment(second * 1_000_000_000);
            (0..searches).filter(|_| pace.start(now) == Start::Prompt).count()
        };
        assert_eq!(prompt(1_000, 15), 10);
        assert_eq!(prompt(1_003, 1), 0);
        assert_eq!(prompt(1_005, 5), 1);
        assert_eq!(prompt(2_000, 15), 10);
        let (end, took) = (Instant::now(), Duration::from_secs(20));
        pace.ended(Moment(2_020_000_000_000), end, took);
        assert_eq!(pace.start(Moment(2_020_000_000_000)), Start::At(end + took));
        assert_eq!(prompt(2_025, 5), 1);
    }

    #[test]
    fn the_console_knows_all_kinds() {
        assert_eq!(SEARCHES, Kind::ALL.map(Kind::name));
    }
}
