//! The file of the routing history, in the data folder: written with every change, so that a restart knows the earlier conditions.

use super::{Period, Routing, RoutingHistory};
use crate::Failure;
use serde_json::{Map, Value, json};
use std::io::{ErrorKind, Read as _};
use std::path::Path;
use tidegate_files::Access;

/// The file, in the data folder.
const FILE: &str = "routing";
/// Its version.
const VERSION: u64 = 1;
/// The bound on reading it, in bytes: conditions are part of a configuration, which is smaller.
const LONGEST: u64 = 16 << 20;

impl RoutingHistory {
    /// That of the journal in the data folder; empty where nothing is stored.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub(crate) fn read(data: &Path) -> Result<RoutingHistory, Failure> {
        let file = data.join(FILE);
        let mut text = String::new();
        #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
        let read = tidegate_files::read(&file).and_then(|it| it.take(LONGEST).read_to_string(&mut text));
        match read {
            Ok(_) => parsed(&text).ok_or_else(|| {
                Failure(format!(
                    "{} was not written by this version of tidegate: was the data folder used by a newer one? If nothing is queued in the journal, you may remove the file",
                    file.display()
                ))
            }),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(RoutingHistory::default()),
            Err(error) => Err(Failure(format!("reading {} (`data`): {error}", file.display()))),
        }
    }

    /// Stores it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn store(&self, data: &Path) -> Result<(), Failure> {
        let file = data.join(FILE);
        let written = tidegate_files::replace(&file, Access::Owner, written(self).to_string().as_bytes());
        written.map_err(|error| Failure(format!("writing {} (`data`): {error}", file.display())))
    }
}

pub(super) fn written(history: &RoutingHistory) -> Value {
    let routing = |(name, routing): (&String, &Routing)| {
        (name.clone(), json!({"keep": routing.keep, "drop": routing.drop}))
    };
    let period = |period: &Period| {
        let sinks: Map<String, Value> = period.sinks.iter().map(routing).collect();
        json!({"number": period.number, "from": period.from, "sinks": sinks})
    };
    json!({"version": VERSION, "periods": history.periods.iter().map(period).collect::<Vec<_>>()})
}

pub(super) fn parsed(text: &str) -> Option<RoutingHistory> {
    let value: Value = serde_json::from_str(text).ok()?;
    if value.get("version")?.as_u64()? != VERSION {
        return None;
    }
    let texts = |value: &Value| -> Option<Vec<String>> {
        value.as_array()?.iter().map(|text| Some(text.as_str()?.to_owned())).collect()
    };
    let period = |value: &Value| {
        let sinks = value.get("sinks")?.as_object()?.iter().map(|(name, routing)| {
            let (keep, drop) = (texts(routing.get("keep")?)?, texts(routing.get("drop")?)?);
            Some((name.clone(), Routing { keep, drop }))
        });
        Some(Period {
            number: value.get("number")?.as_u64()?,
            from: value.get("from")?.as_u64()?,
            sinks: sinks.collect::<Option<_>>()?,
        })
    };
    let periods = value.get("periods")?.as_array()?.iter().map(period).collect::<Option<_>>()?;
    Some(RoutingHistory { periods })
}
