//! Promise: a request says whose documents it carries, and carries nobody else's.

use crate::node::{Answer, Node};
use crate::rig::{PART, Rig, settings};
use hyper::header::HeaderName;
use std::collections::BTreeMap;
use tidegate_journal::{Encoding, Tenant};
use tidegate_sinks::ElasticsearchSettings;

const HEADER: HeaderName = HeaderName::from_static("x-scope-orgid");

/// Documents of five owners in turns, of whom one is nobody: under each name come as many as were put in under it.
#[tokio::test]
async fn each_request_is_of_one_tenant() {
    let mut rig = Rig::new(PART);
    // A document rejected at first is sent again with the same `_id`.
    let node = Node::new([Answer::Status(503, "busy")]);
    let mut put: BTreeMap<String, u64> = BTreeMap::new();
    for round in 0..60_u64 {
        let name = ["", "a", "b", "Team 1", "c"][(round * round % 5) as usize];
        rig.tenant = Tenant::new(name).unwrap();
        rig.put(Encoding::Gzip, "{\"create\":{\"_index\":\"i\"}}", 1 + round % 7, 50).await;
        *put.entry(name.to_owned()).or_default() += 1 + round % 7;
    }
    rig.drain(ElasticsearchSettings { tenant_header: Some(HEADER), ..settings(&node) }).await;
    let mut came: BTreeMap<String, u64> = BTreeMap::new();
    // The first was not taken.
    for (documents, _, headers) in node.seen().requests.iter().skip(1) {
        let said = headers.get(&HEADER).map_or("", |name| name.to_str().unwrap());
        *came.entry(said.to_owned()).or_default() += *documents as u64;
    }
    assert_eq!(came, put);
    node.assert_has(0..put.values().sum());
}
