//! `tidegate elasticsearch setup`: the index templates for what a sink writes.

use super::check::config;
use crate::cli::{ElasticsearchCommand, SetupArgs};
use crate::gateway::sinks::kinds;
use crate::{Failure, Outcome, output};
use std::fmt::Write as _;
use tidegate_config::{Config, ElasticsearchSink, Sink};
use tidegate_sinks::{ElasticsearchSettings, put_templates, templates};

/// `tidegate elasticsearch …`
pub(crate) fn elasticsearch(command: &ElasticsearchCommand) -> Outcome {
    match command {
        ElasticsearchCommand::Setup(args) => setup(args),
    }
}

fn setup(args: &SetupArgs) -> Outcome {
    let config = config(&args.config)?;
    let (name, sink) = sink(&config, args.sink.as_deref())?;
    let settings = kinds::elasticsearch::settings(sink)?;
    if args.print {
        return Ok(output::print(&printed(&settings))?);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let names = runtime.block_on(put_templates(&settings)).map_err(|error| {
        Failure(format!(
            "{error}; is the address that of the sink `{name}`, and may its user manage index templates?"
        ))
    })?;
    let mut text = String::new();
    for name in names {
        writeln!(text, "{name}").map_err(|error| Failure(error.to_string()))?;
    }
    Ok(output::print(&text)?)
}

/// The sink of this name, or the only one of its kind.
fn sink<'a>(config: &'a Config, wanted: Option<&str>) -> Result<(&'a str, &'a ElasticsearchSink), Failure> {
    let mut sinks = config.sinks.iter().filter_map(|(name, sink)| match sink {
        Sink::Elasticsearch(sink) if wanted.is_none_or(|wanted| wanted == name.as_str()) => {
            Some((name.as_str(), sink))
        }
        _ => None,
    });
    match (sinks.next(), sinks.next()) {
        (Some(sink), None) => Ok(sink),
        (Some(_), Some(_)) => {
            Err(Failure::from("there are several sinks of type `elasticsearch`: name one with --sink"))
        }
        (None, _) => Err(Failure::from(
            "the configuration has no such sink of type `elasticsearch`: name the file with --config",
        )),
    }
}

/// The requests, as they can be pasted into a console for developers.
fn printed(settings: &ElasticsearchSettings) -> String {
    let mut text = String::new();
    for template in templates(settings.flavour) {
        text.push_str("PUT _index_template/");
        text.push_str(template.name);
        text.push('\n');
        text.push_str(template.body.trim());
        text.push_str("\n\n");
    }
    text
}
