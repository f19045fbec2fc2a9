//! Changes while the tailer is down.

use super::*;
use crate::tailer::unix_seconds;

/// Whatever happens to a file between two lives, its lines come once each.
#[test]
fn goes_on_after_a_restart() {
    run(async {
        let house = House::new();
        let running = house.start();
        let (a, b) = (numbered("a", 0..200), numbered("b", 0..200));
        write(&house.path("a.log"), &a[..100]);
        write(&house.path("b.log"), &b[..100]);
        house.expect([&a[..100], &b[..100]].concat()).await;
        running.stop().await;

        write(&house.path("a.log"), &a[100..]);
        fs::rename(house.path("a.log"), house.path("a.log.1")).unwrap();
        let new = numbered("new", 0..50);
        write(&house.path("a.log"), &new);
        // Another file with the same name, and with some luck the same inode.
        fs::remove_file(house.path("b.log")).unwrap();
        let other = numbered("other", 0..300);
        write(&house.path("b.log"), &other);
        let running = house.start();
        house.expect([a, b[..100].to_vec(), new, other].concat()).await;
        house.expect_no_more(&running).await;
        running.stop().await;
    });
}

/// The checkpoint of a file that is gone is removed after a time.
#[test]
fn forgets_after_a_time() {
    run(async {
        let mut house = House::new();
        let running = house.start();
        write(&house.path("a.log"), ["one"]);
        house.expect(vec!["one".into()]).await;
        running.stop().await;
        fs::remove_file(house.path("a.log")).unwrap();
        assert!(house.memory.store.borrow().checkpoints.keys().any(|key| key.len() == 17));
        house.settings.remember = Duration::ZERO;
        // A checkpoint of this second is not older than that.
        let first_second = unix_seconds();
        while unix_seconds() == first_second {
            tokio::task::yield_now().await;
        }
        let running = house.start();
        house.until("the removal", |store| store.checkpoints.keys().all(|key| key.len() != 17)).await;
        running.stop().await;
    });
}

/// Killed at any moment, and started again: every line once.
#[test]
fn survives_kills() {
    run(async {
        let mut house = House::new();
        house.settings.batch = 4 << 10;
        house.settings.turn = 1 << 10;
        let mut all = Vec::new();
        for life in 0..30 {
            let running = house.start();
            for name in ["a", "b", "c"] {
                let lines = numbered(name, life * 100..(life + 1) * 100);
                write(&house.path(&format!("{name}.log")), &lines);
                all.extend(lines);
            }
            let wanted = all.len() * 2 / 3;
            house.until("some records", |store| store.records.len() >= wanted.min(all.len())).await;
            running.kill().await;
        }
        let running = house.start();
        house.expect(all).await;
        house.expect_no_more(&running).await;
        running.stop().await;
    });
}
