//! The sink `blackhole`.

use super::SinkKind;
use crate::gateway::sinks::start::Starter;
use std::path::Path;
use tidegate_config::BlackholeSink;
use tidegate_journal::{Protocol, Signal};
use tidegate_sinks::{Need, blackhole};

impl SinkKind for BlackholeSink {
    fn target(&self, _data: &Path) -> String {
        "nowhere".to_owned()
    }

    fn starter(&self) -> Starter {
        Starter::task(|wiring| {
            let sink = blackhole(wiring.context(), wiring.room.clone(), wiring.stop.clone());
            sink.map_err(|error| error.to_string())
        })
    }

    fn need(&self, _protocol: Protocol, _signal: Signal) -> Option<Need> {
        None
    }
}
