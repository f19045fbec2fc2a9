//! `tidegate demo`: a gateway with no configuration, and a trickle of metrics, spans and logs to look at.

use super::check::config_with_warnings;
use super::run::{greet, signals, until_told};
use crate::cli::DemoArgs;
use crate::gateway::Gateway;
use crate::{Outcome, logging, output};
use std::time::Duration;
use tidegate_config::{Config, Sink};
use tidegate_load::{Target, otlp, trickle};
use tokio::sync::watch;

/// How often the trickle comes.
const EVERY: Duration = Duration::from_secs(1);

/// `tidegate demo`
pub(crate) fn demo(args: &DemoArgs) -> Outcome {
    let signals = signals()?;
    let config = impatient(config_with_warnings(&args.config)?);
    let gateway = Gateway::start(config.clone())?;
    let (stop, stopped) = watch::channel(false);
    let target = Target::remote_write(config.listen.http);
    let trickling = gateway.runtime().spawn(async move {
        tokio::join!(trickle(&target, EVERY, stopped.clone()), otlp::trickle(&target, EVERY, stopped))
    });
    greet(&config, &gateway)?;
    let hints = format!(
        "\nEach second it sends itself {} samples, {} spans and as many log records. In a few seconds, in another terminal:\n  \
         tidegate lake cat metric_points --last 1m --limit 10 --data {data}\n  \
         tidegate lake cat spans --last 1m --limit 10 --data {data}\n  \
         tidegate lake cat logs --last 1m --contains checkout --data {data}\n  \
         tidegate lake ls --data {data}\n  \
         curl http://{admin}/status\n\
         In a browser: http://{admin}/\n\
         Ctrl-C ends it.\n\n",
        tidegate_load::DEMO_SERIES,
        otlp::DEMO_ITEMS,
        admin = config.listen.admin,
        data = config.data.display(),
    );
    if !logging::is_json_only() {
        output::print(&hints)?;
    }
    let outcome = until_told(signals, &args.config, gateway);
    stop.send_replace(true);
    trickling.abort();
    outcome
}

/// A demo should show results at once: the lake's files are finished every two seconds.
fn impatient(mut config: Config) -> Config {
    for sink in config.sinks.values_mut() {
        if let Sink::Lake(lake) = sink {
            lake.file_age = tidegate_config::Duration::seconds(2);
        }
    }
    config
}
