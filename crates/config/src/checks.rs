//! Values that are each valid, but not beside each other.

mod access;
mod cleartext;
mod destination;
pub(crate) mod pipelines;
mod sinks;
mod sources;

use std::net::{IpAddr, SocketAddr};

use crate::Bytes;
use crate::model::{Config, Listener};

pub(crate) use sinks::SinkCheck;

/// Two or more settings that cannot be together.
pub(crate) struct Clash {
    /// The paths of the settings in question; the first that is written in the file is pointed at.
    pub(crate) about: Vec<Vec<String>>,
    pub(crate) message: String,
    pub(crate) help: String,
}

/// Everything that does not go together.
pub(crate) fn check(config: &Config) -> Vec<Clash> {
    let mut clashes = Vec::new();
    addresses(config, &mut clashes);
    access::check(config, &mut clashes);
    destination::check(config, &mut clashes);
    fleet(config, &mut clashes);
    opamp(config, &mut clashes);
    journal(config, &mut clashes);
    sinks::check(config, &mut clashes);
    sources::check(config, &mut clashes);
    clashes
}

/// A request as received and decompressed, and what of it goes to the state, must fit in the part of the memory for requests.
fn fleet(config: &Config, clashes: &mut Vec<Clash>) {
    let Some(fleet) = &config.listen.fleet else { return };
    if fleet.memory.get() < 5 * fleet.max_body.get() {
        let path = |name: &str| ["listen", "fleet", name].map(str::to_owned).to_vec();
        clashes.push(Clash {
            about: vec![path("memory"), path("max_body")],
            message: format!(
                "`listen.fleet.memory` ({}) is less than five times `listen.fleet.max_body` ({})",
                fleet.memory, fleet.max_body
            ),
            help: "a body is held as received, decompressed, and on its way to the disk: raise the one, or lower the other".to_owned(),
        });
    }
}

/// A message as received and decompressed must fit in the part of the memory for requests, and an answer to an operator in that for
/// answers.
fn opamp(config: &Config, clashes: &mut Vec<Clash>) {
    let Some(opamp) = &config.listen.opamp else { return };
    if opamp.memory.get() < 4 * opamp.max_message.get() + Bytes::mib(4).get() {
        let path = |name: &str| ["listen", "opamp", name].map(str::to_owned).to_vec();
        clashes.push(Clash {
            about: vec![path("memory"), path("max_message")],
            message: format!(
                "`listen.opamp.memory` ({}) is less than 4 MiB and four times `listen.opamp.max_message` ({})",
                opamp.memory, opamp.max_message
            ),
            help: "a message is held as received and decompressed: raise the one, or lower the other".to_owned(),
        });
    }
}

/// The addresses that are listened on, each with its setting in `listen`.
fn addresses_of(config: &Config) -> Vec<(String, SocketAddr)> {
    let listen = &config.listen;
    let address = |listener: Listener| Some((listener.to_string(), listener.address(listen)?));
    let admin = ("admin".to_owned(), listen.admin);
    Listener::ALL.into_iter().filter_map(address).chain([admin]).collect()
}

fn addresses(config: &Config, clashes: &mut Vec<Clash>) {
    let all = addresses_of(config);
    for (at, (name, address)) in all.iter().enumerate() {
        for (other, before) in all.iter().take(at) {
            // Both take the same protocols: the same address stands for one listener.
            let one = name == "grpc" && other == "http" && address == before;
            if one || address.port() == 0 || address.port() != before.port() {
                continue;
            }
            if overlap(address.ip(), before.ip()) {
                clashes.push(Clash {
                    about: vec![path(["listen", name]), path(["listen", other])],
                    message: format!(
                        "`listen.{other}` ({before}) and `listen.{name}` ({address}) are the same address"
                    ),
                    help: "change the port of one of them".to_owned(),
                });
            }
        }
    }
}

fn journal(config: &Config, clashes: &mut Vec<Clash>) {
    let (quota, segment) = (config.journal.quota, config.journal.segment);
    if quota.get() / 2 < segment.get() {
        clashes.push(Clash {
            about: vec![path(["journal", "quota"]), path(["journal", "segment"])],
            message: format!("`journal.quota` ({quota}) does not hold two segments of {segment}"),
            help: "raise `journal.quota` or lower `journal.segment`: segments are deleted whole, and the newest is still being written"
                .to_owned(),
        });
    }
}

/// Whether sockets bound to these two would get in each other's way on the same port.
fn overlap(a: IpAddr, b: IpAddr) -> bool {
    // On Linux the unspecified IPv6 address takes IPv4 connections too.
    let covers = |all: IpAddr, one: IpAddr| all.is_unspecified() && (all.is_ipv6() || one.is_ipv4());
    a == b || covers(a, b) || covers(b, a)
}

fn path<const N: usize>(steps: [&str; N]) -> Vec<String> {
    steps.map(str::to_owned).to_vec()
}
