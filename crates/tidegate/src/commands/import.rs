//! `tidegate import`: configurations of others, said in ours.

use crate::cli::ImportCommand;
use crate::{Failure, Outcome, output};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tidegate_config::{LONGEST_FILE, thanos_limits};

/// `tidegate import …`
pub(crate) fn import(command: &ImportCommand) -> Outcome {
    match command {
        ImportCommand::ThanosLimits { file } => {
            let source = file.display().to_string();
            let text = read(file).map_err(|error| format!("reading the limits in {source}: {error}"))?;
            let configuration =
                thanos_limits(&source, &text).map_err(|errors| Failure(errors.to_string()))?;
            Ok(output::print(&configuration)?)
        }
    }
}

/// The text of a file, as far as a configuration may be long.
fn read(file: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
    File::open(file)?.take(LONGEST_FILE as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}
