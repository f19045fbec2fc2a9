//! The series of the watch of pods.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate_kube_pods::{Counters, PodTable};
use tidegate_meters::{Kind, Name, Registry, Value};

type Counter = fn(&Counters) -> &AtomicU64;

const COUNTERS: [(Name, Counter); 7] = [
    (Name::plain("kubernetes_api_lists", "Lists of the node's pods begun"), |counters| &counters.lists),
    (Name::plain("kubernetes_api_watches", "Watches of the node's pods begun"), |counters| &counters.watches),
    (Name::plain("kubernetes_api_expired", "Versions that the Kubernetes API had forgotten"), |counters| {
        &counters.expired
    }),
    (Name::plain("kubernetes_api_failures", "Requests to the Kubernetes API that failed"), |counters| {
        &counters.failures
    }),
    (Name::plain("kubernetes_api_events", "Events of pods"), |counters| &counters.events),
    (
        Name::plain(
            "kubernetes_pod_fields_left_out",
            "Labels and containers left out of pods that are too large",
        ),
        |counters| &counters.left_out,
    ),
    (Name::plain("kubernetes_pods_not_kept", "Pods for which there was no memory"), |counters| {
        &counters.not_kept
    }),
];

const PODS: Name = Name::plain("kubernetes_pods", "Pods whose metadata is known, deleted ones included");

/// Publishes the counters of the watch.
pub(super) fn publish(registry: &Registry, pods: &PodTable) {
    for (name, counter) in COUNTERS {
        let pods = pods.clone();
        registry.computed(name, Kind::Counter, [], 1, move |emit| {
            emit([], Value::Counter(counter(pods.counters()).load(Relaxed)));
        });
    }
    let pods = pods.clone();
    registry.computed(PODS, Kind::Gauge, [], 1, move |emit| {
        emit([], Value::Gauge(i64::try_from(pods.len_and_bytes().0).unwrap_or(i64::MAX)));
    });
}
