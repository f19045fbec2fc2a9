//! The members that sinks spread items over.

use crate::gateway::status::StatusView;
use std::sync::Arc;
use std::time::SystemTime;
use tidegate_meters::{Kind, Name, Value};
use tidegate_sinks::{ConflictReason, MemberReport};

/// The most members of all sinks that have series.
const MOST: usize = 256;

const BEHIND: Name =
    Name::plain("sink_member_behind", "1 while what a member is to get goes to disk first, else 0");
const IN_FLIGHT: Name = Name::plain("sink_member_in_flight", "Requests under way to a member");
const DELIVERED: Name = Name::plain("sink_member_copies_delivered", "Copies of items that a member took");
const REJECTED: Name =
    Name::plain("sink_member_copies_rejected", "Copies of items that a member never takes");
const FAILURES: Name = Name::plain("sink_member_failures", "Attempts at a member that failed");
const HANDED_OFF: Name = Name::bytes("sink_member_handed_off", "Bytes on disk that wait for a member");
const OLDEST: Name =
    Name::seconds("sink_member_handed_off_age", "The age of the oldest data on disk for a member, or 0");
const CONFLICTS: Name = Name::plain(
    "sink_member_conflicts",
    "Copies that a member did not store because of what it has, by reason",
);

type Read = fn(&MemberReport) -> u64;

/// Publishes the members.
pub(super) fn publish(view: &Arc<StatusView>) {
    let meters: [(Name, Kind, Read); 7] = [
        (BEHIND, Kind::Gauge, |member| u64::from(member.is_behind)),
        (IN_FLIGHT, Kind::Gauge, |member| member.in_flight),
        (DELIVERED, Kind::Counter, |member| member.delivered),
        (REJECTED, Kind::Counter, |member| member.rejected),
        (FAILURES, Kind::Counter, |member| member.failures),
        (HANDED_OFF, Kind::Gauge, |member| member.handed_off_bytes),
        (OLDEST, Kind::Gauge, |member| {
            let age = member.oldest.and_then(|oldest| SystemTime::now().duration_since(oldest).ok());
            age.map_or(0, |age| age.as_secs())
        }),
    ];
    for (name, kind, read) in meters {
        let parts = Arc::downgrade(view);
        view.registry.computed(name, kind, ["sink", "member"], MOST, move |emit| {
            let Some(view) = parts.upgrade() else { return };
            for (sink, member) in members(&view) {
                let value = read(&member);
                let value = match kind {
                    Kind::Counter => Value::Counter(value),
                    _ => Value::Gauge(i64::try_from(value).unwrap_or(i64::MAX)),
                };
                emit([&sink, &member.address], value);
            }
        });
    }
    let parts = Arc::downgrade(view);
    let series = MOST * ConflictReason::COUNT;
    view.registry.computed(CONFLICTS, Kind::Counter, ["sink", "member", "reason"], series, move |emit| {
        let Some(view) = parts.upgrade() else { return };
        for (sink, member) in members(&view) {
            for (reason, count) in ConflictReason::ALL.iter().zip(member.conflicts) {
                emit([&sink, &member.address, reason.name()], Value::Counter(count));
            }
        }
    });
}

fn members(view: &StatusView) -> Vec<(String, MemberReport)> {
    let sinks = view.sinks.shown();
    let all = sinks
        .iter()
        .flat_map(|sink| sink.health.members().into_iter().map(|member| (sink.name.clone(), member)));
    all.take(MOST).collect()
}
