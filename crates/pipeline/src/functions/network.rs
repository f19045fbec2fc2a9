//! Addresses and flows of networks.

use super::{all, converter, optional, required, with_elements};
use crate::machine::Machine;
use crate::ottl::program::{Argument, Expression};
use crate::ottl::signature::{Signature, Type};
use crate::value::{Failure, Kind, Value};
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use std::net::IpAddr;
use tidegate_wire::json::write;
use tidegate_wire::output::Output;

pub(super) static CONVERTERS: &[&Signature] = &[&COMMUNITY_ID, &IS_IN_CIDR];

/// Whether the target is an address in one of the networks; false for a text that is no address. No output.
static IS_IN_CIDR: Signature = Signature {
    complete: |arguments, constants, _| {
        let Some(Argument::Values(networks)) = arguments.get(1) else { return Ok(()) };
        for network in networks {
            if let Expression::Literal(Value::Text(text)) = network {
                let start = text.start as usize;
                let text = constants.get(start..start + text.len as usize).unwrap_or_default();
                if Network::parse(text).is_none() {
                    return Err((
                        1,
                        format!("`{}` is not a network such as `10.0.0.0/8`", String::from_utf8_lossy(text)),
                    ));
                }
            }
        }
        Ok(())
    },
    ..converter(
        "IsInCIDR",
        &[required("target", Type::Text), required("networks", Type::Texts)],
        Type::Bool,
        |machine, arguments| {
            let [target, networks] = all(arguments)?;
            let target = machine.text(target)?;
            let Some(address) = address(machine.memory.get(target)) else { return Ok(Value::Bool(false)) };
            with_elements(machine, networks, |machine, base| {
                for network in machine.values_since(base) {
                    let Value::Text(text) = *network else {
                        return Err(Failure::Type { wanted: Kind::Text, found: network.kind() });
                    };
                    let network = Network::parse(machine.memory.get(text));
                    if network.ok_or(Failure::Invalid("a network is not like 10.0.0.0/8"))?.contains(address)
                    {
                        return Ok(Value::Bool(true));
                    }
                }
                Ok(Value::Bool(false))
            })
        },
    )
};

/// An address; of IPv4 also in the notation of IPv6.
fn address(text: &[u8]) -> Option<IpAddr> {
    str::from_utf8(text).ok()?.parse().ok().map(|address: IpAddr| address.to_canonical())
}

/// The addresses that share the first bits.
struct Network {
    address: IpAddr,
    bits: u32,
}

impl Network {
    fn parse(text: &[u8]) -> Option<Network> {
        let (address, bits) = str::from_utf8(text).ok()?.split_once('/')?;
        let address: IpAddr = address.parse().ok()?;
        if bits.is_empty() || !bits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let bits: u32 = bits.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        (bits <= most).then_some(Network { address, bits })
    }

    fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address) {
            (IpAddr::V4(network), IpAddr::V4(address)) => {
                let differ = network.to_bits() ^ address.to_bits();
                differ.leading_zeros() >= self.bits
            }
            (IpAddr::V6(network), IpAddr::V6(address)) => {
                let differ = network.to_bits() ^ address.to_bits();
                differ.leading_zeros() >= self.bits
            }
            _ => false,
        }
    }
}

/// The Community ID of a flow, version 1: <https://github.com/corelight/community-id-spec>. Output: 30 bytes.
static COMMUNITY_ID: Signature = converter(
    "CommunityID",
    &[
        required("source_ip", Type::Text),
        required("source_port", Type::Int),
        required("destination_ip", Type::Text),
        required("destination_port", Type::Int),
        optional("protocol", Type::Text),
        optional("seed", Type::Int),
    ],
    Type::Text,
    |machine, arguments| {
        let [source, source_port, destination, destination_port, protocol, seed] = all(arguments)?;
        let source = end(machine, source, source_port)?;
        let destination = end(machine, destination, destination_port)?;
        let protocol = match protocol {
            Argument::Absent => 6,
            protocol => {
                let protocol = machine.text(protocol)?;
                match machine.memory.get(protocol) {
                    b"ICMP" => 1,
                    b"TCP" => 6,
                    b"UDP" => 17,
                    b"RSVP" => 46,
                    b"ICMP6" => 58,
                    b"SCTP" => 132,
                    _ => {
                        return Err(Failure::Invalid(
                            "unknown protocol: there are ICMP, ICMP6, RSVP, SCTP, TCP and UDP",
                        ));
                    }
                }
            }
        };
        let seed = match seed {
            Argument::Absent => 0,
            seed => u16::try_from(machine.int(seed)?)
                .map_err(|_| Failure::Invalid("the seed is not from 0 to 65535"))?,
        };
        let hash = flow(source, destination, protocol, seed);
        let mark = machine.memory.mark();
        let (_, mut room) = machine.memory.split();
        room.put(b"1:")?;
        write::base64(&hash, &mut room)?;
        Ok(Value::Text(machine.memory.since(mark)))
    },
);

fn end(machine: &mut Machine<'_>, host: &Argument, port: &Argument) -> Result<(IpAddr, u16), Failure> {
    let host = machine.text(host)?;
    let port = machine.int(port)?;
    let port = u16::try_from(port).map_err(|_| Failure::Invalid("the port is not from 0 to 65535"))?;
    let address =
        address(machine.memory.get(host)).ok_or(Failure::Invalid("the string is not an IP address"))?;
    Ok((address, port))
}

/// The hash of a flow: that of both directions, since the smaller end comes first.
fn flow(one: (IpAddr, u16), other: (IpAddr, u16), protocol: u8, seed: u16) -> [u8; 20] {
    // An address of IPv4 is shorter, and smaller.
    let (first, second) = if one <= other { (one, other) } else { (other, one) };
    let mut tuple = [0; 40];
    let mut len = 0;
    let mut put = |bytes: &[u8]| {
        for (place, byte) in tuple.iter_mut().skip(len).zip(bytes) {
            *place = *byte;
        }
        len += bytes.len();
    };
    put(&seed.to_be_bytes());
    for (address, _) in [first, second] {
        match address {
            IpAddr::V4(address) => put(&address.octets()),
            IpAddr::V6(address) => put(&address.octets()),
        }
    }
    put(&[protocol, 0]);
    put(&first.1.to_be_bytes());
    put(&second.1.to_be_bytes());
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, tuple.get(..len).unwrap_or_default());
    let mut hash = [0; 20];
    hash.iter_mut().zip(digest.as_ref()).for_each(|(place, byte)| *place = *byte);
    hash
}
