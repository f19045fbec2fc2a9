//! Hashrings of Thanos Receive, written as in its own file.

use serde_json::{Value as Json, json};

use super::fixture::{json_of, plain};
use crate::reader::Reader;
use crate::setting::{PlainValue, ScalarShape, Setting, Shape};
use crate::yaml::Node;
use tidegate_ring::RingConfig;

/// A hashring, with the keys that it has in a file of Thanos Receive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hashring {
    json: Json,
    ring: RingConfig,
}

impl Hashring {
    /// The ring.
    pub fn ring(&self) -> &RingConfig {
        &self.ring
    }
}

impl Setting for Hashring {
    fn read(node: &Node, reader: &mut Reader<'_, '_>) -> Option<Hashring> {
        let json = json_of(node)?;
        match serde_json::from_value(json.clone()) {
            Ok(ring) => Some(Hashring { json, ring }),
            Err(error) => {
                let help = "write it as in a hashring file of Thanos: `{ endpoints: [\"receive-0:10901\"] }`";
                reader.refuse_shown(&node.at, &format!("this is no hashring: {error}"), help);
                None
            }
        }
    }

    fn shape() -> Shape {
        Shape::Scalar(ScalarShape {
            what: "a hashring",
            example: "{ hashring: default, endpoints: [\"receive-0:10901\", \"receive-1:10901\"] }",
            notation: "A hashring with the keys of a hashring file of Thanos Receive: `hashring`, `tenants`, \
                       `tenant_matcher_type`, `endpoints`, `algorithm`, `external_labels`, `shuffle_sharding_config`.",
            choices: Vec::new(),
            schema: || json!({"type": "object"}),
        })
    }

    fn plain(&self) -> PlainValue {
        plain(&self.json)
    }
}
