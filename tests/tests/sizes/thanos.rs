//! The same at `listen.thanos_receive`, which has paths of its own.

use crate::receiver::Receiver;
use crate::requests::requests;
use crate::{DELIVERED, MIB, SIZES, accepts_at, nothing_is_lost};
use serde_json::json;
use tidegate_tests::{Gateway, free_address};

/// From Thanos' address to Thanos' ingestors: every size of what it takes.
#[test]
fn thanos_address_at_64_mib() {
    let receiver = Receiver::start();
    let address = free_address();
    let mut gateway = Gateway::new(json!({}));
    gateway.configure(json!({
        "memory": "64MiB",
        "listen": {
            "http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin(),
            "thanos_receive": { "address": address },
        },
        "sinks": { "ring": {
            "type": "thanos_receive", "algorithm": "ketama", "hashrings": [{ "endpoints": receiver.ingestors() }],
        } },
    }));
    gateway.start();
    let mut swept = 0;
    for kind in requests() {
        let mut largest = 0;
        for size in SIZES {
            let Some(request) = kind.of(size).for_thanos() else { break };
            if accepts_at(&gateway, address, &request) {
                largest = size;
            }
            swept += 1;
        }
        gateway.at_rest(DELIVERED);
        nothing_is_lost(&gateway, &["ring"], &kind.name());
        println!("{}: up to {largest} bytes", kind.name());
        assert!(largest == 0 || largest >= 1_000, "{} of 1,000 bytes is refused", kind.name());
    }
    assert!(swept >= 5 * SIZES.len(), "{swept} requests");
    gateway.books_close();
    assert!(gateway.hwm() <= 64 * MIB as u64, "{} resident", gateway.hwm());
}
