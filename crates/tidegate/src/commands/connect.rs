//! `tidegate connect`: what to paste on the sending side.

use crate::cli::{ConnectArgs, ConnectFormat};
use crate::commands::check;
use crate::{Failure, Outcome, output};
use tidegate_config::HostName;
use tidegate_connect::{Gateway, Lookup, Sender, find, list};

/// `tidegate connect`
pub(crate) fn connect(args: &ConnectArgs) -> Outcome {
    let config = check::config(&args.config)?;
    let mut sender = Sender::new(machine())
        .with_ca_file(&args.ca_file)?
        .with_certificate(&args.cert_file, &args.key_file)?
        .with_token_file(&args.token_file)?;
    sender.host.clone_from(&args.host);
    sender.tenant.clone_from(&args.tenant);
    let gateway = Gateway::new(&config, &sender);
    let (text, json) = match &args.kind {
        None => {
            let list = list(gateway);
            (list.to_string(), list.json())
        }
        Some(name) => {
            let instructions = kind(name)?.instructions(gateway)?;
            (instructions.to_string(), instructions.json())
        }
    };
    output::print(&match args.format {
        ConnectFormat::Text => text,
        ConnectFormat::Json => serde_json::to_string_pretty(&json)? + "\n",
    })?;
    Ok(())
}

fn kind(name: &str) -> Result<&'static tidegate_connect::Kind, Failure> {
    match find(name) {
        Lookup::Found(kind) => Ok(kind),
        Lookup::NotReceived(why) => Err(Failure(format!("`{name}`: {why}"))),
        Lookup::Unknown(nearest) => {
            let nearest = nearest.map_or_else(String::new, |nearest| format!(" Did you mean `{nearest}`?"));
            Err(Failure(format!(
                "there is no kind of sender `{name}`.{nearest} `tidegate connect` lists all kinds"
            )))
        }
    }
}

/// This machine's name, where it can stand in a URL.
pub(crate) fn machine() -> HostName {
    let name = rustix::system::uname();
    let named = name.nodename().to_str().ok().and_then(|name| name.parse().ok());
    named.unwrap_or_else(HostName::localhost)
}
