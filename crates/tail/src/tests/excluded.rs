//! Files whose resource says later that they are to be read, or not at all.

use super::*;
use crate::{FileInfo, ResourceState};
use flate2::Compression;
use flate2::write::GzEncoder;
use std::sync::{Arc, Mutex};
use tidegate_wire::otlp::logs::Attributes;

/// Answers the same for all files.
#[derive(Clone)]
struct Told(Arc<Mutex<ResourceState>>);

impl Told {
    fn new(state: ResourceState) -> Told {
        Told(Arc::new(Mutex::new(state)))
    }

    fn answer(&self, state: ResourceState) {
        *self.0.lock().unwrap() = state;
    }
}

impl FileResource for Told {
    fn resource(&mut self, _: &FileInfo<'_>, _: Duration, _: &mut Attributes<'_>) -> ResourceState {
        *self.0.lock().unwrap()
    }
}

/// A deleted file that is excluded only then is let go.
#[test]
fn an_excluded_file_without_a_name_is_let_go() {
    run(async {
        let house = House::new();
        let told = Told::new(ResourceState::Wait);
        write(&house.path("a.log"), ["one"]);
        let running = house.start_with(told.clone());
        while running.status().await.is_empty() {}
        fs::remove_file(house.path("a.log")).unwrap();
        while house.meters.rotations() == 0 {
            running.status().await;
        }
        told.answer(ResourceState::Exclude);
        while !running.status().await.is_empty() {}
        assert!(house.texts().is_empty());
        running.stop().await;
    });
}

/// A deleted compressed file that turns out not to be read is let go.
#[test]
fn a_skipped_compressed_file_without_a_name_is_let_go() {
    run(async {
        let house = House::new();
        let mut gz = GzEncoder::new(Vec::new(), Compression::fast());
        gz.write_all((numbered("a", 0..100).join("\n") + "\n").as_bytes()).unwrap();
        let gz = gz.finish().unwrap();
        let mut file = append_to(&house.path("a.log.gz"));
        file.write_all(&gz[..12]).unwrap();
        let running = house.start();
        while running.status().await.is_empty() {}
        fs::remove_file(house.path("a.log.gz")).unwrap();
        while house.meters.rotations() == 0 {
            running.status().await;
        }
        file.write_all(&gz[12..]).unwrap();
        while !running.status().await.is_empty() {}
        assert_eq!(house.meters.skipped_compressed(), 1);
        running.stop().await;
    });
}

/// While a file waits, nothing is written again and again.
#[test]
fn a_file_that_waits_writes_nothing() {
    run(async {
        let house = House::new();
        let told = Told::new(ResourceState::Wait);
        write(&house.path("a.log"), ["one"]);
        let running = house.start_with(told);
        house.until("the marker of the input", |store| store.sets > 0).await;
        running.status().await;
        let before = house.memory.store.borrow().sets;
        for _ in 0..50 {
            assert!(running.control.send(Control::ResourcesChanged).await.is_ok());
            running.status().await;
        }
        let after = house.memory.store.borrow().sets;
        assert!(after <= before + 1, "set {} times more", after - before);
        running.stop().await;
    });
}
