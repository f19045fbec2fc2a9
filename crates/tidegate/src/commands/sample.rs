//! `tidegate sample`: why a trace is kept, or is not.

mod reading;
mod report;

use crate::cli::{ExplainTraceArgs, SampleCommand};
use crate::commands::check;
use crate::gateway::sinks::pipelines::{CompiledSampling, SinkPipelines};
use crate::gateway::sinks::routing::RoutingHistory;
use crate::{Failure, Outcome, output};
use report::TraceReport;
use tidegate_config::Config;
use tidegate_pipeline::TraceId;

/// `tidegate sample …`
pub(crate) fn sample(command: &SampleCommand) -> Outcome {
    match command {
        SampleCommand::Explain(args) => explain(args),
    }
}

fn explain(args: &ExplainTraceArgs) -> Outcome {
    let trace_id = trace_id(&args.trace)?;
    let config = check::config(&args.config)?;
    let history = RoutingHistory::read(&config.data)?;
    let (name, sampling) = sink(&config, &history, args.sink.as_deref())?;
    let spans = reading::spans_of(&config.data.join("journal"), (&sampling, &history), &trace_id)?;
    let report = TraceReport::of(name, &sampling, &trace_id, &spans)?;
    output::print(&if args.json {
        format!("{}\n", serde_json::to_string_pretty(&report.json())?)
    } else {
        report.to_string()
    })?;
    Ok(())
}

/// The sink that is asked about.
fn sink(
    config: &Config,
    history: &RoutingHistory,
    wanted: Option<&str>,
) -> Result<(String, CompiledSampling), Failure> {
    let pipelines = SinkPipelines::of(config, history);
    let sampled = config.sinks.keys().filter_map(|name| {
        let sampling = pipelines.sampling(name.as_str())?;
        wanted.is_none_or(|wanted| wanted == name.as_str()).then(|| (name.to_string(), sampling.clone()))
    });
    let sampled: Vec<_> = sampled.collect();
    match (sampled.as_slice(), wanted) {
        ([(name, sampling)], _) => Ok((name.clone(), sampling.clone())),
        ([], Some(wanted)) => {
            Err(Failure(format!("the configuration has no sink `{wanted}` with `sample.tail`")))
        }
        ([], None) => Err(Failure::from(
            "the configuration has no sink with `sample.tail`: name the file with `--config`",
        )),
        (several, _) => {
            let names: Vec<&str> = several.iter().map(|(name, _)| name.as_str()).collect();
            Err(Failure(format!(
                "several sinks sample traces: choose one with `--sink`: {}",
                names.join(", ")
            )))
        }
    }
}

/// The id that these digits write.
fn trace_id(digits: &str) -> Result<TraceId, Failure> {
    let wrong = || Failure(format!("`{digits}` is no trace id: give 32 hexadecimal digits, not all 0"));
    if digits.len() != 32 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return Err(wrong());
    }
    let number = u128::from_str_radix(digits, 16).map_err(|_| wrong())?;
    if number == 0 { Err(wrong()) } else { Ok(number.to_be_bytes()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_32_digits() {
        let id = trace_id("0af7651916cd43dd8448eb211c80319c").unwrap();
        assert_eq!((id[0], id[15]), (0x0a, 0x9c));
        for wrong in ["", "0af7", "00000000000000000000000000000000", "+af7651916cd43dd8448eb211c80319c"] {
            assert!(trace_id(wrong).is_err(), "{wrong}");
        }
    }
}
