//! The series of a reader of files.

use tidegate_meters::{Kind, Name, Registry, Value};
use tidegate_tail::{LossReason, TailMeters};

type Read = fn(&TailMeters) -> u64;

/// The names of the series of one source.
pub(super) struct TailSeries {
    pub(super) gauges: [(Name, Read); 4],
    pub(super) counters: [(Name, Read); 13],
    pub(super) lost: Name,
}

/// The series whose names begin with `$prefix`, about what is called `$files`.
macro_rules! tail_series {
    ($prefix:literal, $files:literal) => {{
        use tidegate_meters::Name;
        use tidegate_tail::TailMeters;
        $crate::gateway::sources::tail_series::TailSeries {
            gauges: [
                (Name::plain(concat!($prefix, "_open_files"), concat!("Known ", $files)), TailMeters::files),
                (
                    Name::plain(
                        concat!($prefix, "_held_files"),
                        concat!("Held ", $files, ", which have no name any more"),
                    ),
                    TailMeters::held,
                ),
                (
                    Name::bytes(
                        concat!($prefix, "_held"),
                        concat!("Length of ", $files, " without a name that are held"),
                    ),
                    TailMeters::held_bytes,
                ),
                (
                    Name::plain(
                        concat!($prefix, "_untracked_files"),
                        concat!("Unread ", $files, ", because too many are known"),
                    ),
                    TailMeters::untracked,
                ),
            ],
            counters: [
                (
                    Name::bytes(concat!($prefix, "_read"), concat!("Bytes read of ", $files, ", durably")),
                    TailMeters::bytes,
                ),
                (
                    Name::plain(concat!($prefix, "_records"), concat!("Records of ", $files, ", durable")),
                    TailMeters::records,
                ),
                (
                    Name::plain(concat!($prefix, "_truncations"), concat!("Truncations of ", $files)),
                    TailMeters::truncations,
                ),
                (
                    Name::plain(
                        concat!($prefix, "_rotations"),
                        concat!("Rotations of ", $files, ": renamed away or deleted"),
                    ),
                    TailMeters::rotations,
                ),
                (
                    Name::plain(concat!($prefix, "_compressed_skipped"), "Compressed files not read"),
                    TailMeters::skipped_compressed,
                ),
                (
                    Name::plain(
                        concat!($prefix, "_watch_overflows"),
                        "Times that the kernel lost changes of files",
                    ),
                    TailMeters::overflows,
                ),
                (
                    Name::plain(concat!($prefix, "_retries"), "Batches that were refused and read again"),
                    TailMeters::retries,
                ),
                (
                    Name::plain(concat!($prefix, "_errors"), "Failures to open or read a file"),
                    TailMeters::errors,
                ),
                (
                    Name::plain(concat!($prefix, "_lines_cut"), "Lines cut to the longest allowed"),
                    TailMeters::cut,
                ),
                (
                    Name::plain(
                        concat!($prefix, "_lines_dropped"),
                        "Lines dropped because they were too long",
                    ),
                    TailMeters::dropped,
                ),
                (
                    Name::plain(concat!($prefix, "_lines_invalid_text"), "Records with invalid text"),
                    TailMeters::invalid_text,
                ),
                (
                    Name::plain(
                        concat!($prefix, "_lines_malformed"),
                        "Lines without the format of their file",
                    ),
                    TailMeters::malformed,
                ),
                (
                    Name::plain(concat!($prefix, "_records_too_large"), "Records too large for the sinks"),
                    TailMeters::too_large,
                ),
            ],
            lost: Name::bytes(
                concat!($prefix, "_lost"),
                concat!("Bytes of ", $files, " that were never read, by reason"),
            ),
        }
    }};
}

pub(super) use tail_series;

/// Publishes the counters of a reader.
pub(super) fn publish(registry: &Registry, series: TailSeries, meters: &TailMeters) {
    for (name, read) in series.gauges {
        let meters = meters.clone();
        registry.computed(name, Kind::Gauge, [], 1, move |emit| {
            emit([], Value::Gauge(i64::try_from(read(&meters)).unwrap_or(i64::MAX)));
        });
    }
    for (name, read) in series.counters {
        let meters = meters.clone();
        registry.computed(name, Kind::Counter, [], 1, move |emit| emit([], Value::Counter(read(&meters))));
    }
    let meters = meters.clone();
    registry.computed(series.lost, Kind::Counter, ["reason"], LossReason::ALL.len(), move |emit| {
        for reason in LossReason::ALL {
            emit([reason.as_str()], Value::Counter(meters.lost(reason)));
        }
    });
}
