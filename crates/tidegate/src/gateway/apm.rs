//! The source `elastic_apm`, as configured.

use crate::Failure;
use tidegate_arena::Arena;
use tidegate_config::{Config, Name};
use tidegate_ledger::Ledger;
use tidegate_pool::Pool;
use tidegate_sources::{AgentSettings, ApmLimits, ElasticApm, Strangers};

/// The source that `config` says, for bodies of up to `max_body` bytes.
pub(super) fn source(
    config: &Config,
    max_body: usize,
    ledger: &Ledger,
    arena: &Arena,
    pool: &Pool,
) -> Result<ElasticApm, Failure> {
    let source = &config.sources.elastic_apm;
    let limits = ApmLimits {
        max_body,
        max_event: source.max_event.as_usize(),
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
