use std::path::{Path, PathBuf};

use super::{Signal, SinkRouting, SinkSample, SinkSettings};
use crate::checks::SinkCheck;
use crate::declare::settings;
use crate::model::Durability;
use crate::values::{Bytes, Duration};

settings! {
    /// A lake of Parquet files.
    pub struct LakeSink with routing: SinkRouting {
        /// The lake's folder. Default: `lake` in the folder `data`.
        path: Option<PathBuf> = None,
        /// Whether the folder's group may read the lake: files get mode 0640 and folders 0750, instead of 0600 and
        /// 0700. Requires a `path` outside of `data`, which only the gateway may enter.
        group_readable: bool = false,
        /// Signals to store; the sink skips everything else. There is no table for profiles.
        signals: Vec<Signal> = vec![Signal::Traces, Signal::Metrics, Signal::Logs],
        /// When old data is deleted, in whole hours of receipt: as soon as one of the two limits is exceeded.
        retention: Retention = Retention::default(),
        /// Longest time before a file is finished and becomes readable.
        file_age: Duration [Duration::seconds(1)..=Duration::hours(1)] = Duration::seconds(60),
        /// Size at which a file is finished; earlier when a quarter of `journal.quota` waits for it.
        file_bytes: Bytes [Bytes::mib(1)..=Bytes::gib(4)] = Bytes::mib(128),
        /// The part of the traces that it takes, decided when they are complete. Default: all.
        sample: Option<SinkSample> = None,
    }
}

settings! {
    /// When old files of a lake are deleted.
    pub struct Retention {
        /// How long to keep an hour after its end; all files with data received in that hour are deleted together.
        /// The newest hour is always kept.
        age: Duration [Duration::hours(1)..=Duration::days(3_650)] = Duration::days(7),
        /// Largest size of the lake; beyond it the oldest hours are deleted. The newest hour is always kept.
        bytes: Bytes [Bytes::mib(1)..=Bytes::gib(1 << 20)] = Bytes::gib(20),
    }
}

impl LakeSink {
    /// The lake's folder, when `data` is the data folder.
    pub fn folder(&self, data: &Path) -> PathBuf {
        self.path.clone().unwrap_or_else(|| data.join("lake"))
    }
}

impl SinkSettings for LakeSink {
    fn routing(&self) -> Option<&SinkRouting> {
        Some(&self.routing)
    }

    fn sample(&self) -> Option<&SinkSample> {
        self.sample.as_ref()
    }

    fn signals(&self) -> &[Signal] {
        &self.signals
    }

    fn folder(&self, data: &Path) -> Option<PathBuf> {
        Some(LakeSink::folder(self, data))
    }

    fn check(&self, check: &mut SinkCheck<'_>) {
        let (name, config) = (check.name, check.config);
        if config.journal.durability == Durability::Memory {
            check.clash_with(
                ["journal", "durability"],
                format!(
                    "`journal.durability: memory` and the lake `{name}` cannot be combined: a request would wait until the lake has finished a file, which takes minutes"
                ),
                "set `durability: page_cache` or `fsync`, or configure `sinks` without a lake",
            );
        }
        if self.signals.contains(&Signal::Profiles) {
            check.clash(
                "signals",
                format!("`sinks.{name}.signals` contains profiles, but a lake has no table for them"),
                "remove them; a sink of type `otlp` accepts profiles",
            );
        }
        if self.group_readable && LakeSink::folder(self, &config.data).starts_with(&config.data) {
            check.clash_or_sink(
                "group_readable",
                format!(
                    "the lake `{name}` is in the folder `data` ({}), which nobody but the gateway can enter",
                    config.data.display()
                ),
                "give the lake a `path` of its own outside of `data`",
            );
        }
        if self.retention.bytes < self.file_bytes {
            check.clash_or_sink(
                "retention",
                format!(
                    "`sinks.{name}.retention.bytes` ({}) is less than one file ({})",
                    self.retention.bytes, self.file_bytes
                ),
                "raise it, or lower `file_bytes`",
            );
        }
    }
}
