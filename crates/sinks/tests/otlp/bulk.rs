//! Promise: documents that came in `_bulk` bodies arrive as log records; what is no document is counted.

use crate::rig::{BOTH, PART, Rig, settings_for};
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_load::Behaviour;
use tidegate_load::otlp::OtlpSink;
use tidegate_sinks::OtlpSettings;

/// A body of `count` documents and one deletion.
fn body(count: usize) -> Vec<u8> {
    let mut body = Vec::new();
    for number in 0..count {
        let document =
            format!(r#"{{"message":"document {number}","service":{{"name":"shop"}},"log.level":"info"}}"#);
        body.extend_from_slice(format!("{{\"create\":{{\"_index\":\"logs-a\"}}}}\n{document}\n").as_bytes());
    }
    body.extend_from_slice(b"{\"delete\":{\"_index\":\"logs-a\",\"_id\":\"x\"}}\n");
    body
}

#[tokio::test]
async fn documents_arrive_as_log_records() {
    for transport in BOTH {
        let mut rig = Rig::new(PART);
        let peer = OtlpSink::start(Behaviour::Healthy, true).unwrap();
        for count in [3, 5000] {
            let body = body(count);
            let items = count as u64 + 1;
            rig.append(Signal::Logs, Protocol::Bulk, Encoding::Identity, &body, body.len(), items).await;
            // OTLP between them goes its own way.
            rig.put(Signal::Logs, Encoding::Identity, 5).await;
        }
        let max_request_bytes = 256 << 10;
        rig.drain(OtlpSettings { max_request_bytes, ..settings_for(peer.address(), transport) }).await;
        let page = rig.page();
        assert_eq!((page.delivered, page.dropped), (5003 + 10, vec![(Dropped::Untranslatable, 2)]));
        let arrived = peer.report();
        assert_eq!((arrived.malformed, arrived.unnumbered), (0, 5013));
    }
}
