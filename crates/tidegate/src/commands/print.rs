//! Prints generated documents: schema, example, completions, manual page.

use crate::cli::Cli;
use crate::{Outcome, output};
use clap::CommandFactory;

/// `tidegate schema`
pub(crate) fn schema() -> Outcome {
    let schema = serde_json::to_string_pretty(&tidegate_config::schema())?;
    Ok(output::print(&(schema + "\n"))?)
}

/// `tidegate example`
pub(crate) fn example() -> Outcome {
    Ok(output::print(&tidegate_config::example())?)
}

/// `tidegate completions SHELL`
pub(crate) fn completions(shell: clap_complete::Shell) -> Outcome {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "tidegate", &mut script);
    Ok(output::print(&String::from_utf8_lossy(&script))?)
}

/// `tidegate man`
pub(crate) fn man() -> Outcome {
    let mut page = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut page)?;
    Ok(output::print(&String::from_utf8_lossy(&page))?)
}
