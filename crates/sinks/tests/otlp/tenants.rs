//! Promise: a request says whose data it carries, and carries nobody else's, whatever became of it before.

use crate::peer::{Peer, Reply};
use crate::rig::{BOTH, PART, Rig, settings};
use hyper::header::HeaderName;
use proptest::prelude::*;
use std::collections::BTreeMap;
use tidegate_journal::{Encoding, Signal, Tenant};
use tidegate_sinks::{Compression, OtlpSettings, Transport};

const HEADER: HeaderName = HeaderName::from_static("x-scope-orgid");
const NAMES: [&str; 6] = ["", "a", "b", "Team 1", "c", "d"];
const SIGNALS: [Signal; 3] = [Signal::Traces, Signal::Metrics, Signal::Logs];
const ENCODINGS: [Encoding; 2] = [Encoding::Identity, Encoding::Gzip];

/// The peer's first answers: overloaded, broken off, request too large, or one item rejected.
fn reply(which: usize) -> Reply {
    match which {
        0 => Reply::Reset,
        1 => Reply::AtMost(2_000),
        2 => Reply::Dislikes(3),
        _ => Reply::Http(503, Vec::new(), Vec::new()),
    }
}

async fn sends(
    transport: Transport,
    compression: Compression,
    puts: &[(usize, usize, usize, u64)],
    faults: &[usize],
) {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    peer.script(faults.iter().map(|fault| reply(*fault)));
    let mut owners = BTreeMap::new();
    for (name, signal, encoding, items) in puts {
        rig.tenant = Tenant::new(NAMES[*name]).unwrap();
        for number in rig.put(SIGNALS[*signal], ENCODINGS[*encoding], *items).await {
            owners.insert(number, NAMES[*name]);
        }
    }
    let settings = settings(&peer, transport);
    rig.drain(OtlpSettings { tenant_header: Some(HEADER), compression, ..settings }).await;
    let mut arrived = 0;
    for request in peer.arrived() {
        // Nobody's data goes without the header.
        let said = request.headers.get(&HEADER).map(|name| name.to_str().unwrap());
        for number in request.numbers {
            assert_eq!(Some(owners[&number]).filter(|name| !name.is_empty()), said, "{number}");
            arrived += 1;
        }
    }
    assert!(arrived > 0);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn no_request_carries_anothers_items(
        http in any::<bool>(),
        gzip in any::<bool>(),
        puts in proptest::collection::vec((0..NAMES.len(), 0..SIGNALS.len(), 0..ENCODINGS.len(), 1..20_u64), 1..40),
        faults in proptest::collection::vec(0..4_usize, 0..3),
    ) {
        let transport = BOTH[usize::from(!http)];
        // Headers for HTTP alone are not sent over gRPC.
        let faults: Vec<usize> = faults.into_iter().filter(|fault| http || *fault != 3).collect();
        let compression = if gzip { Compression::Gzip(1) } else { Compression::None };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(Box::pin(sends(transport, compression, &puts, &faults)));
    }
}

/// Without the setting nothing is said.
#[tokio::test]
async fn without_the_setting_no_tenant_header_is_sent() {
    let mut rig = Rig::new(PART);
    let peer = Peer::new();
    rig.tenant = Tenant::new("a").unwrap();
    rig.put(Signal::Traces, Encoding::Gzip, 3).await;
    rig.drain(settings(&peer, Transport::Http)).await;
    rig.assert_exact(&[&peer]);
    assert!(peer.arrived().iter().all(|request| !request.headers.contains_key(&HEADER)));
}
