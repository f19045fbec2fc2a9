//! Files that are copied and truncated.

use super::*;
use crate::LossReason;

/// Copies and truncates a file, as logrotate does with `copytruncate`.
fn copytruncate(house: &House, name: &str, copy: &str) {
    fs::copy(house.path(name), house.path(copy)).unwrap();
    OpenOptions::new().write(true).truncate(true).open(house.path(name)).unwrap();
}

/// Lines that were not read before the truncation are read from the copy; nothing comes twice.
#[test]
fn reads_the_rest_from_the_copy() {
    run(async {
        let house = House::new();
        let running = house.start();
        let mut all = Vec::new();
        for rotation in 0..5 {
            let lines = numbered(&format!("r{rotation}"), 0..300);
            write(&house.path("a.log"), &lines[..100]);
            all.extend_from_slice(&lines[..100]);
            house.expect(all.clone()).await;
            // Unread when the copy is made.
            write(&house.path("a.log"), &lines[100..]);
            for old in (1..6).rev() {
                let _ = fs::rename(
                    house.path(&format!("a.log.{old}")),
                    house.path(&format!("a.log.{}", old + 1)),
                );
            }
            copytruncate(&house, "a.log", "a.log.1");
            all.extend_from_slice(&lines[100..]);
            house.expect(all.clone()).await;
        }
        house.expect_no_more(&running).await;
        assert_eq!(house.meters.lost(LossReason::Truncated), 0);
        assert_eq!(house.meters.truncations(), 5);
        running.stop().await;
    });
}

/// The same while the tailer is down, with the new content shorter or longer than the old.
#[test]
fn reads_the_rest_from_the_copy_after_a_restart() {
    for longer in [false, true] {
        run(async {
            let house = House::new();
            let running = house.start();
            let lines = numbered("old", 0..300);
            write(&house.path("a.log"), &lines[..100]);
            house.expect(lines[..100].to_vec()).await;
            running.stop().await;
            write(&house.path("a.log"), &lines[100..]);
            copytruncate(&house, "a.log", "a.log.1");
            let new = numbered("new", 0..if longer { 1000 } else { 3 });
            write(&house.path("a.log"), &new);
            let running = house.start();
            house.expect([lines, new].concat()).await;
            house.expect_no_more(&running).await;
            running.stop().await;
        });
    }
}

/// Without the copy, what the truncation took is counted as far as it was known.
#[test]
fn counts_what_was_taken() {
    run(async {
        let house = House::with("*.log");
        let mut file = append_to(&house.path("a.log"));
        let lines = numbered("a", 0..100);
        file.write_all((lines.join("\n") + "\nunfinished").as_bytes()).unwrap();
        let running = house.start();
        house.expect(lines.clone()).await;
        while running.status().await[0].lag != 10 {}
        file.set_len(0).unwrap();
        write(&house.path("a.log"), ["after"]);
        house.expect([lines, vec!["after".into()]].concat()).await;
        assert_eq!(house.meters.lost(LossReason::Truncated), 10);
        running.stop().await;
    });
}

/// A copy of a file that goes on is not read, and one that is made for good is not either when the file is gone.
#[test]
fn does_not_read_a_backup() {
    run(async {
        let mut house = House::new();
        house.settings.rotate_wait = Duration::from_millis(1);
        let lines = numbered("a", 0..200);
        write(&house.path("a.log"), &lines[..100]);
        let running = house.start();
        house.expect(lines[..100].to_vec()).await;
        fs::copy(house.path("a.log"), house.path("a.log.backup")).unwrap();
        write(&house.path("a.log"), &lines[100..]);
        house.expect(lines.clone()).await;
        house.expect_no_more(&running).await;
        fs::remove_file(house.path("a.log")).unwrap();
        while running.status().await.iter().any(|file| file.path.ends_with("a.log")) {}
        write(&house.path("b.log"), ["behind"]);
        house.until("the line", |store| store.records.iter().any(|(_, text)| text == "behind")).await;
        assert_eq!(house.texts().len(), 202);
        running.stop().await;
    });
}

/// A new file that begins with the first lines of an old one is no copy: it has the old one's name.
#[test]
fn equal_beginnings_are_not_copies() {
    run(async {
        let house = House::new();
        let running = house.start();
        let header = numbered("header", 0..40);
        let mut all = Vec::new();
        for rotation in 0..4 {
            write(&house.path("a.log"), &header);
            all.extend_from_slice(&header);
            house.expect(all.clone()).await;
            let lines = numbered(&format!("r{rotation}"), 0..10);
            write(&house.path("a.log"), &lines);
            all.extend(lines);
            house.expect(all.clone()).await;
            fs::rename(house.path("a.log"), house.path(&format!("a.log.{rotation}"))).unwrap();
        }
        house.expect_no_more(&running).await;
        running.stop().await;
    });
}

/// A file whose copy is found before it begins behind what the copy has.
#[test]
fn begins_behind_a_copy_that_was_found_first() {
    run(async {
        let house = House::new();
        let lines = numbered("a", 0..400);
        write(&house.path("a.log.1"), &lines[..300]);
        let running = house.start();
        house.expect(lines[..300].to_vec()).await;
        write(&house.path("a.log"), &lines);
        house.expect(lines.clone()).await;
        house.expect_no_more(&running).await;
        running.stop().await;
    });
}

/// A copy without a name is read on from where its original was truncated.
#[test]
fn reads_a_copy_that_was_deleted() {
    run(async {
        let house = House::new();
        let lines = numbered("a", 0..300);
        write(&house.path("a.log"), &lines[..100]);
        let running = house.start();
        house.expect(lines[..100].to_vec()).await;
        // Refused: the original is not read on before it is truncated.
        house.memory.store.borrow_mut().answers = vec![AppendError::Retry(Duration::from_millis(300)); 1];
        write(&house.path("a.log"), &lines[100..]);
        fs::copy(house.path("a.log"), house.path("a.log.1")).unwrap();
        while !running.status().await.iter().any(|file| file.path.ends_with(".1")) {}
        fs::remove_file(house.path("a.log.1")).unwrap();
        OpenOptions::new().write(true).truncate(true).open(house.path("a.log")).unwrap();
        house.expect(lines).await;
        house.expect_no_more(&running).await;
        running.stop().await;
    });
}

/// The bytes that a truncation takes before anything was read are counted as far as they were known, but for those of a copy.
#[test]
fn counts_what_was_taken_unread() {
    for is_copied in [false, true] {
        run(async {
            let house = House::new();
            // Nothing is read for a while after the refusal.
            house.memory.store.borrow_mut().answers = vec![AppendError::Retry(Duration::from_secs(3))];
            write(&house.path("b.log"), ["other"]);
            let running = house.start();
            while house.meters.retries() == 0 {
                running.status().await;
            }
            let lines = numbered("a", 0..100);
            write(&house.path("a.log"), &lines);
            let size = fs::metadata(house.path("a.log")).unwrap().len();
            while running.status().await.iter().all(|file| file.size != size) {}
            if is_copied {
                copytruncate(&house, "a.log", "a.log.1");
            } else {
                File::create(house.path("a.log")).unwrap();
            }
            write(&house.path("a.log"), ["after"]);
            let all =
                [vec!["other".into(), "after".into()], if is_copied { lines } else { Vec::new() }].concat();
            house.expect(all).await;
            let lost = house.meters.lost(LossReason::Truncated);
            assert_eq!(lost, if is_copied { 0 } else { size });
            running.stop().await;
        });
    }
}
