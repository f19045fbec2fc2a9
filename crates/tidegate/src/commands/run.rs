//! `tidegate run`: a gateway until a signal ends it.

use super::check::config;
use crate::cli::ConfigArgs;
use crate::gateway::{CHANGES, Gateway};
use crate::{Failure, Outcome, output};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tidegate_arena::Bytes;
use tidegate_config::{Config, ElasticsearchSink, OtlpSink, Sink};

/// `tidegate run`
pub(crate) fn run(args: &ConfigArgs) -> Outcome {
    // Before anything starts: a signal that comes early must not be lost.
    let signals = signals()?;
    let config = config(args)?;
    let gateway = Gateway::start(config.clone())?;
    output::print(&greeting(&config, &gateway))?;
    until_told(signals, args, gateway)
}

/// The signals that a running gateway listens to.
pub(crate) fn signals() -> Result<Signals, Failure> {
    Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(|error| Failure(format!("listening to signals: {error}")))
}

/// Waits for signals and does what they say, until one of them says stop.
pub(crate) fn until_told(mut signals: Signals, args: &ConfigArgs, gateway: Gateway) -> Outcome {
    for signal in signals.forever() {
        if signal != SIGHUP {
            break;
        }
        match config(args).and_then(|new| gateway.reload(new)) {
            Ok(waiting) => {
                tracing::info!("the configuration was read again");
                if !waiting.is_empty() {
                    tracing::warn!(
                        settings = waiting.join(", "),
                        "what can change while running is {CHANGES}; these settings have changed too, and are as \
                         they were until tidegate is restarted"
                    );
                }
            }
            Err(Failure(message)) => {
                tracing::error!("the configuration was not changed:\n{}", message.trim_end());
            }
        }
    }
    // A second signal does not wait.
    std::thread::spawn(move || {
        if signals.forever().any(|signal| signal != SIGHUP) {
            output::error("stopped at once; requests in flight were not answered");
            std::process::exit(1);
        }
    });
    tracing::info!("stopping: answering what is in flight");
    if gateway.stop() {
        tracing::info!("stopped");
        return Ok(());
    }
    Err(Failure::from(
        "not everything was finished within `limits.shutdown_timeout`; nothing acknowledged is lost",
    ))
}

/// What a person wants to know when it has started.
pub(crate) fn greeting(config: &Config, gateway: &Gateway) -> String {
    let planned = gateway.planned();
    let (http, grpc, admin) = (config.listen.http, config.listen.grpc, config.listen.admin);
    let mut text = format!(
        "tidegate {}\n  \
         memory        {}\n                \
         {} for payload, bodies of up to {} (see `tidegate plan`)\n  \
         data          {}\n  \
         OTLP          http://{http}   gRPC http://{grpc}\n  \
         remote write  http://{http}/api/v1/write\n  \
         status        http://{admin}/status   metrics http://{admin}/metrics\n",
        env!("CARGO_PKG_VERSION"),
        planned.budget,
        Bytes(planned.plan.payload()),
        Bytes(planned.announced.iter().map(|source| source.max_body() as u64).min().unwrap_or(0)),
        config.data.display(),
    );
    if let Some(socket) = &config.listen.unix {
        text.push_str(&format!("  the same       {socket}\n"));
    }
    for (name, sink) in &config.sinks {
        let target = match sink {
            Sink::Lake(lake) => lake.folder(&config.data).display().to_string(),
            Sink::PrometheusRemoteWrite(sink) => sink.url.to_string(),
            Sink::Otlp(OtlpSink { endpoints, .. })
            | Sink::Elasticsearch(ElasticsearchSink { endpoints, .. }) => {
                endpoints.iter().map(|url| url.as_str()).collect::<Vec<_>>().join(", ")
            }
            Sink::Blackhole(_) => "nowhere".to_owned(),
        };
        text.push_str(&format!("  sink          {name} ({}) -> {target}\n", sink.kind()));
    }
    text
}
