//! The same program with nothing changed but `memory`: with more it takes more, with less it refuses more, and it is
//! never killed. (Memory sold by tables to be tuned by hand, fleet-server #1857.)

use crate::support::{MIB, Storm, alone, full_speed, phase};
use serde_json::json;
use tidegate_load::Behaviour;

#[test]
fn nothing_else_is_set() {
    let _alone = alone();
    for memory in [32, 64, 256, 2048] {
        let memory = memory * MIB;
        let mut storm = Storm::plan(memory, 20_000, &json!({}));
        let up = json!({ "type": "prometheus_remote_write", "url": storm.sink.target().to_string() });
        storm.gateway.configure(json!({ "memory": memory, "sinks": { "up": up } }));
        storm.limit();
        storm.gateway.start();
        let driving = storm.drive(&full_speed(200, phase()));
        storm.sink.set(Behaviour::Stall);
        // The storm's length, not a wait for something to happen.
        std::thread::sleep(phase() / 2);
        storm.sink.set(Behaviour::Healthy);
        let mut report = driving.join().unwrap();
        println!("{} MiB: {report}", memory / MIB);
        assert_eq!(report.failed, 0, "everybody is answered: {report}");
        assert!(report.answers.keys().all(|status| [204, 503].contains(status)), "{report}");
        storm.is_over(&report.acked);
        storm.is_normal(&mut report.acked, 1 << 40);
    }
}
