//! Promise: events of Elastic APM arrive in a request for each signal; what is no event is counted.

use crate::rig::{BOTH, PART, Rig, settings_for};
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_load::Behaviour;
use tidegate_load::elastic_apm::AGENTS;
use tidegate_load::otlp::OtlpSink;
use tidegate_sinks::OtlpSettings;

#[tokio::test]
async fn events_arrive_as_what_they_are() {
    for transport in BOTH {
        let mut rig = Rig::new(PART);
        let peer = OtlpSink::start(Behaviour::Healthy, true).unwrap();
        let mut events = 0;
        for agent in AGENTS {
            let body = agent.busy.as_bytes();
            let items = agent.busy.lines().count() as u64 - 1;
            events += items;
            // One that was counted, and is not there.
            rig.append(Signal::Traces, Protocol::Intake, Encoding::Identity, body, body.len(), items + 1)
                .await;
            // OTLP between them goes its own way.
            rig.put(Signal::Traces, Encoding::Identity, 5).await;
        }
        let max_request_bytes = 16 << 10;
        rig.drain(OtlpSettings { max_request_bytes, ..settings_for(peer.address(), transport) }).await;
        let page = rig.page();
        assert_eq!((page.delivered, page.dropped), (events + 20, vec![(Dropped::Untranslatable, 4)]));
        let arrived = peer.report();
        // A metricset becomes several points.
        assert_eq!(arrived.malformed, 0);
        assert!(arrived.unnumbered >= events, "{} of {events}", arrived.unnumbered);
    }
}
