//! `tidegate fleet config` and `tidegate fleet collector`.

use super::client::{Client, encoded};
use super::{counted, done, list, show, text};
use crate::cli::{CollectorCommand, CollectorTokenCommand, ConfigCommand, ConfigPutArgs, FleetArgs};
use crate::{Failure, Outcome, output};
use serde_json::{Map, Value, json};
use std::io::Read as _;

/// The longest file that is read, in bytes; the gateway takes less.
const LONGEST_FILE: u64 = 4 << 20;

/// `tidegate fleet config …`
pub(super) fn config(command: &ConfigCommand) -> Outcome {
    match command {
        ConfigCommand::Put(args) => put(args),
        ConfigCommand::Ls(args) => {
            let found = Client::opamp(args)?.get("configs")?;
            let columns = [
                "name",
                "revision",
                "match",
                "rollout",
                "released_percent",
                "agents",
                "applied",
                "failed",
                "pending",
            ];
            list(args, &found, "configs", &columns)
        }
        ConfigCommand::Show { name, fleet } => {
            let found = Client::opamp(fleet)?.get(&path("configs", name))?;
            match fleet.json {
                true => show(fleet, &found),
                false => Ok(output::print(text(&found, "body"))?),
            }
        }
        ConfigCommand::Rm { name, fleet } => {
            Client::opamp(fleet)?.delete(&path("configs", name))?;
            done(fleet, &format!("configuration {name} is removed"))
        }
    }
}

/// `tidegate fleet collector …`
pub(super) fn collector(command: &CollectorCommand) -> Outcome {
    match command {
        CollectorCommand::Ls(args) => list_collectors(args),
        CollectorCommand::Show { id, fleet } => show(fleet, &Client::opamp(fleet)?.get(&path("agents", id))?),
        CollectorCommand::Restart { id, fleet } => {
            Client::opamp(fleet)?.post(&format!("{}/restart", path("agents", id)), &json!({}))?;
            done(fleet, &format!("collector {id} is told to restart"))
        }
        CollectorCommand::Rm { id, fleet } => {
            Client::opamp(fleet)?.delete(&path("agents", id))?;
            done(fleet, &format!("collector {id} is forgotten"))
        }
        CollectorCommand::Token(command) => token(command),
    }
}

fn token(command: &CollectorTokenCommand) -> Outcome {
    match command {
        CollectorTokenCommand::Create { name, fleet } => {
            let made = Client::opamp(fleet)?.post("tokens", &json!({"name": name}))?;
            match fleet.json {
                true => show(fleet, &made),
                false => Ok(output::print(&format!("{}\n", text(&made, "token")))?),
            }
        }
        CollectorTokenCommand::Ls(args) => {
            list(args, &Client::opamp(args)?.get("tokens")?, "tokens", &["id", "name"])
        }
        CollectorTokenCommand::Revoke { id, fleet } => {
            Client::opamp(fleet)?.delete(&path("tokens", id))?;
            done(fleet, &format!("token {id} is revoked"))
        }
    }
}

fn put(args: &ConfigPutArgs) -> Outcome {
    let file = args.file.display();
    let mut body = String::new();
    let opened = std::fs::File::open(&args.file);
    #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
    opened
        .and_then(|opened| opened.take(LONGEST_FILE).read_to_string(&mut body))
        .map_err(|error| Failure(format!("cannot read the configuration {file}: {error}")))?;
    let stem = args.file.file_stem().and_then(|stem| stem.to_str());
    let name = args.name.as_deref().or(stem).unwrap_or_default();
    let labels: Map<String, Value> =
        args.labels.iter().map(|(key, value)| (key.clone(), json!(value))).collect();
    let order = json!({"body": body, "match": labels, "step": args.step, "max_failed": args.max_failed});
    let put = Client::opamp(&args.fleet)?.put(&path("configs", name), &order);
    let put = put.map_err(|Failure(error)| Failure(format!("{file}: {error}")))?;
    if args.fleet.json {
        return show(&args.fleet, &put);
    }
    let number = |name: &str| put.get(name).and_then(Value::as_u64).unwrap_or_default();
    let (revision, agents) = (number("revision"), counted(number("agents")));
    let words = format!(
        "configuration {name} has revision {revision}, for {agents}; `tidegate fleet config ls` shows its roll-out"
    );
    Ok(output::print(&format!("{words}\n"))?)
}

fn list_collectors(args: &FleetArgs) -> Outcome {
    let all = Client::opamp(args)?.pages("agents?", "agents")?;
    let columns = ["id", "service", "connected", "healthy", "config", "config_status"];
    list(args, &json!({"agents": all}), "agents", &columns)
}

fn path(table: &str, name: &str) -> String {
    format!("{table}/{}", encoded(name))
}
