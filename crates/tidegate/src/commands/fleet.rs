//! `tidegate fleet`: asks a running gateway by its routes for operators.

mod client;
mod files;
mod opamp;
mod policy_file;
mod tables;

use crate::cli::{
    ActionCommand, AgentCommand, AgentFilter, EnrollCommandArgs, FleetArgs, FleetCommand, PolicyCommand,
    TokenCommand,
};
use crate::{Failure, Outcome, output};
use client::Client;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

/// Agents of a page.
const PAGE: usize = 1000;

/// `tidegate fleet …`
pub(crate) fn fleet(command: &FleetCommand) -> Outcome {
    match command {
        FleetCommand::Status(args) => show(args, &Client::new(args)?.get("status")?),
        FleetCommand::Policy(command) => policy(command),
        FleetCommand::Token(command) => token(command),
        FleetCommand::Agent(command) => agent(command),
        FleetCommand::Action(command) => action(command),
        FleetCommand::Upload(command) => files::upload(command),
        FleetCommand::Artifact(command) => files::artifact(command),
        FleetCommand::File(command) => files::file(command),
        FleetCommand::Config(command) => opamp::config(command),
        FleetCommand::Collector(command) => opamp::collector(command),
        FleetCommand::EnrollCommand(args) => enroll_command(args),
    }
}

fn policy(command: &PolicyCommand) -> Outcome {
    match command {
        PolicyCommand::Put { file, id, dry_run, fleet } => put(fleet, file, id.as_deref(), *dry_run),
        PolicyCommand::Diff { file, id, fleet } => put(fleet, file, id.as_deref(), true),
        PolicyCommand::Ls(args) => {
            let found = Client::new(args)?.get("policies")?;
            let columns = ["id", "revision", "agents", "up_to_date", "bytes", "changed_at"];
            list(args, &found, "policies", &columns)
        }
        PolicyCommand::Show { id, fleet } => show(fleet, &Client::new(fleet)?.get(&policy_path(id))?),
        PolicyCommand::Rm { id, fleet } => {
            Client::new(fleet)?.delete(&policy_path(id))?;
            done(fleet, &format!("policy {id} is removed"))
        }
    }
}

fn token(command: &TokenCommand) -> Outcome {
    match command {
        TokenCommand::Create { policy, name, fleet } => {
            let made = Client::new(fleet)?.post("tokens", &json!({"policy_id": policy, "name": name}))?;
            if fleet.json {
                return show(fleet, &made);
            }
            Ok(output::print(&format!("{}\n", text(&made, "token")))?)
        }
        TokenCommand::Ls(args) => {
            let found = Client::new(args)?.get("tokens")?;
            list(args, &found, "tokens", &["id", "policy_id", "created_at", "name"])
        }
        TokenCommand::Revoke { id, fleet } => {
            Client::new(fleet)?.delete(&format!("tokens/{}", client::encoded(id)))?;
            done(fleet, &format!("token {id} is revoked"))
        }
    }
}

fn agent(command: &AgentCommand) -> Outcome {
    match command {
        AgentCommand::Ls { status, policy, host, fleet } => {
            list_agents(fleet, &[("status", status), ("policy", policy), ("host", host)])
        }
        AgentCommand::Show { id, fleet } => show(fleet, &Client::new(fleet)?.get(&agent_path(id))?),
        AgentCommand::Reassign { id, policy, fleet } => {
            let path = format!("{}/reassign", agent_path(id));
            Client::new(fleet)?.post(&path, &json!({"policy_id": policy}))?;
            done(fleet, &format!("agent {id} gets policy {policy}"))
        }
        AgentCommand::Unenroll { agents, force: true, fleet } => {
            let mut client = Client::new(fleet)?;
            for id in &agents.ids {
                client.delete(&agent_path(id))?;
            }
            done(fleet, &format!("removed, and keys revoked: {}", counted(agents.ids.len() as u64)))
        }
        AgentCommand::Unenroll { agents, force: false, fleet } => order(fleet, agents, "UNENROLL", json!({})),
        AgentCommand::Upgrade { agents, version, source_uri, rollout_seconds, fleet } => {
            let mut data = json!({"version": version});
            if let Some(uri) = source_uri {
                data["source_uri"] = json!(uri);
            }
            let rest = json!({"data": data, "rollout_duration_seconds": rollout_seconds});
            order(fleet, agents, "UPGRADE", rest)
        }
        AgentCommand::Diagnostics { agents, fleet } => {
            order(fleet, agents, "REQUEST_DIAGNOSTICS", json!({"data": {"additional_metrics": []}}))
        }
    }
}

fn action(command: &ActionCommand) -> Outcome {
    match command {
        ActionCommand::Ls(args) => {
            let found = Client::new(args)?.get("actions")?;
            list(args, &found, "actions", &["id", "type", "agents", "created_at", "cancelled_at"])
        }
        ActionCommand::Show { id, fleet } => show(fleet, &Client::new(fleet)?.get(&action_path(id))?),
        ActionCommand::Cancel { id, fleet } => cancel(fleet, id),
    }
}

fn cancel(fleet: &FleetArgs, id: &str) -> Outcome {
    let cancelled = Client::new(fleet)?.post_nothing(&format!("{}/cancel", action_path(id)))?;
    if fleet.json {
        return show(fleet, &cancelled);
    }
    let unanswered = counted(cancelled.get("unanswered").and_then(Value::as_u64).unwrap_or_default());
    let telling = text(&cancelled, "cancel_action");
    Ok(output::print(&format!(
        "action {id} is cancelled, with {unanswered} that had not answered it: those that have got it are told by action {telling}, \
         the others do not get it\n"
    ))?)
}

/// Orders an action for some agents.
fn order(fleet: &FleetArgs, agents: &AgentFilter, kind: &str, mut order: Value) -> Outcome {
    order["type"] = json!(kind);
    match &agents.policy {
        Some(policy) => order["policy_id"] = json!(policy),
        None => order["agents"] = json!(agents.ids),
    }
    let ordered = Client::new(fleet)?.post("actions", &order)?;
    if fleet.json {
        return show(fleet, &ordered);
    }
    let agents = counted(ordered.get("agents").and_then(Value::as_u64).unwrap_or_default());
    let id = text(&ordered, "id");
    let mut words =
        format!("action {id} is for {agents}; `tidegate fleet action show {id}` says what they say\n");
    if kind == "REQUEST_DIAGNOSTICS" {
        words.push_str("when they have sent it, `tidegate fleet upload ls` lists it, and `tidegate fleet upload get ID -o FILE` fetches it\n");
    }
    Ok(output::print(&words)?)
}

fn put(args: &FleetArgs, file: &Path, id: Option<&str>, is_trial: bool) -> Outcome {
    let policy = policy_file::read(file, id)?;
    let query = if is_trial { "?dry_run=true" } else { "" };
    let path = format!("{}{query}", policy_path(&policy.id));
    let answer = Client::new(args)?.put(&path, &policy.json);
    let change = answer.map_err(|Failure(error)| Failure(format!("{}: {error}", file.display())))?;
    if args.json {
        return show(args, &change);
    }
    let mut shown = String::new();
    for (sign, name) in [("-", "removed"), ("+", "added")] {
        for line in change.get(name).and_then(Value::as_array).into_iter().flatten() {
            let _ = writeln!(shown, "{sign} {}", line.as_str().unwrap_or_default());
        }
    }
    let (id, number) =
        (text(&change, "id"), |name: &str| change.get(name).and_then(Value::as_u64).unwrap_or(0));
    let (revision, agents) = (number("revision"), counted(number("agents")));
    let words = match (change.get("changed").and_then(Value::as_bool), is_trial) {
        (Some(false), _) => format!("policy {id} has not changed: revision {revision}, {agents}"),
        (_, true) => format!("policy {id} would get revision {revision}, which would go to {agents}"),
        (_, false) => format!("policy {id} has revision {revision}, which is on its way to {agents}"),
    };
    let _ = writeln!(shown, "{words}");
    Ok(output::print(&shown)?)
}

/// Lists the agents that these parameters leave.
fn list_agents(args: &FleetArgs, filter: &[(&str, &Option<String>)]) -> Outcome {
    let mut path = format!("agents?limit={PAGE}&hostnames=true");
    for (name, value) in filter {
        if let Some(value) = value {
            let _ = write!(path, "&{name}={}", client::encoded(value));
        }
    }
    let all = Client::new(args)?.pages(&path, "agents")?;
    let columns =
        ["id", "hostname", "status", "waiting", "version", "policy_id", "policy_revision", "last_seen"];
    list(args, &json!({"agents": all}), "agents", &columns)
}

fn enroll_command(args: &EnrollCommandArgs) -> Outcome {
    let order = json!({"policy_id": args.policy, "name": "enroll-command"});
    let made = Client::new(&args.fleet)?.post("tokens", &order)?;
    let token = text(&made, "token");
    let insecure = if args.url.starts_with("http://") { " --insecure" } else { "" };
    let line = format!("elastic-agent enroll --url={} --enrollment-token={token}{insecure}", args.url);
    if args.fleet.json {
        return show(&args.fleet, &json!({"command": line, "token": made}));
    }
    Ok(output::print(&format!("{line}\n"))?)
}

/// Prints a value, for people and programs alike.
fn show(_: &FleetArgs, value: &Value) -> Outcome {
    let text = match value {
        Value::String(text) => text.clone(),
        value => serde_json::to_string_pretty(value)?,
    };
    Ok(output::print(&format!("{text}\n"))?)
}

fn list(args: &FleetArgs, found: &Value, name: &str, columns: &[&str]) -> Outcome {
    let rows: Vec<&Value> = found.get(name).and_then(Value::as_array).into_iter().flatten().collect();
    if args.json {
        let lines: String = rows.iter().map(|row| format!("{row}\n")).collect();
        return Ok(output::print(&lines)?);
    }
    Ok(output::print(&tables::table(columns, &rows))?)
}

fn done(args: &FleetArgs, words: &str) -> Outcome {
    if !args.json {
        output::print(&format!("{words}\n"))?;
    }
    Ok(())
}

/// A number of agents, in words.
fn counted(agents: u64) -> String {
    if agents == 1 { "1 agent".to_owned() } else { format!("{agents} agents") }
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn policy_path(id: &str) -> String {
    format!("policies/{}", client::encoded(id))
}

fn action_path(id: &str) -> String {
    format!("actions/{}", client::encoded(id))
}

fn agent_path(id: &str) -> String {
    format!("agents/{}", client::encoded(id))
}
