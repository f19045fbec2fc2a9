//! Three ingestors of Thanos behind the sink `thanos_receive`, of which one fails, and rings that change, under load: memory holds, the
//! others go on, and nothing acknowledged is missing, replica by replica.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test ends where it fails, and says what it measures"
)]

#[path = "support/storm.rs"]
mod support;

#[path = "ingestors/changed_ring.rs"]
mod changed_ring;
#[path = "ingestors/failing_member.rs"]
mod failing_member;

use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::Arc;
use support::{MIB, TIMELINE, drained, kernel_allowance};
use tidegate_load::{AcknowledgedSamples, Check, SeriesModel, ThanosIngestors, compare};
use tidegate_tests::Gateway;

const SINK: &str = "ring";
const MEMORY: u64 = 64 * MIB;
const JOURNAL: u64 = 1 << 30;

/// A gateway before a ring.
struct Rig {
    gateway: Gateway,
    ingestors: ThanosIngestors,
    model: Arc<SeriesModel>,
    replication: u64,
}

impl Rig {
    /// With so many ingestors, of which the first `in_ring` are in the ring.
    fn start(ingestors: usize, in_ring: usize, replication: u64, series: usize, connections: usize) -> Rig {
        let ingestors = ThanosIngestors::start(ingestors, Check::Timed(TIMELINE)).unwrap();
        let mut gateway = Gateway::new(json!({}));
        let model = Arc::new(SeriesModel::new(7, series, TIMELINE));
        gateway.configure(json!({
            "memory": MEMORY,
            "limits": { "connections": connections },
            // At full speed more comes than three ingestors on the same machine take: the clients have to wait for them.
            "journal": { "quota": JOURNAL },
            "sinks": { SINK: {
                "type": "thanos_receive", "algorithm": "ketama", "replication_factor": replication,
                "hashrings_file": gateway.folder().join("hashrings.json"), "max_members": ingestors.addresses().len(),
                "backoff": { "min": "20ms", "max": "200ms" },
                // What a member does not get in some minutes at full speed.
                "handoff": { "quota": "20GiB", "total_quota": "20GiB" },
            } },
        }));
        gateway.limit_memory(MEMORY + kernel_allowance(connections as u64));
        let mut rig = Rig { gateway, ingestors, model, replication };
        rig.set_ring(&(0..in_ring).collect::<Vec<_>>());
        rig.gateway.start();
        rig
    }

    /// Writes the file with the ring anew, with these ingestors in it.
    fn set_ring(&self, members: &[usize]) {
        let addresses = self.ingestors.addresses();
        let endpoints: Vec<_> = members.iter().map(|member| &addresses[*member]).collect();
        let (file, next) = (self.file("hashrings.json"), self.file("hashrings.next"));
        std::fs::write(&next, json!([{ "endpoints": endpoints }]).to_string()).unwrap();
        // At once: a file that is half written is another test.
        std::fs::rename(next, file).unwrap();
    }

    fn file(&self, name: &str) -> PathBuf {
        self.gateway.folder().join(name)
    }

    /// A member as `/status` has it.
    fn member(&self, number: usize) -> Value {
        let address = &self.ingestors.addresses()[number];
        let members = self.gateway.sink(SINK)["members"].clone();
        let found = members.as_array().into_iter().flatten().find(|member| member["address"] == **address);
        found.cloned().unwrap_or_default()
    }

    /// The invariants at the end: what was acknowledged arrived in order, once for each replica at least; memory was never exceeded; the
    /// books close.
    #[track_caller]
    fn is_over(&self, acked: &AcknowledgedSamples) {
        let gateway = &self.gateway;
        gateway.at_rest(drained());
        let number = self.ingestors.addresses().len();
        let waits = |member| self.member(member)["handed_off_requests"].as_u64() > Some(0);
        tidegate_tests::until(drained(), "further copies to arrive", || !(0..number).any(waits));
        assert_eq!(self.ingestors.malformed(), 0);
        for replica in 1..=self.replication {
            let verdict = compare(&self.model, acked, &self.ingestors.replica(replica));
            println!("replica {replica}: {verdict:?}");
            assert!(verdict.acked > 0 && verdict.nothing_lost(), "replica {replica}: {verdict:?}");
            assert_eq!(verdict.unknown_series, 0, "{verdict:?}");
        }
        assert_eq!(gateway.sink(SINK)["dropped"], json!({}));
        gateway.books_close();
        let hwm = gateway.hwm();
        println!("peak {:.1} of {} MiB", hwm as f64 / MIB as f64, MEMORY / MIB);
        assert!(hwm <= MEMORY, "{hwm} bytes were resident");
        if let Some(cgroup) = gateway.cgroup() {
            assert_eq!(cgroup.killed(), 0, "the kernel killed something");
        }
    }
}
