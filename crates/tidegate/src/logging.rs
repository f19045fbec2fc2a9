//! The log: readable on a terminal, JSON otherwise, always on standard error.

use crate::cli::LogFormat;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tracing_subscriber::EnvFilter;

/// Whether everything that is said on standard output and standard error is a log of JSON lines, which nothing else may
/// come between.
static JSON_ONLY: AtomicBool = AtomicBool::new(false);

/// Starts the log.
///
/// # Errors
/// When the filter cannot be read; the message says why.
pub(crate) fn start(filter: &str, format: Option<LogFormat>) -> Result<(), String> {
    let filter = EnvFilter::try_new(filter).map_err(|error| format!("reading --log {filter:?}: {error}"))?;
    let terminal = std::io::stderr().is_terminal();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match resolved(format) {
        LogFormat::Text => log.with_target(false).with_ansi(terminal).init(),
        LogFormat::Json => log.json().flatten_event(true).with_current_span(false).init(),
    }
    std::panic::set_hook(Box::new(|panic| {
        let location = panic.location().map(ToString::to_string);
        let thread = std::thread::current().name().map(str::to_owned);
        let said = panic.payload_as_str().unwrap_or("without words");
        tracing::error!(thread, location, "a part of the gateway panicked: {said}");
    }));
    Ok(())
}

/// The format that is meant.
fn resolved(format: Option<LogFormat>) -> LogFormat {
    let terminal = std::io::stderr().is_terminal();
    format.unwrap_or(if terminal { LogFormat::Text } else { LogFormat::Json })
}

/// From now on what this process says is its log: a greeting or an error is a line of it where those are JSON.
pub(crate) fn is_all_there_is(format: Option<LogFormat>) {
    JSON_ONLY.store(resolved(format) == LogFormat::Json, Relaxed);
}

/// Whether only lines of JSON may be written.
pub(crate) fn is_json_only() -> bool {
    JSON_ONLY.load(Relaxed)
}
