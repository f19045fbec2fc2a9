//! `tidegate check` and `tidegate plan`: what a configuration means, before anything starts.

use crate::cli::ConfigArgs;
use crate::gateway::plan;
use crate::{Failure, Outcome, output};
use std::io::IsTerminal;
use std::path::Path;
use tidegate_config::Config;

/// The configuration that the arguments name, or the default one.
pub(crate) fn config(args: &ConfigArgs) -> Result<Config, Failure> {
    match &args.config {
        Some(file) => read(file),
        None => Ok(Config::default()),
    }
}

fn read(file: &Path) -> Result<Config, Failure> {
    tidegate_config::load(file).map_err(|errors| {
        let coloured = std::io::stderr().is_terminal();
        Failure(if coloured { errors.coloured().to_string() } else { errors.to_string() })
    })
}

/// `tidegate check FILE`
pub(crate) fn check(file: &Path) -> Outcome {
    let config = read(file)?;
    let planned = plan::of(&config);
    plan::check(&config, &planned)?;
    let short = planned.announced.iter().filter(|announced| announced.is_short());
    let notes: String =
        short.map(|announced| format!("# {}: {}\n", announced.setting, announced.shortfall())).collect();
    Ok(output::print(&format!(
        "# {} is valid and fits in its memory.\n{notes}# With every default written out:\n{}",
        file.display(),
        tidegate_config::effective(&config)
    ))?)
}

/// `tidegate plan`
pub(crate) fn plan(args: &ConfigArgs) -> Outcome {
    let config = config(args)?;
    let planned = plan::of(&config);
    output::print(&planned.to_string())?;
    plan::check(&config, &planned)
}
