//! The series of the source `file`.

use tidegate_meters::{Kind, Name, Registry, Value};
use tidegate_tail::{LossReason, TailMeters};

type Read = fn(&TailMeters) -> u64;

const GAUGES: [(Name, Read); 4] = [
    (Name::plain("file_open_files", "Log files known"), TailMeters::files),
    (Name::plain("file_held_files", "Log files without a name that are held"), TailMeters::held),
    (Name::bytes("file_held", "Length of log files without a name that are held"), TailMeters::held_bytes),
    (
        Name::plain("file_untracked_files", "Log files not read, because too many are known"),
        TailMeters::untracked,
    ),
];

const COUNTERS: [(Name, Read); 13] = [
    (Name::bytes("file_read", "Log files read, durably"), TailMeters::bytes),
    (Name::plain("file_records", "Records of log files, durable"), TailMeters::records),
    (Name::plain("file_truncations", "Log files found truncated"), TailMeters::truncations),
    (Name::plain("file_rotations", "Log files that were renamed away or deleted"), TailMeters::rotations),
    (Name::plain("file_compressed_skipped", "Compressed log files not read"), TailMeters::skipped_compressed),
    (
        Name::plain("file_watch_overflows", "Times that the kernel lost changes of files"),
        TailMeters::overflows,
    ),
    (Name::plain("file_retries", "Batches that were refused and read again"), TailMeters::retries),
    (Name::plain("file_errors", "Failures to open or read a log file"), TailMeters::errors),
    (Name::plain("file_lines_cut", "Lines cut to the longest allowed"), TailMeters::cut),
    (Name::plain("file_lines_dropped", "Lines dropped because they were too long"), TailMeters::dropped),
    (Name::plain("file_lines_invalid_text", "Records with invalid text"), TailMeters::invalid_text),
    (Name::plain("file_lines_malformed", "Lines without the format of their file"), TailMeters::malformed),
    (Name::plain("file_records_too_large", "Records too large for the sinks"), TailMeters::too_large),
];

const LOST: Name = Name::bytes("file_lost", "Log files that were never read, by reason");

/// Publishes the counters of a reader.
pub(super) fn publish(registry: &Registry, meters: &TailMeters) {
    for (name, read) in GAUGES {
        let meters = meters.clone();
        registry.computed(name, Kind::Gauge, [], 1, move |emit| {
            emit([], Value::Gauge(i64::try_from(read(&meters)).unwrap_or(i64::MAX)));
        });
    }
    for (name, read) in COUNTERS {
        let meters = meters.clone();
        registry.computed(name, Kind::Counter, [], 1, move |emit| emit([], Value::Counter(read(&meters))));
    }
    let meters = meters.clone();
    registry.computed(LOST, Kind::Counter, ["reason"], LossReason::ALL.len(), move |emit| {
        for reason in LossReason::ALL {
            emit([reason.as_str()], Value::Counter(meters.lost(reason)));
        }
    });
}
