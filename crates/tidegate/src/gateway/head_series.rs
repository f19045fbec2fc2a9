//! The limits on the series of tenants, and the query for their numbers.

use super::workers::Workers;
use crate::Failure;
use std::sync::Arc;
use tidegate_admission::{GateRules, HeadSeriesGate};
use tidegate_arena::{MemoryPlan, Reservation};
use tidegate_config::{Config, HeadSeriesQuery};
use tidegate_head_series::{QueryCounters, QuerySettings};
use tidegate_json_api::ApiSettings;
use tidegate_limit::{HeadSeries, HeadSeriesLimits};
use tidegate_meters::{Kind, Name, Registry, Value};
use tokio::sync::watch;
use tokio::task::AbortHandle;

const FAILED: Name = Name::plain(
    "head_series_failed_queries",
    "Queries for the head series of tenants that failed (`limits.head_series`)",
);
const UNKNOWN: Name = Name::plain(
    "head_series_unknown_requests",
    "Requests of tenants with a limit on head series that were let in since their number was not known",
);
const LEFT_OUT: Name = Name::plain(
    "head_series_tenants_left_out",
    "Tenants of the last answer that are not limited since there are too many",
);
const REFUSED: Name = Name::plain(
    "head_series_refused_requests",
    "Requests refused since their tenant has as many head series as it may have",
);
const THANOS_FAILED: Name = Name::plain(
    "thanos_receive_metamonitoring_failed_queries",
    "The total number of meta-monitoring queries that failed while limiting",
)
.exact();
const THANOS_REFUSED: Name = Name::plain(
    "thanos_receive_head_series_limited_requests",
    "The total number of remote write requests that have been dropped due to active series limiting",
)
.exact();
const THANOS_LIMIT: Name = Name::plain(
    "thanos_receive_head_series_limit",
    "The configured limit for active (head) series of tenants",
)
.exact();
/// The most series of each metric.
const MOST_SERIES: usize = 17;

/// The query that runs, where there are tenants.
pub(super) struct HeadSeriesQueries {
    settings: watch::Sender<Option<QuerySettings>>,
    task: AbortHandle,
}

/// The limits of the configuration.
pub(super) fn limits(config: &Config) -> HeadSeriesLimits {
    let overrides = config.tenants.overrides.iter();
    let own =
        overrides.filter_map(|(name, tenant)| Some((name.as_str().to_owned(), tenant.head_series?.into())));
    HeadSeriesLimits { default: config.tenants.head_series.into(), overrides: own.collect() }
}

/// What refuses requests by these limits, where there are tenants.
pub(super) fn gate(config: &Config) -> Option<Arc<HeadSeriesGate>> {
    config.has_tenants().then(|| Arc::new(HeadSeriesGate::new(HeadSeries::new(limits(config)))))
}

/// Declares the memory of the numbers and of the query.
pub(super) fn declare(plan: &mut MemoryPlan, config: &Config) {
    if config.limits.head_series.is_none() || !config.has_tenants() {
        return;
    }
    let line = |what, each: usize| Reservation {
        owner: "tenants",
        what,
        count: 1,
        each: each as u64,
        setting: Some("limits.head_series"),
    };
    plan.declare(line("head series of each, and new ones beside them", HeadSeriesGate::BYTES));
    plan.declare(line("the query for the head series", tidegate_head_series::planned_bytes()));
}

/// The files that the query has open.
pub(super) fn files(config: &Config) -> u64 {
    if config.limits.head_series.is_some() { 2 } else { 0 }
}

/// The settings of the query.
///
/// # Errors
/// When the URL cannot be used.
pub(super) fn settings(config: &Config) -> Result<Option<QuerySettings>, Failure> {
    let Some(HeadSeriesQuery { url, query, interval, token_file, ca_file }) = &config.limits.head_series
    else {
        return Ok(None);
    };
    let url = url.expose().parse();
    let url = url.map_err(|error| Failure(format!("`limits.head_series.url` cannot be used: {error}")))?;
    let api = ApiSettings {
        url,
        token: token_file.clone(),
        ca: ca_file.clone(),
        certificate: None,
        server_name: None,
    };
    Ok(Some(QuerySettings { api, query: query.as_str().to_owned(), interval: interval.get() }))
}

impl HeadSeriesQueries {
    /// Begins to ask, where there are tenants, and publishes how that goes: also by Thanos' names where `by_thanos_names`.
    ///
    /// # Errors
    /// When the settings cannot be used.
    pub(super) fn start(
        config: &Config,
        rules: &GateRules,
        workers: &Workers,
        registry: &Registry,
        by_thanos_names: bool,
    ) -> Result<Option<HeadSeriesQueries>, Failure> {
        let Some(gate) = &rules.head_series else { return Ok(None) };
        let counters = Arc::new(QueryCounters::default());
        publish(registry, gate, &counters, by_thanos_names);
        let (sender, receiver) = watch::channel(settings(config)?);
        let asking = tidegate_head_series::run(receiver, Arc::clone(gate), counters);
        let task = workers.worker(0).spawn(asking).abort_handle();
        Ok(Some(HeadSeriesQueries { settings: sender, task }))
    }

    /// The words for the task if it has ended.
    pub(super) fn watched(&self) -> impl Fn() -> Option<String> + Send + 'static {
        let task = self.task.clone();
        move || task.is_finished().then(|| "the query for head series".to_owned())
    }

    /// Asks by other settings from now on.
    pub(super) fn change(&self, settings: Option<QuerySettings>) {
        self.settings.send_if_modified(|current| {
            let is_other = *current != settings;
            *current = settings;
            is_other
        });
    }
}

fn publish(
    registry: &Registry,
    gate: &Arc<HeadSeriesGate>,
    counters: &Arc<QueryCounters>,
    by_thanos_names: bool,
) {
    let failed = [Some(FAILED), by_thanos_names.then_some(THANOS_FAILED)];
    for name in failed.into_iter().flatten() {
        let counters = Arc::clone(counters);
        registry
            .computed(name, Kind::Counter, [], 1, move |emit| emit([], Value::Counter(counters.failed())));
    }
    let of_answer = Arc::clone(counters);
    registry.computed(LEFT_OUT, Kind::Gauge, [], 1, move |emit| {
        emit([], Value::Gauge(i64::try_from(of_answer.left_out()).unwrap_or(i64::MAX)));
    });
    let unknown = Arc::clone(gate);
    registry.computed(UNKNOWN, Kind::Counter, [], 1, move |emit| emit([], Value::Counter(unknown.unknown())));
    let refused = [Some(REFUSED), by_thanos_names.then_some(THANOS_REFUSED)];
    for name in refused.into_iter().flatten() {
        let gate = Arc::clone(gate);
        registry.computed(name, Kind::Counter, ["tenant"], MOST_SERIES, move |emit| {
            gate.each_refused(|tenant, count| emit([tenant], Value::Counter(count)));
        });
    }
    if by_thanos_names {
        let gate = Arc::clone(gate);
        registry.computed(THANOS_LIMIT, Kind::Gauge, ["tenant"], MOST_SERIES, move |emit| {
            gate.series.each_limit(|tenant, limit| {
                emit([tenant], Value::Gauge(i64::try_from(limit).unwrap_or(i64::MAX)));
            });
        });
    }
}
