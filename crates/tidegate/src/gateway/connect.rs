//! What to paste into senders, for the console: the same as `tidegate connect` prints.

use crate::commands::connect::machine;
use serde_json::json;
use tidegate_config::Config;
use tidegate_connect::{Gateway, Lookup, Sender, find, list};
use tidegate_console::{ConnectAnswer, ConnectError, ConnectQuery};

/// The answer of a gateway with this configuration. Where it listens on all addresses, senders reach it as the page was reached.
pub(super) fn answer(config: &Config, query: &ConnectQuery) -> ConnectAnswer {
    let host = query.host.as_ref().and_then(|host| host.parse().ok());
    let sender = Sender::new(host.unwrap_or_else(machine));
    let gateway = Gateway::new(config, &sender);
    let Some(name) = &query.kind else { return Ok(list(gateway).json()) };
    let Lookup::Found(kind) = find(name) else { return Err(ConnectError::Unknown) };
    Ok(match kind.instructions(gateway) {
        Ok(instructions) => json!({"snippets": instructions.json()}),
        Err(missing) => {
            json!({"missing": {"setting": missing.setting, "lines": missing.lines, "note": missing.note}})
        }
    })
}
