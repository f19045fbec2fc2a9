//! `tidegate run`: a gateway until a signal ends it.

use super::check::{config_again, config_with_warnings};
use super::orders;
use crate::cli::ConfigArgs;
use crate::gateway::orders::WAKE;
use crate::gateway::sinks::kinds;
use crate::gateway::{CHANGES, Gateway, listeners, sources};
use crate::{Failure, Outcome, logging, output};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tidegate_arena::Bytes;
use tidegate_config::Config;

/// `tidegate run`
pub(crate) fn run(args: &ConfigArgs) -> Outcome {
    // Before anything starts: a signal that comes early must not be lost.
    let signals = signals()?;
    let config = config_with_warnings(args)?;
    let gateway = Gateway::start(config.clone())?;
    greet(&config, &gateway)?;
    until_told(signals, args, gateway)
}

/// The signals that a running gateway listens to.
pub(crate) fn signals() -> Result<Signals, Failure> {
    Signals::new([SIGTERM, SIGINT, SIGHUP, WAKE])
        .map_err(|error| Failure(format!("listening to signals: {error}")))
}

/// Waits for signals and does what they say, until one of them says stop.
pub(crate) fn until_told(mut signals: Signals, args: &ConfigArgs, gateway: Gateway) -> Outcome {
    gateway.name_file(args.config.as_deref());
    for signal in signals.forever() {
        match signal {
            SIGHUP => drop(reload(args, &gateway)),
            WAKE => orders::follow(args, &gateway),
            _ => break,
        }
    }
    gateway.close_orders();
    // A second signal does not wait.
    std::thread::spawn(move || {
        if signals.forever().any(|signal| !matches!(signal, SIGHUP | WAKE)) {
            output::error("stopped at once; requests in flight were not answered");
            std::process::exit(1);
        }
    });
    tracing::info!("stopping: answering requests in flight");
    if gateway.stop() {
        tracing::info!("stopped");
        return Ok(());
    }
    Err(Failure::from(
        "not everything was finished within `limits.shutdown_timeout`; nothing acknowledged is lost",
    ))
}

/// Reads the configuration again and has it take effect; names the settings that need a restart.
fn reload(args: &ConfigArgs, gateway: &Gateway) -> Result<Vec<String>, Failure> {
    take_over(gateway, config_again(args))
}

/// Has a configuration that was read again take effect, and counts and logs that; names the settings that need a restart.
pub(super) fn take_over(gateway: &Gateway, read: Result<Config, Failure>) -> Result<Vec<String>, Failure> {
    let reloaded = read.and_then(|new| gateway.reload(new));
    gateway.count_reload(reloaded.is_ok());
    match &reloaded {
        Ok(waiting) => {
            tracing::info!("the configuration was read again");
            if !waiting.is_empty() {
                tracing::warn!(
                    settings = waiting.join(", "),
                    "only {CHANGES} can change while running; these settings have changed too, and take effect when tidegate is restarted"
                );
            }
        }
        Err(Failure(message)) => {
            tracing::error!("the configuration was not changed:\n{}", message.trim_end());
        }
    }
    reloaded
}

/// Says what has started: to a person in some lines, to a program that reads the log in one of its lines.
pub(crate) fn greet(config: &Config, gateway: &Gateway) -> Outcome {
    if !logging::is_json_only() {
        return Ok(output::print(&greeting(config, gateway))?);
    }
    let planned = gateway.planned();
    let sinks: Vec<String> = config
        .sinks
        .iter()
        .map(|(name, sink)| format!("{name} ({}) -> {}", sink.kind(), kinds::of(sink).target(&config.data)))
        .collect();
    tracing::info!(
        version = crate::VERSION,
        memory = %planned.budget,
        payload_bytes = planned.plan.payload(),
        largest_body_bytes = largest_body(gateway),
        data = %config.data.display(),
        http = %config.listen.http,
        grpc = %config.listen.grpc,
        admin = %config.listen.admin,
        listeners = listeners::shown(&config.listen),
        sinks = sinks.join(", "),
        "tidegate is running"
    );
    Ok(())
}

/// The largest body that every source takes.
fn largest_body(gateway: &Gateway) -> u64 {
    let of_clients = gateway.planned().announced.iter().filter(|accepted| accepted.source.runs.is_none());
    of_clients.map(|accepted| accepted.max_body() as u64).min().unwrap_or(0)
}

/// A summary for the operator after the start.
fn greeting(config: &Config, gateway: &Gateway) -> String {
    let planned = gateway.planned();
    let mut text = format!(
        "tidegate {}\n  \
         memory        {}\n                \
         {} for payload, bodies of up to {} (see `tidegate plan`)\n  \
         data          {}\n",
        crate::VERSION,
        planned.budget,
        Bytes(planned.plan.payload()),
        Bytes(largest_body(gateway)),
        config.data.display(),
    );
    let sources = sources::configured(config).map(|kind| (kind.shown)(config));
    let listeners = listeners::KINDS.iter().filter_map(|kind| (kind.shown)(&config.listen));
    for (label, address) in sources.chain(listeners) {
        text.push_str(&format!("  {label:<13} {address}\n"));
    }
    for (name, sink) in &config.sinks {
        let target = kinds::of(sink).target(&config.data);
        text.push_str(&format!("  sink          {name} ({}) -> {target}\n", sink.kind()));
    }
    text
}
