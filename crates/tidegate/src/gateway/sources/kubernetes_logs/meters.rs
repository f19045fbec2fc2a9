//! The series of the source `kubernetes_logs`.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use tidegate_kube_pods::{Counters, PodTable};
use tidegate_meters::{Kind, Name, Registry, Value};
use tidegate_tail::{LossReason, TailMeters};

const GAUGES: [(Name, fn(&TailMeters) -> u64); 3] = [
    (Name::plain("kubernetes_logs_open_files", "Container logs known"), TailMeters::files),
    (
        Name::plain("kubernetes_logs_held_files", "Container logs without a name that are held"),
        TailMeters::held,
    ),
    (
        Name::plain("kubernetes_logs_untracked_files", "Container logs not read, because too many are known"),
        TailMeters::untracked,
    ),
];

const OF_FILES: [(Name, fn(&TailMeters) -> u64); 13] = [
    (Name::bytes("kubernetes_logs_read", "Container logs read, durably"), TailMeters::bytes),
    (Name::plain("kubernetes_logs_records", "Records of container logs, durable"), TailMeters::records),
    (
        Name::plain("kubernetes_logs_rotations", "Container logs that were rotated or deleted"),
        TailMeters::rotations,
    ),
    (Name::plain("kubernetes_logs_truncations", "Container logs found truncated"), TailMeters::truncations),
    (
        Name::plain("kubernetes_logs_compressed_skipped", "Compressed container logs not read"),
        TailMeters::skipped_compressed,
    ),
    (
        Name::plain("kubernetes_logs_watch_overflows", "Times that the kernel lost changes of files"),
        TailMeters::overflows,
    ),
    (Name::plain("kubernetes_logs_retries", "Batches that were refused and read again"), TailMeters::retries),
    (Name::plain("kubernetes_logs_errors", "Failures to open or read a container's log"), TailMeters::errors),
    (Name::plain("kubernetes_logs_lines_cut", "Lines cut to the longest allowed"), TailMeters::cut),
    (
        Name::plain("kubernetes_logs_lines_dropped", "Lines dropped because they were too long"),
        TailMeters::dropped,
    ),
    (
        Name::plain("kubernetes_logs_lines_invalid_text", "Records with invalid text"),
        TailMeters::invalid_text,
    ),
    (
        Name::plain("kubernetes_logs_records_too_large", "Records too large for the sinks"),
        TailMeters::too_large,
    ),
    (
        Name::plain("kubernetes_logs_lines_malformed", "Lines without the format of their file"),
        TailMeters::malformed,
    ),
];

const OF_API: [(Name, fn(&Counters) -> &AtomicU64); 7] = [
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
const LOST: Name = Name::bytes("kubernetes_logs_lost", "Container logs that were never read, by reason");

/// Publishes the counters of the reader and of the watch.
pub(super) fn publish(registry: &Registry, files: &TailMeters, pods: &PodTable) {
    for (name, read) in GAUGES {
        let files = files.clone();
        registry.computed(name, Kind::Gauge, [], 1, move |emit| emit([], Value::Gauge(gauge(read(&files)))));
    }
    for (name, read) in OF_FILES {
        let files = files.clone();
        registry.computed(name, Kind::Counter, [], 1, move |emit| emit([], Value::Counter(read(&files))));
    }
    for (name, counter) in OF_API {
        let pods = pods.clone();
        registry.computed(name, Kind::Counter, [], 1, move |emit| {
            emit([], Value::Counter(counter(pods.counters()).load(Relaxed)));
        });
    }
    let table = pods.clone();
    registry.computed(PODS, Kind::Gauge, [], 1, move |emit| {
        emit([], Value::Gauge(gauge(table.len_and_bytes().0 as u64)));
    });
    let files = files.clone();
    registry.computed(LOST, Kind::Counter, ["reason"], LossReason::ALL.len(), move |emit| {
        for reason in LossReason::ALL {
            emit([reason.as_str()], Value::Counter(files.lost(reason)));
        }
    });
}

fn gauge(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
