//! The source `elastic_apm`, as configured.

use super::plan::Announced;
use crate::Failure;
use tidegate_arena::Arena;
use tidegate_config::{Config, Name};
use tidegate_ledger::Ledger;
use tidegate_pool::Pool;
use tidegate_sources::{AgentSettings, ApmLimits, ElasticApm, Strangers};

/// The source that `config` says, for requests as large as is `announced`.
pub(super) fn source(
    config: &Config,
    announced: &Announced,
    ledger: &Ledger,
    arena: &Arena,
    pool: &Pool,
) -> Result<ElasticApm, Failure> {
    let source = &config.sources.elastic_apm;
    let limits = ApmLimits {
        max_body: announced.max_body(),
        // So that an event which no sink could deliver costs itself and not its neighbours. A quarter is for the
        // metadata that goes with it.
        max_event: source.max_event.as_usize().min(announced.max_item() / 4 * 3),
        rum: source.rum.enabled.then_some(source.rum.events_per_second),
    };
    let text = |(name, value): (&Name, &String)| (name.as_str().to_owned(), value.clone());
    let agents = source.agents.values().map(|agents| AgentSettings {
        service: agents.service.clone(),
        environment: agents.environment.clone(),
        settings: agents.settings.iter().map(text).collect(),
    });
    let books = ledger.source("elastic_apm")?;
    let made = ElasticApm::new(books, arena.clone(), pool.clone(), limits, &source.version, agents.collect());
    let made = made.map(|made| match source.rum.anonymous {
        true => made.with_strangers(Strangers::new(source.rum.anonymous_agents.iter().cloned())),
        false => made,
    });
    made.map_err(|error| {
        Failure(format!("starting the source `elastic_apm`: {error} (`sources.elastic_apm.agents`)"))
    })
}
