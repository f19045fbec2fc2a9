//! The sink `derive`.

use super::{SinkKind, line};
use crate::gateway::sinks::start::{SinkEnvironment, Starter};
use std::path::Path;
use std::sync::Once;
use std::time::Duration;
use tidegate_arena::Reservation;
use tidegate_config::DeriveSink;
use tidegate_journal::{CHECKPOINT_BYTES, Protocol, Signal};
use tidegate_sinks::{Derive, DeriveSettings, Need};

/// The folder of what was counted, in the folder `data`.
const FOLDER: &str = "derive";
/// Files that are open when what was counted is read or written.
const FILES: u64 = 2;
/// Buffers to read and write it.
const BUFFERS: u64 = 128 << 10;
/// How long a flush may take when all is well.
const FLUSHING: Duration = Duration::from_secs(5);

impl SinkKind for DeriveSink {
    fn target(&self, _data: &Path) -> String {
        "the journal".to_owned()
    }

    fn starter(&self) -> Starter {
        let (config, has_checkpoint) = (self.clone(), Once::new());
        Starter::thread(move |wiring| {
            has_checkpoint.call_once(|| wiring.journal.allow_checkpoints(1));
            let derive = start(&config, wiring)?;
            Ok(move || derive.run())
        })
    }

    fn need(&self, protocol: Protocol, signal: Signal) -> Option<Need> {
        Derive::need(protocol, signal)
    }

    fn declared(&self) -> Vec<Reservation> {
        let table = self.derivation().map_or(0, |derivation| derivation.table.bytes());
        vec![
            line("series of derived metrics", 1, table as u64, Some("max_series")),
            line(
                "buffers for what was counted, and a checkpoint",
                1,
                BUFFERS + CHECKPOINT_BYTES as u64,
                None,
            ),
        ]
    }

    fn files(&self) -> u64 {
        FILES
    }

    /// Records wait for the state to be written, which is done with each flush.
    fn usual_lag(&self) -> Duration {
        self.interval.get() + FLUSHING
    }
}

fn start(config: &DeriveSink, wiring: &SinkEnvironment) -> Result<Derive, String> {
    let derivation = config.derivation().ok_or("its metrics have errors")?;
    let settings = DeriveSettings {
        folder: wiring.data.join(FOLDER),
        table: derivation.table,
        interval: config.interval.get(),
    };
    let (room, runtime) = (wiring.room.clone(), wiring.runtime.clone());
    let derive = Derive::start(wiring.context(), settings, room, runtime, wiring.stop.clone());
    derive.map_err(|error| error.to_string())
}
