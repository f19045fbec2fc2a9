//! The commands about agents that speak OpAMP.

use super::FleetArgs;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Put a configuration for the collectors with some labels, and roll it out in steps
    ///
    /// The file is YAML. It goes to the collectors whose attributes have all labels; of several configurations the one with the most labels
    /// counts. A file that has not changed changes nothing, and a roll-out stops when too many collectors fail.
    Put(ConfigPutArgs),
    /// List configurations, and how far their roll-outs have come
    Ls(FleetArgs),
    /// Show a configuration
    Show {
        /// The configuration's name
        name: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// Remove a configuration: its collectors keep what they have, unless another one is for them
    Rm {
        /// The configuration's name
        name: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct ConfigPutArgs {
    /// The file
    pub(crate) file: PathBuf,
    /// The configuration's name. Default: the file's name
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// A label that collectors must have; may be given several times. Default: all collectors
    #[arg(long = "match", value_name = "KEY=VALUE", value_parser = label)]
    pub(crate) labels: Vec<(String, String)>,
    /// The part of the collectors that each step of the roll-out adds
    #[arg(long, value_name = "PERCENT", default_value = "10%", value_parser = percent)]
    pub(crate) step: u32,
    /// The part of the collectors reached that may fail before the roll-out stops
    #[arg(long, value_name = "PERCENT", default_value = "5%", value_parser = percent)]
    pub(crate) max_failed: u32,
    #[command(flatten)]
    pub(crate) fleet: FleetArgs,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CollectorCommand {
    /// List collectors
    Ls(FleetArgs),
    /// Show a collector: its attributes, health, and effective configuration with secrets masked
    Show {
        /// The collector's instance uid
        id: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// Have a collector restart
    Restart {
        /// The collector's instance uid
        id: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// Forget a collector. One that comes back is a new one
    Rm {
        /// The collector's instance uid
        id: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// Tokens: who may connect
    #[command(subcommand)]
    Token(CollectorTokenCommand),
}

#[derive(Debug, Subcommand)]
pub(crate) enum CollectorTokenCommand {
    /// Make a token, and print it: collectors send it as `Authorization: Bearer TOKEN`
    Create {
        /// A name, for people
        #[arg(long, default_value = "")]
        name: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
    /// List tokens, without their secrets
    Ls(FleetArgs),
    /// Revoke a token: nobody connects with it any more
    Revoke {
        /// The token's id
        id: String,
        #[command(flatten)]
        fleet: FleetArgs,
    },
}

fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("a label is KEY=VALUE, such as service.name=gateway")?;
    Ok((key.to_owned(), value.to_owned()))
}

fn percent(text: &str) -> Result<u32, String> {
    let number = text.strip_suffix('%').unwrap_or(text).parse().ok();
    number
        .filter(|number| *number <= 100)
        .ok_or_else(|| "a part is 0% to 100%, without a fraction".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_parts_are_read() {
        assert_eq!(label("a=b=c"), Ok(("a".to_owned(), "b=c".to_owned())));
        assert!(label("a").is_err());
        assert_eq!((percent("10%"), percent("7")), (Ok(10), Ok(7)));
        assert!(percent("101").is_err() && percent("x").is_err() && percent("-1").is_err());
    }
}
