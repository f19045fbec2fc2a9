//! Whether there is one cluster to answer a `_bulk`, where a destination acknowledges it.

use super::{Clash, path};
use crate::model::{Acknowledge, Config, Sink};

pub(super) fn check(config: &Config, clashes: &mut Vec<Clash>) {
    let source = &config.sources.elasticsearch;
    let (acknowledge, destination) = (setting("acknowledge"), setting("destination"));
    let mut clash = |about: Vec<Vec<String>>, message: String, help: &str| {
        clashes.push(Clash { about, message, help: help.to_owned() });
    };
    if source.acknowledge == Acknowledge::Journal {
        return;
    }
    if let Some((name, sink)) = config.destination() {
        if sink.delivery.tenant_header.is_some() {
            let about = vec![path(["sinks", name.as_str(), "tenant_header"]), acknowledge];
            let message = format!(
                "`sinks.{name}` has a `tenant_header`, and with `acknowledge: destination` a request to it has items of \
                 several tenants"
            );
            clash(about, message, "take the header out, or keep `acknowledge: journal`");
        }
        return;
    }
    let named: Vec<String> = config
        .sinks
        .iter()
        .filter(|(_, sink)| matches!(sink, Sink::Elasticsearch(_)))
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    match (&source.destination, named.as_slice()) {
        (Some(wanted), _) => {
            let message = match config.sinks.contains_key(wanted) {
                true => format!(
                    "the sink `{wanted}` is not of type `elasticsearch`, so it cannot answer a `_bulk`"
                ),
                false => format!("there is no sink `{wanted}` to answer a `_bulk`"),
            };
            clash(vec![destination], message, "name a sink of type `elasticsearch`");
        }
        (None, []) => {
            let message = "with `acknowledge: destination` a cluster answers each `_bulk`, and there is none";
            clash(vec![acknowledge], message.to_owned(), "add a sink of type `elasticsearch`");
        }
        (None, several) => {
            let message =
                format!("`acknowledge: destination`: the sinks {} could answer", several.join(", "));
            clash(vec![acknowledge], message, "name one of them in `sources.elasticsearch.destination`");
        }
    }
}

fn setting(name: &str) -> Vec<String> {
    path(["sources", "elasticsearch", name])
}
