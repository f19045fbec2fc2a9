//! A member of a hashring, as written.

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use std::fmt;

/// The port of Cap'n Proto where none is given.
const CAPNPROTO_PORT: u16 = 19391;

/// A member of a hashring. In a file it is an object, or a string with the address alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Endpoint {
    /// Where it listens for gRPC, `host:port`. Its places on the ring depend on this text only.
    pub address: String,
    /// Where it listens for Cap'n Proto.
    pub capnproto_address: String,
    /// Its availability zone; may be empty.
    pub zone: String,
}

impl Endpoint {
    /// An endpoint without a zone, and with the usual port for Cap'n Proto.
    pub fn new(address: impl Into<String>) -> Self {
        let address = address.into();
        let capnproto_address = format!("{}:{CAPNPROTO_PORT}", host(&address));
        Self { address, capnproto_address, zone: String::new() }
    }

    /// The same endpoint in a zone.
    #[must_use]
    pub fn in_zone(self, zone: impl Into<String>) -> Self {
        Self { zone: zone.into(), ..self }
    }
}

/// The host of an address. Thanos cuts at the first colon, which leaves nothing usable of an IPv6 address.
fn host(address: &str) -> &str {
    match address.split_once(']') {
        Some((host, _)) if address.starts_with('[') => address.get(..=host.len()).unwrap_or(address),
        _ => address.split_once(':').map_or(address, |(host, _)| host),
    }
}

impl<'de> Deserialize<'de> for Endpoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrObject)
    }
}

struct TextOrObject;

#[derive(Default, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Object {
    #[serde(deserialize_with = "super::or_default")]
    address: String,
    #[serde(deserialize_with = "super::or_default")]
    capnproto_address: String,
    #[serde(deserialize_with = "super::or_default")]
    az: String,
}

impl<'de> Visitor<'de> for TextOrObject {
    type Value = Endpoint;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an address, or an object with `address`, `capnproto_address` and `az`")
    }

    fn visit_str<E: Error>(self, address: &str) -> Result<Endpoint, E> {
        if address.is_empty() { Err(E::custom("the address is missing")) } else { Ok(Endpoint::new(address)) }
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Endpoint, A::Error> {
        let object = Object::deserialize(MapAccessDeserializer::new(map))?;
        let endpoint = self.visit_str(&object.address)?.in_zone(object.az);
        if object.capnproto_address.is_empty() {
            return Ok(endpoint);
        }
        Ok(Endpoint { capnproto_address: object.capnproto_address, ..endpoint })
    }
}
