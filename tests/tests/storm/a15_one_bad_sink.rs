//! Three receivers, one that does not answer and one that crawls: the third gets everything at full speed.
//! (One broken destination that stalls all, VictoriaMetrics #7826.)

use crate::support::{MIB, Storm, TIMELINE, alone, drained};
use serde_json::json;
use std::time::{Duration, Instant};
use tidegate_load::{Behaviour, Check, LoadProfile, RunLimit, VerifyingReceiver, compare};
use tidegate_tests::until;

/// How far behind the good one may be when all is sent.
const BEHIND: Duration = Duration::from_secs(30);

#[test]
fn the_others_do_not_wait() {
    let _alone = alone();
    let start = |behaviour| VerifyingReceiver::start(behaviour, Check::Timed(TIMELINE)).unwrap();
    let (hole, crawling) = (start(Behaviour::Stall), start(Behaviour::Slow { bytes_per_second: 2000 }));
    let to = |sink: &VerifyingReceiver| json!({ "type": "prometheus_remote_write", "url": sink.target().to_string() });
    let others = json!({ "sinks": { "hole": to(&hole), "crawling": to(&crawling) } });
    let mut storm = Storm::start(64 * MIB, 8000, &others);
    let mut report =
        storm.drive(&LoadProfile { limit: RunLimit::Passes(60), ..LoadProfile::default() }).join().unwrap();
    println!("{report}");
    assert_eq!((report.refused(), report.failed), (0, 0), "{report}");
    let sent = Instant::now();
    until(drained(), "the good receiver to have everything", || {
        let books = storm.gateway.status()["books"]["sinks"].clone();
        books.as_array().unwrap().iter().any(|book| book["name"] == "up" && book["queued"] == 0)
    });
    println!("the good receiver had everything {:?} later", sent.elapsed());
    assert!(sent.elapsed() < BEHIND, "{:?}", sent.elapsed());
    assert!(compare(&storm.model, &report.acked, &storm.sink.report()).nothing_lost());
    assert!(
        !compare(&storm.model, &report.acked, &crawling.report()).nothing_lost(),
        "it was fast after all"
    );
    hole.set(Behaviour::Healthy);
    crawling.set(Behaviour::Healthy);
    storm.is_over(&report.acked);
    for sink in [&hole, &crawling] {
        assert!(compare(&storm.model, &report.acked, &sink.report()).nothing_lost());
    }
    storm.is_normal(&mut report.acked, 1 << 40);
}
