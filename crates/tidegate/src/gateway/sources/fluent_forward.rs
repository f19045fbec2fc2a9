//! The source `fluent_forward`.

use super::running::{RunningKind, RunningServices, RunningSource};
use super::{SourceEnvironment, SourceKind};
use crate::Failure;
use std::sync::Arc;
use tidegate_arena::Reservation;
use tidegate_config::{Config, FluentForwardSource};
use tidegate_fluent_forward::{Authentication, ForwardMeters, ForwardService, Settings};
use tidegate_journal::{Protocol, Signal};
use tidegate_log_intake::TaskGroup;
use tidegate_meters::{Kind, Name, Registry, Value};

const MESSAGES: Name = Name::plain("fluent_forward_messages", "Messages whose records are durable");
const ACKNOWLEDGEMENTS: Name =
    Name::plain("fluent_forward_acknowledgements", "Messages that were acknowledged to their clients");
const MALFORMED: Name = Name::plain(
    "fluent_forward_malformed_messages",
    "Messages that were malformed or too long: their connections were closed",
);
const HANDSHAKES: Name =
    Name::plain("fluent_forward_failed_handshakes", "Clients that had another key or password");

pub(super) const KIND: SourceKind = SourceKind {
    name: "fluent_forward",
    max_body_setting: "sources.fluent_forward.max_body",
    max_body: |sources| sources.fluent_forward.max_body.get(),
    max_received: |sources| sources.fluent_forward.max_body.get(),
    records: &[(Protocol::Otlp, Signal::Logs)],
    thread_bytes: 0,
    allowance: |limits| &limits.fluent_forward,
    shown: |config| ("Fluentd forward", shown(&config.sources.fluent_forward)),
    runs: Some(RunningKind {
        is_configured: |config| config.sources.fluent_forward.is_configured(),
        declared,
        files: |config| u64::from(config.sources.fluent_forward.unix.is_some()),
        checkpoints: |_| 0,
        start,
    }),
    start: |http, _| Ok(http),
};

fn shown(source: &FluentForwardSource) -> String {
    let scheme = if source.tls.is_some() { "tls" } else { "tcp" };
    let address = source.address.map(|address| format!("{scheme}://{address}"));
    let unix = source.unix.as_ref().map(ToString::to_string);
    address.into_iter().chain(unix).collect::<Vec<_>>().join("   ")
}

fn declared(config: &Config) -> Vec<Reservation> {
    let each = settings(&config.sources.fluent_forward).bytes() as u64;
    let setting = Some("sources.fluent_forward.max_record");
    vec![Reservation { owner: "fluent_forward", what: "encoding of a record", count: 1, each, setting }]
}

fn settings(source: &FluentForwardSource) -> Settings {
    let authentication = source.shared_key.as_ref().map(|key| Authentication {
        shared_key: key.expose().to_owned(),
        users: source
            .users
            .iter()
            .map(|(name, password)| (name.to_string(), password.expose().to_owned()))
            .collect(),
        hostname: source.hostname.clone(),
    });
    Settings {
        max_message: source.max_body.as_usize(),
        max_record: source.max_record.as_usize(),
        body_keys: source.body_keys.clone(),
        authentication,
        timeout: source.timeout.get(),
    }
}

fn start(
    environment: &SourceEnvironment<'_>,
    services: &mut RunningServices<'_>,
) -> Result<Box<dyn RunningSource>, Failure> {
    let config = environment.config;
    let source = &config.sources.fluent_forward;
    let tenant = source.tenant.as_ref().map(|tenant| tenant.as_str());
    let intake = services.intake(environment, tenant, "sources.fluent_forward.tenant")?;
    let meters = Arc::new(ForwardMeters::default());
    publish(services.registry, &meters);
    let max_message = environment.announced.max_body();
    let settings = Settings { max_message, ..settings(source) };
    let tasks = TaskGroup::new();
    let service = Arc::new(ForwardService::new(settings, intake, meters, tasks.clone()));
    if let Some(address) = source.address {
        let tls = source.tls.as_ref().and_then(|own| config.listen.tls.effective_of(own));
        let place = ("sources.fluent_forward.address".to_owned(), address);
        services.accept_tcp(config, place, tls, Arc::clone(&service) as _)?;
    }
    if let Some(socket) = &source.unix {
        services.accept_unix(("sources.fluent_forward.unix".to_owned(), socket.path()), service)?;
    }
    Ok(Box::new(tasks))
}

/// Reads one of the counters.
type ReadCounter = fn(&ForwardMeters) -> u64;

fn publish(registry: &Registry, meters: &Arc<ForwardMeters>) {
    let counters: [(Name, ReadCounter); 4] = [
        (MESSAGES, ForwardMeters::messages),
        (ACKNOWLEDGEMENTS, ForwardMeters::acknowledgements),
        (MALFORMED, ForwardMeters::malformed_messages),
        (HANDSHAKES, ForwardMeters::failed_handshakes),
    ];
    for (name, value) in counters {
        let meters = Arc::clone(meters);
        registry.computed(name, Kind::Counter, [], 1, move |emit| {
            emit([], Value::Counter(value(&meters)));
        });
    }
}
