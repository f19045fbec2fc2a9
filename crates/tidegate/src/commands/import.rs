//! `tidegate import`: other programs' configurations and checkpoints.

mod checkpoints;

use crate::cli::ImportCommand;
use crate::{Failure, Outcome, output};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use tidegate_config::{
    Errors, Imported, LONGEST_FILE, fluent_bit, otelcol, prometheus, thanos_limits, thanos_receive, vector,
    vmagent,
};

/// `tidegate import …`
pub(crate) fn import(command: &ImportCommand) -> Outcome {
    match command {
        ImportCommand::Otelcol { file, collector_version } => {
            let (source, text) = source(file, "configuration")?;
            imported(otelcol(&source, &text, *collector_version))
        }
        ImportCommand::FluentBit { file } => {
            let (source, text) = source(file, "configuration")?;
            imported(fluent_bit(&source, &text, &named_file))
        }
        ImportCommand::Prometheus { file } => {
            let (source, text) = source(file, "configuration")?;
            imported(prometheus(&source, &text))
        }
        ImportCommand::Vmagent { arguments } => imported(vmagent(arguments, &named_file)),
        ImportCommand::Vector { files } => {
            let files: Result<Vec<_>, Failure> =
                files.iter().map(|file| source(file, "configuration")).collect();
            imported(vector(&files?))
        }
        ImportCommand::Checkpoints(args) => checkpoints::import(args),
        ImportCommand::ThanosReceive { arguments } => imported(thanos_receive(arguments, &named_file)),
        ImportCommand::ThanosLimits { file } => {
            let (source, text) = source(file, "limits")?;
            imported(thanos_limits(&source, &text))
        }
    }
}

/// Prints the configuration, and on standard error what is missed in it.
fn imported(result: Result<Imported, Errors>) -> Outcome {
    let Imported { configuration, notes } = result.map_err(|errors| Failure(errors.to_string()))?;
    output::print(&configuration)?;
    for note in notes.iter().filter(|note| !note.is_needless()) {
        output::note(&note.to_string());
    }
    Ok(())
}

/// The name and the text of a file with `what`.
fn source(file: &Path, what: &str) -> Result<(String, String), Failure> {
    let source = file.display().to_string();
    let text = read(file).map_err(|error| Failure(format!("reading the {what} in {source}: {error}")))?;
    Ok((source, text))
}

/// The text of a file that a command line names.
fn named_file(path: &str) -> Result<String, String> {
    read(Path::new(path)).map_err(|error| error.to_string())
}

/// The text of a file, as far as a configuration may be long.
fn read(file: &Path) -> std::io::Result<String> {
    let mut text = String::new();
    #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
    File::open(file)?.take(LONGEST_FILE as u64 + 1).read_to_string(&mut text)?;
    Ok(text)
}
