//! Promise: what can never be held is dropped by the item, and nothing hangs: neither the sink, nor the thread that it
//! runs on, nor the order to stop.

use crate::bodies::put;
use crate::peer::Peer;
use crate::rig::{BOTH, Rig, settings};
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_ledger::Dropped;
use tidegate_sinks::{Compression, OtlpSettings};

/// A request of one resource with an attribute of `envelope` bytes, and these items.
fn request(envelope: usize, items: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let (mut resource, mut scope, mut group, mut request) = (vec![], vec![], vec![], vec![]);
    // `Resource.dropped_attributes_count` is passed over by all; the length is what counts.
    put(&mut resource, 15, &vec![b'x'; envelope]);
    items.into_iter().for_each(|item| put(&mut scope, 2, &item));
    put(&mut group, 1, &resource);
    put(&mut group, 2, &scope);
    put(&mut request, 1, &group);
    request
}

fn record(number: u64, padding: usize) -> Vec<u8> {
    let mut record = Vec::new();
    put(&mut record, 3, number.to_string().as_bytes());
    put(&mut record, 15, &vec![b'x'; padding]);
    record
}

/// A single item, and items of a resource, that fit into no request at all: they go, and what is beside them arrives.
#[tokio::test]
async fn what_never_fits_is_dropped_and_nothing_hangs() {
    for transport in BOTH {
        for compression in [Compression::None, Compression::Gzip(1)] {
            let mut rig = Rig::narrow(256 << 10, 4 << 20);
            let peer = Peer::new();
            rig.put(Signal::Logs, Encoding::Gzip, 3).await;
            let one = request(0, [record(3, 3 << 20)]);
            let many = request(3 << 20, (4..54).map(|number| record(number, 10)));
            rig.next = 54;
            for (raw, items) in [(one, 1), (many, 50)] {
                let body = crate::bodies::encoded(Encoding::Gzip, &raw);
                rig.append(Signal::Logs, Protocol::Otlp, Encoding::Gzip, &body, raw.len(), items).await;
            }
            rig.put(Signal::Logs, Encoding::Gzip, 3).await;
            let settings = settings(&peer, transport);
            rig.drain(OtlpSettings { compression, max_request_bytes: 1 << 20, ..settings }).await;
            rig.assert_but(&[&peer], 3..54);
            assert_eq!(rig.dropped(), [(Dropped::TooLarge, 51)]);
        }
    }
}
