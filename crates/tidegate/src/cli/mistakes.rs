//! Mistakes on the command line that need more words than its parser has.

use super::Cli;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Error};
use std::path::Path;

/// Adds what to write where a configuration file stands alone, as `tidegate check FILE` has it, and not behind `--config`.
pub(crate) fn explained(mut error: Error, arguments: &[String]) -> Error {
    let Some(ContextValue::String(file)) = error.get(ContextKind::InvalidArg) else { return error };
    let extension = Path::new(file).extension();
    let is_configuration = extension.is_some_and(|extension| extension == "yaml" || extension == "yml");
    if error.kind() == ErrorKind::UnknownArgument && is_configuration && has_config(arguments) {
        let tip = format!("the configuration is given as `--config {file}`");
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Whether the command that these arguments name has the option `--config`.
fn has_config(arguments: &[String]) -> bool {
    let mut command = Cli::command();
    for name in arguments.iter().skip(1) {
        // Others are options and their values.
        if let Some(found) = command.find_subcommand(name) {
            command = found.clone();
        }
    }
    command.get_arguments().any(|argument| argument.get_long() == Some("config"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn said(line: &str) -> String {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        explained(Cli::try_parse_from(&arguments).unwrap_err(), &arguments).to_string()
    }

    #[test]
    fn a_configuration_without_its_option_is_told_apart() {
        for line in [
            "tidegate run tidegate.yaml",
            "tidegate doctor a/b.yml",
            "tidegate pipeline eval x.yaml",
            "tidegate --log debug run x.yaml",
        ] {
            let file = line.rsplit(' ').next().unwrap();
            assert!(
                said(line).contains(&format!("tip: the configuration is given as `--config {file}`")),
                "{line}"
            );
        }
        for line in ["tidegate schema x.yaml", "tidegate run tidegate.toml", "tidegate run --confg x.yaml"] {
            assert!(!said(line).contains("the configuration is given as"), "{line}: {}", said(line));
        }
    }
}
