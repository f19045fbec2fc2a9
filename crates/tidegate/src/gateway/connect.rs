//! Instructions for senders, for the console: the same as `tidegate connect` prints.

use super::admin_access::host_of;
use crate::commands::connect::machine;
use serde_json::json;
use std::net::IpAddr;
use tidegate_config::Config;
use tidegate_connect::{Gateway, Lookup, Sender, find, list};
use tidegate_console::{ConnectAnswer, ConnectError, ConnectQuery};

/// The answer of a gateway with this configuration. Where it listens on all addresses, senders reach it as the page was reached; a page on
/// the same machine says nothing about that.
pub(super) fn answer(config: &Config, query: &ConnectQuery) -> ConnectAnswer {
    let host = Some(host_of(&query.authority)).filter(|host| !is_this_machine(host));
    let host = host.and_then(|host| host.parse().ok());
    let sender = Sender::new(host.unwrap_or_else(machine));
    let gateway = Gateway::new(config, &sender);
    let Some(name) = &query.kind else { return Ok(list(gateway).json()) };
    let Lookup::Found(kind) = find(name) else { return Err(ConnectError::Unknown) };
    Ok(match kind.instructions(gateway) {
        Ok(instructions) => json!({"snippets": instructions.json()}),
        Err(missing) => {
            json!({"missing": {"setting": missing.setting, "lines": missing.lines, "note": missing.note}})
        }
    })
}

fn is_this_machine(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only a page from elsewhere knows how others reach the gateway.
    #[test]
    fn a_page_from_elsewhere_names_the_gateway() {
        let config =
            tidegate_config::parse("test", "listen: {http: '0.0.0.0:4318', insecure: true}\n", &|_| None);
        let config = config.unwrap();
        let of = |authority: &str| {
            let query =
                ConnectQuery { kind: Some("otel-python".to_owned()), authority: authority.to_owned() };
            answer(&config, &query).unwrap().to_string()
        };
        assert!(of("gateway.example:4319").contains("http://gateway.example:4318"));
        let command = of("");
        for authority in ["localhost:4319", "127.0.0.1", "[::1]:4319", "not a host"] {
            assert_eq!(of(authority), command, "{authority}");
        }
    }
}
