//! The fleet: its agents, and what has happened.

use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tidegate_fleet::{Fleet, FleetFiles, FleetView, MOST_VERSIONS, PolicyView, RolloutView};
use tidegate_meters::{Kind, Name, Registry, Value};

/// The most policies that have series.
const MOST_POLICIES: usize = 256;
/// The words of agents for their health.
const MOST_STATUSES: usize = 8;
/// The agents are counted once for all meters of an answer.
const COUNTED_FOR: Duration = Duration::from_secs(1);

const AGENTS: Name = Name::plain("fleet_agents", "Agents, by what they say of their health");
const VERSIONS: Name = Name::plain("fleet_agents_by_version", "Agents, by version");
const WAITING: Name = Name::plain("fleet_agents_waiting", "Agents whose check-in waits for something to do");
const IN_ROLLOUT: Name = Name::plain("fleet_agents_in_rollout", "Agents that are about to get a policy");
const ENROLLED: Name = Name::plain("fleet_enrollments", "Agents that have enrolled");
const CHECK_INS: Name = Name::plain("fleet_check_ins", "Check-ins of agents");
const ACKNOWLEDGED: Name = Name::plain("fleet_acknowledgements", "Acknowledgements of agents");
const DELIVERED: Name = Name::plain("fleet_policies_delivered", "Policies handed to agents");
const REFUSED: Name = Name::plain(
    "fleet_requests_refused",
    "Requests and connections of agents that were refused before they were looked into",
);
const POLICY_AGENTS: Name = Name::plain("fleet_policy_agents", "Agents that have a policy");
const POLICY_CURRENT: Name =
    Name::plain("fleet_policy_agents_up_to_date", "Agents that have the newest revision of a policy");
const FILES: Name = Name::bytes("fleet_files", "Room on the disk that files of the fleet have in use");
const FILES_ROOM: Name = Name::bytes("fleet_files_room", "Room on the disk for files of the fleet");
const POLICY_ROLLOUT: Name = Name::plain(
    "fleet_policy_rollout_seconds",
    "Time from putting a policy until a share of the agents that had an older revision had the new one",
);

/// Room on the disk: in use, and in all, in bytes.
type Room = (u64, u64);
/// Reads a meter from what it is about.
type Read<T, V> = fn(&T) -> V;

/// Publishes the fleet.
pub(in crate::gateway) fn publish(registry: &Registry, fleet: &Arc<Fleet>, files: &Arc<FleetFiles>) {
    let of_room: [(Name, Read<Room, u64>); 2] = [(FILES, |(used, _)| *used), (FILES_ROOM, |(_, all)| *all)];
    for (name, read) in of_room {
        let files = Arc::downgrade(files);
        registry.computed(name, Kind::Gauge, [], 1, move |emit| {
            let room = files.upgrade().map(|files| read(&files.room()));
            room.iter().for_each(|bytes| emit([], Value::Gauge(i64::try_from(*bytes).unwrap_or(i64::MAX))));
        });
    }
    let counts = Arc::new(Counts { fleet: Arc::downgrade(fleet), last: Mutex::new(None) });
    let levels: [(Name, Read<FleetView, usize>); 2] =
        [(WAITING, |view| view.waiting), (IN_ROLLOUT, |view| view.in_rollout)];
    for (name, read) in levels {
        counts.publish(registry, (name, Kind::Gauge), [], 1, move |view, _, emit| {
            emit([], level(read(view)));
        });
    }
    let totals: [(Name, Read<FleetView, u64>); 5] = [
        (ENROLLED, |view| view.enrolled),
        (CHECK_INS, |view| view.check_ins),
        (ACKNOWLEDGED, |view| view.acknowledged),
        (DELIVERED, |view| view.policies_delivered),
        (REFUSED, |view| view.refused),
    ];
    for (name, read) in totals {
        counts.publish(registry, (name, Kind::Counter), [], 1, move |view, _, emit| {
            emit([], Value::Counter(read(view)));
        });
    }
    counts.publish(registry, (AGENTS, Kind::Gauge), ["status"], MOST_STATUSES, |view, _, emit| {
        view.by_status.iter().for_each(|(status, agents)| emit([status], level(*agents)));
    });
    counts.publish(registry, (VERSIONS, Kind::Gauge), ["version"], MOST_VERSIONS, |view, _, emit| {
        view.by_version.iter().for_each(|(version, agents)| emit([version], level(*agents)));
    });
    let of_policies: [(Name, Read<PolicyView, usize>); 2] =
        [(POLICY_AGENTS, |policy| policy.agents), (POLICY_CURRENT, |policy| policy.up_to_date)];
    for (name, read) in of_policies {
        counts.publish(registry, (name, Kind::Gauge), ["policy"], MOST_POLICIES, move |_, policies, emit| {
            policies.iter().take(MOST_POLICIES).for_each(|policy| emit([&policy.id], level(read(policy))));
        });
    }
    let most = 3 * MOST_POLICIES;
    let meter = (POLICY_ROLLOUT, Kind::Gauge);
    counts.publish(registry, meter, ["policy", "agents"], most, |_, policies, emit| {
        for policy in policies.iter().take(MOST_POLICIES) {
            let shares = policy.rollout.iter().flat_map(rollout_seconds);
            shares.for_each(|(share, seconds)| emit([&policy.id, share], seconds));
        }
    });
}

/// The counts of the moment.
struct Counts {
    fleet: Weak<Fleet>,
    last: Mutex<Option<Counted>>,
}

/// The fleet when it was counted last.
struct Counted {
    at: Instant,
    view: FleetView,
    policies: Vec<PolicyView>,
}

impl Counts {
    /// Publishes a meter that `show` reads from the counts.
    fn publish<const N: usize>(
        self: &Arc<Self>,
        registry: &Registry,
        (name, kind): (Name, Kind),
        labels: [&'static str; N],
        most: usize,
        show: impl Fn(&FleetView, &[PolicyView], &mut dyn FnMut([&str; N], Value)) + Send + Sync + 'static,
    ) {
        let counts = Arc::clone(self);
        registry.computed(name, kind, labels, most, move |emit| {
            let Some(fleet) = counts.fleet.upgrade() else { return };
            let mut last = counts.last.lock().unwrap_or_else(PoisonError::into_inner);
            let counted = last.take().filter(|last| last.at.elapsed() < COUNTED_FOR);
            let counted = counted.unwrap_or_else(|| Counted {
                at: Instant::now(),
                view: fleet.view(),
                policies: fleet.list_policies(),
            });
            let counted = last.insert(counted);
            show(&counted.view, &counted.policies, emit);
        });
    }
}

/// The shares of the agents that have the newest revision, and how long each took, rounded up.
fn rollout_seconds(rollout: &RolloutView) -> impl Iterator<Item = (&'static str, Value)> {
    let RolloutView { half_seconds, ninety_nine_percent_seconds, last_seconds, .. } = *rollout;
    let shares = [("0.5", half_seconds), ("0.99", ninety_nine_percent_seconds), ("1", last_seconds)];
    shares.into_iter().filter_map(|(share, seconds)| Some((share, Value::Gauge(seconds?.ceil() as i64))))
}

fn level(value: usize) -> Value {
    Value::Gauge(i64::try_from(value).unwrap_or(i64::MAX))
}
