//! `tidegate plan`: the memory plan, or what a load needs through an outage.

mod measure;

use super::check::config;
use crate::cli::{PlanArgs, PlanFormat};
use crate::gateway::plan::{self, GatewayPlan};
use crate::gateway::sinks::kinds;
use crate::{Failure, Outcome, output};
use std::path::Path;
use tidegate_arena::{Bytes, Share};
use tidegate_config::{Config, Durability, HandoffFull, WhenFull};
use tidegate_sizing::{ItemKind, Load, Losses, Memory, Rate, Setup, Sizing};

/// The budget with which the search for the smallest begins, in MiB.
const LEAST_MIB: u64 = 1;

/// `tidegate plan`
pub(crate) fn plan(args: &PlanArgs) -> Outcome {
    let Some(outage) = &args.outage else { return memory_plan(&config(&args.config)?) };
    let outage: tidegate_config::Duration = outage.parse().map_err(|error: tidegate_config::Invalid| {
        Failure(format!("--outage {outage}: {}; {}", error.message, error.help))
    })?;
    if args.rate.is_empty() && !args.measure {
        return Err(Failure::from(
            "--outage needs the load that comes meanwhile: say it with --rate '5k spans/s', or take it from a running gateway with --measure",
        ));
    }
    if args.bytes_per_item.is_some_and(|bytes| !(0.1..=1e9).contains(&bytes)) {
        return Err(Failure::from("--bytes-per-item: write a number from 0.1 to 1000000000"));
    }
    let body = args.body.as_ref().map(|body| size(body)).transpose()?;
    let delivery = rates(&args.delivery)?;
    let mut config = config(&args.config)?;
    config.limits.connections = args.connections.or(config.limits.connections);
    let sizing = if args.measure {
        let measured = measure::measure(args, &delivery)?;
        match args.config.config {
            Some(_) => sizing(&config, measured.load, body, outage),
            None => {
                let setup = measured.setup(args.connections)?;
                Sizing::of(measured.load, outage.get().as_secs_f64(), setup)
            }
        }
    } else {
        let load = Load::of(&rates(&args.rate)?, args.bytes_per_item, !args.uncompressed, &delivery);
        sizing(&config, load, body, outage)
    };
    let text = match args.format {
        PlanFormat::Text => sizing.to_string(),
        PlanFormat::Json => serde_json::to_string_pretty(&sizing)? + "\n",
    };
    Ok(output::print(&text)?)
}

/// The plan of a configuration, and whether it fits.
fn memory_plan(config: &Config) -> Outcome {
    let planned = plan::of(config);
    output::print(&planned.to_string())?;
    plan::check(config, &planned)
}

fn rates(texts: &[String]) -> Result<Vec<Rate>, Failure> {
    let rates: Result<Vec<Rate>, _> = texts.iter().map(|text| text.parse::<Rate>()).collect();
    let rates = rates?;
    for kind in ItemKind::ALL {
        if rates.iter().filter(|rate| rate.kind == kind).count() > 1 {
            return Err(Failure(format!("two rates of {}: add them up", kind.word())));
        }
    }
    Ok(rates)
}

fn size(text: &str) -> Result<u64, Failure> {
    let size: Result<tidegate_config::Bytes, tidegate_config::Invalid> = text.parse();
    size.map(tidegate_config::Bytes::get)
        .map_err(|error| Failure(format!("--body {text}: {}; {}", error.message, error.help)))
}

fn sizing(config: &Config, load: Load, body: Option<u64>, outage: tidegate_config::Duration) -> Sizing {
    let planned = plan::of(config);
    let kinds: Vec<ItemKind> = load.parts.iter().map(|part| part.kind).collect();
    let outage = outage.get().as_secs_f64();
    let setup = |memory| Setup {
        is_configured: true,
        quota: config.journal.quota.get(),
        segment: config.journal.segment.get(),
        data: config.data.display().to_string(),
        free_disk: free_disk(&config.data),
        losses: Some(losses(config)),
        in_memory_only: config.journal.durability == Durability::Memory,
        sinks: config.sinks.len() as u64,
        memory,
    };
    let need = Need { kinds: &kinds, body, intake: tidegate_sizing::intake_bytes(&load) };
    Sizing::of(load, outage, setup(memory(config, &planned, &need)))
}

/// The sinks that lose acknowledged data. The journal drops for a sink only where that sink's own setting allows it.
fn losses(config: &Config) -> Losses {
    let mut losses = Losses::default();
    for (name, sink) in &config.sinks {
        if sink.when_full(&config.journal) == WhenFull::DropOldest {
            losses.journal.push(name.to_string());
        }
        if kinds::of(sink).handoff().is_some_and(|handoff| handoff.when_full == HandoffFull::DropOldest) {
            losses.handoff.push(name.to_string());
        }
    }
    losses
}

/// What a budget has to take.
struct Need<'a> {
    kinds: &'a [ItemKind],
    /// The largest body.
    body: Option<u64>,
    /// Bytes of bodies in memory.
    intake: u64,
}

impl Need<'_> {
    /// Why a plan does not take it; nothing when it does.
    fn problem(&self, planned: &GatewayPlan) -> Option<String> {
        if let Err(error) = planned.plan.check() {
            return Some(error.to_string());
        }
        if !planned.takes_usual_requests() {
            return Some("its sinks cannot hold requests of a usual size".to_owned());
        }
        for (setting, largest) in self.bodies(planned) {
            if let Some(body) = self.body.filter(|body| *body > largest) {
                return Some(format!(
                    "the largest body for `{setting}` is {}, not {}",
                    Bytes(largest),
                    Bytes(body)
                ));
            }
        }
        let most = planned.plan.ceiling(Share::Ingest);
        (self.intake > most).then(|| {
            format!("{} of bodies are in memory at this rate, of at most {}", Bytes(self.intake), Bytes(most))
        })
    }

    /// The largest bodies of the sources that the items come to, by setting.
    fn bodies<'b>(&'b self, planned: &'b GatewayPlan) -> impl Iterator<Item = (&'static str, u64)> + 'b {
        let is_meant = |name: &str| {
            self.kinds.iter().any(|kind| match kind {
                ItemKind::Samples => name == "prometheus_remote_write",
                ItemKind::Points | ItemKind::Spans | ItemKind::Logs => name == "otlp",
            })
        };
        let announced = planned.announced.iter().filter(move |announced| is_meant(announced.source.name));
        announced
            .map(|announced| (announced.source.max_body_setting, announced.body.min(announced.configured)))
    }
}

fn memory(config: &Config, planned: &GatewayPlan, need: &Need<'_>) -> Memory {
    let least = Config { memory: Some(tidegate_config::Bytes::mib(LEAST_MIB)), ..config.clone() };
    let least = plan::of(&least);
    let smallest = plan::sufficient(config, &least, |planned| need.problem(planned).is_none());
    // The search ends somewhere, found or not.
    let found = plan::of(&Config { memory: Some(smallest), ..config.clone() });
    let smallest = need.problem(&found).is_none().then_some(smallest.get());
    Memory {
        budget: planned.budget.bytes.get(),
        problem: need.problem(planned),
        smallest,
        connections: planned.connections.into(),
        intake: planned.plan.ceiling(Share::Ingest),
        largest_bodies: need.bodies(planned).map(|(setting, body)| (setting.to_owned(), body)).collect(),
    }
}

/// Bytes that the journal may have of the disk: what is free, and what it has already.
fn free_disk(data: &Path) -> Option<u64> {
    let mut ancestors =
        data.ancestors().map(|path| if path.as_os_str().is_empty() { Path::new(".") } else { path });
    let system = ancestors.find_map(|path| rustix::fs::statvfs(path).ok())?;
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    let files = std::fs::read_dir(data.join("journal")).into_iter().flatten().flatten();
    let taken = files.filter_map(|file| file.metadata().ok()).filter(std::fs::Metadata::is_file);
    Some(taken.fold(free, |sum, file| sum.saturating_add(file.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The journal's setting is only the default of each sink's own.
    #[test]
    fn each_sink_says_whether_it_loses_data() {
        let text = r#"
journal: { when_full: drop_oldest }
sinks:
  keeps: { type: otlp, endpoints: ["http://127.0.0.1:1"], when_full: block }
  drops: { type: otlp, endpoints: ["http://127.0.0.1:2"] }
  ring: { type: otlp, endpoints: ["http://127.0.0.1:3"], signals: [traces], route_by: trace_id, when_full: block, handoff: { when_full: drop_oldest } }
"#;
        let config = tidegate_config::parse("t.yaml", text, &|_| None).unwrap();
        let expected = Losses { journal: vec!["drops".to_owned()], handoff: vec!["ring".to_owned()] };
        assert_eq!(losses(&config), expected);
    }
}
