//! The source `elastic_apm`.

use super::{SourceEnvironment, SourceKind};
use crate::Failure;
use std::sync::Arc;
use tidegate_config::{Listener, Name};
use tidegate_journal::{Protocol, Signal};
use tidegate_sources::{AgentSettings, AnonymousAgents, ApmLimits, ElasticApm};

pub(super) const KIND: SourceKind = SourceKind {
    name: "elastic_apm",
    max_body_setting: "sources.elastic_apm.max_body",
    max_body: |sources| sources.elastic_apm.max_body.get(),
    max_received: |sources| sources.elastic_apm.max_body.get(),
    records: &[
        (Protocol::Intake, Signal::Traces),
        (Protocol::Intake, Signal::Metrics),
        (Protocol::Intake, Signal::Logs),
        (Protocol::Intake, Signal::Events),
    ],
    thread_bytes: 0,
    allowance: |limits| &limits.elastic_apm,
    shown: |config| {
        let address = Listener::Apm.address(&config.listen).unwrap_or(config.listen.http);
        ("Elastic APM", format!("http://{address}"))
    },
    runs: None,
    start: |http, parts| Ok(http.with(Arc::new(source(parts)?))),
};

/// The source as it is configured.
fn source(parts: &SourceEnvironment<'_>) -> Result<ElasticApm, Failure> {
    let source = &parts.config.sources.elastic_apm;
    let limits = ApmLimits {
        max_body: parts.announced.max_body(),
        // So that an event which no sink could deliver costs itself and not its neighbours. A quarter is for the
        // metadata that goes with it.
        max_event: source.max_event.as_usize().min(parts.announced.max_item() / 4 * 3),
        rum: source.rum.enabled.then_some(source.rum.events_per_second),
    };
    let text = |(name, value): (&Name, &String)| (name.as_str().to_owned(), value.clone());
    let agents = source.agents.values().map(|agents| AgentSettings {
        service: agents.service.clone(),
        environment: agents.environment.clone(),
        settings: agents.settings.iter().map(text).collect(),
    });
    let (books, arena, pool) = (parts.books.clone(), parts.arena.clone(), parts.pool.clone());
    let made = ElasticApm::new(books, arena, pool, limits, &source.version, agents.collect());
    let made = made.map(|made| match source.rum.anonymous {
        true => made.with_strangers(AnonymousAgents::new(source.rum.anonymous_agents.iter().cloned())),
        false => made,
    });
    made.map_err(|error| {
        Failure(format!("starting the source `elastic_apm`: {error} (`sources.elastic_apm.agents`)"))
    })
}
