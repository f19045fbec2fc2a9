//! The sink `lake`.

use super::SinkKind;
use crate::gateway::sinks::start::{SinkEnvironment, Starter};
use std::path::Path;
use std::time::Duration;
use tidegate_arena::Share;
use tidegate_config::LakeSink;
use tidegate_files::Access;
use tidegate_journal::{Protocol, Signal};
use tidegate_sinks::{Lake, Need};

/// Files that are open to write and to read back.
const FILES: u64 = 16;
/// How long closing files may take when all is well.
const CLOSING: Duration = Duration::from_secs(5);

impl SinkKind for LakeSink {
    fn target(&self, data: &Path) -> String {
        self.folder(data).display().to_string()
    }

    fn starter(&self) -> Starter {
        let config = self.clone();
        Starter::thread(move |wiring| {
            let lake = start(&config, wiring)?;
            Ok(move || lake.run())
        })
    }

    fn need(&self, protocol: Protocol, signal: Signal) -> Option<Need> {
        Lake::need(protocol, signal)
    }

    fn files(&self) -> u64 {
        FILES
    }

    fn share(&self) -> Share {
        Share::Lake
    }

    /// Rows are gathered in the writer's slice, which is a bound of its own.
    fn largest_item(&self, slice: u64) -> usize {
        tidegate_lake::largest_item(slice)
    }

    /// It finishes a file now and then.
    fn usual_lag(&self) -> Duration {
        self.file_age.get() + CLOSING
    }
}

fn start(config: &LakeSink, wiring: &SinkEnvironment) -> Result<Lake, String> {
    let slice = wiring.arena.try_charge(Share::Lake, wiring.slice).map_err(|error| error.to_string())?;
    let node = format!("{:016x}", wiring.journal.id());
    let settings = tidegate_lake::WriterSettings {
        file_age: config.file_age.get(),
        file_bytes: config.file_bytes.get(),
        retention: tidegate_lake::Retention {
            age: config.retention.age.get(),
            bytes: Some(config.retention.bytes.get()),
        },
        access: if config.group_readable { Access::Group } else { Access::Owner },
        ..tidegate_lake::WriterSettings::new(config.folder(&wiring.data), wiring.slice, node)
    };
    let (room, runtime) = (wiring.room.clone(), wiring.runtime.clone());
    let lake = Lake::start(wiring.context(), settings, slice, room, runtime, wiring.stop.clone());
    lake.map_err(|error| error.to_string())
}
