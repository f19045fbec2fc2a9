use std::path::{Path, PathBuf};

use super::Signal;
use crate::declare::settings;
use crate::values::{Bytes, Duration};

settings! {
    /// A lake of Parquet files.
    pub struct LakeSink {
        /// The lake's folder. Without it: `lake` in the folder `data`.
        path: Option<PathBuf> = None,
        /// Whether the group of the lake's folder may read the lake: files get mode 0640 and folders 0750, instead of 0600
        /// and 0700. Needs a `path` outside of `data`, which is the gateway's alone.
        group_readable: bool = false,
        /// What is kept; everything else passes it by. There is no table for profiles.
        signals: Vec<Signal> = vec![Signal::Traces, Signal::Metrics, Signal::Logs],
        /// When what is old is removed, by whole hours of the time at which it was received: whichever comes first.
        retention: Retention = Retention::default(),
        /// The longest time for which a file is filled before it is finished and can be read.
        file_age: Duration [Duration::seconds(1)..=Duration::hours(1)] = Duration::seconds(60),
        /// The size at which a file is finished.
        file_bytes: Bytes [Bytes::mib(1)..=Bytes::gib(4)] = Bytes::mib(128),
    }
}

settings! {
    /// When old files of a lake are removed.
    pub struct Retention {
        /// How long an hour is kept after its end: all files with what was received in it are removed together. The
        /// newest hour always stays.
        age: Duration [Duration::hours(1)..=Duration::days(3_650)] = Duration::days(7),
        /// The oldest hours are removed while the lake takes more than this. The newest always stays.
        bytes: Bytes [Bytes::mib(1)..=Bytes::gib(1 << 20)] = Bytes::gib(20),
    }
}

impl LakeSink {
    /// The lake's folder, when `data` is the data folder.
    pub fn folder(&self, data: &Path) -> PathBuf {
        self.path.clone().unwrap_or_else(|| data.join("lake"))
    }
}
