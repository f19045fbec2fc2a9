//! The part of the stored data that is sent again.

use crate::Failure;
use crate::cli::ReplayArgs;
use crate::commands::check::config;
use crate::commands::lake::moment;
use jiff::Timestamp;
use tidegate_config::Signal as ConfiguredSignal;
use tidegate_journal::{Meta, Signal};

/// A part of what is stored.
#[derive(Debug, Clone)]
pub(super) struct Selection {
    /// From this time on, in nanoseconds since 1970.
    pub(super) from_ns: u64,
    /// Before this time.
    pub(super) until_ns: u64,
    /// Of this tenant.
    pub(super) tenant: Option<String>,
    /// Of these signals; all if there is none.
    pub(super) signals: Vec<Signal>,
    /// The arguments in words, to tell one replay from another.
    pub(super) asked: String,
}

impl Selection {
    /// The part that the arguments choose of this kind of store.
    ///
    /// # Errors
    /// When a value is none, or the configuration has no such sink.
    pub(super) fn of(args: &ReplayArgs, store: &str, to: Option<&str>) -> Result<Selection, Failure> {
        let now = Timestamp::now();
        let until = args.until.as_deref().map(|until| moment("--until", until)).transpose()?;
        let mut from = args.from.as_deref().map(|from| moment("--from", from)).transpose()?;
        if let Some(last) = &args.last {
            let duration: tidegate_config::Duration =
                last.parse().map_err(|error: tidegate_config::Invalid| {
                    format!("--last {last}: {}; {}", error.message, error.help)
                })?;
            from = Some(until.unwrap_or(now) - duration.get());
        }
        let until = until.unwrap_or(now);
        if from.is_some_and(|from| from >= until) {
            return Err(Failure::from(
                "the time to begin at is not before the time to end at: nothing is between them",
            ));
        }
        let signals = signals(args, to)?;
        let names: Vec<&str> = signals.iter().map(|signal| signal.name()).collect();
        let asked = format!(
            "{store} in {} to {}, from {}, until {}, last {}, tenant {}, signals {}",
            args.data.data.as_ref().map_or("the configured folder".into(), |data| data.display().to_string()),
            to.unwrap_or("its own sink"),
            args.from.as_deref().unwrap_or("-"),
            args.until.as_deref().unwrap_or("-"),
            args.last.as_deref().unwrap_or("-"),
            args.tenant.as_deref().unwrap_or("-"),
            if names.is_empty() { "all".to_owned() } else { names.join(",") },
        );
        Ok(Selection {
            from_ns: from.map_or(0, nanoseconds),
            until_ns: nanoseconds(until),
            tenant: args.tenant.clone(),
            signals,
            asked,
        })
    }

    /// Whether data that was received then is asked for.
    pub(super) fn has_time(&self, received_at_ns: u64) -> bool {
        (self.from_ns..self.until_ns).contains(&received_at_ns)
    }

    /// Whether the signal is asked for. A record of several signals is, with any of them.
    pub(super) fn has_signal(&self, signal: Signal, is_mixed: bool) -> bool {
        self.signals.is_empty()
            || self.signals.contains(&signal)
            || (is_mixed && self.signals.iter().any(|asked| Meta::MIXED.contains(asked)))
    }

    /// Whether a body with this metadata is asked for, whenever it was received.
    pub(super) fn has(&self, meta: &Meta) -> bool {
        let tenant = self.tenant.as_ref().is_none_or(|tenant| tenant == meta.tenant.as_str());
        tenant && self.has_signal(meta.signal, meta.is_mixed())
    }
}

fn nanoseconds(time: Timestamp) -> u64 {
    u64::try_from(time.as_nanosecond()).unwrap_or(0)
}

/// The signals that the arguments name, or those that the sink receives, if the gateway is the configured one.
fn signals(args: &ReplayArgs, to: Option<&str>) -> Result<Vec<Signal>, Failure> {
    if !args.signal.is_empty() {
        return args.signal.iter().map(|name| signal(name)).collect();
    }
    let (Some(to), None) = (to, &args.receiver.url) else { return Ok(Vec::new()) };
    let config = config(&args.data.config)?;
    match config.sinks.iter().find(|(name, _)| name.as_str() == to) {
        Some((_, sink)) => Ok(sink.signals().iter().map(|signal| of_config(*signal)).collect()),
        None => {
            let names: Vec<&str> = config.sinks.keys().map(|name| name.as_str()).collect();
            Err(Failure(format!(
                "the configuration has no sink `{to}`; it has: {}. Name the configuration with --config, or another gateway with --url",
                names.join(", ")
            )))
        }
    }
}

fn signal(name: &str) -> Result<Signal, Failure> {
    let known: Result<ConfiguredSignal, _> = name.trim().parse();
    known.map(of_config).map_err(|_| {
        Failure(format!(
            "--signal {name}: write traces, metrics, logs or profiles, with commas between several"
        ))
    })
}

fn of_config(signal: ConfiguredSignal) -> Signal {
    match signal {
        ConfiguredSignal::Traces => Signal::Traces,
        ConfiguredSignal::Metrics => Signal::Metrics,
        ConfiguredSignal::Logs => Signal::Logs,
        ConfiguredSignal::Profiles => Signal::Profiles,
    }
}
