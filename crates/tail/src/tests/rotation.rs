//! Files that are renamed, moved and deleted.

use super::*;

/// Lines written to a file before and after its rename, and to the new one under its name, come once each.
#[test]
fn follows_a_rename() {
    run(async {
        let house = House::new();
        let running = house.start();
        let mut all = Vec::new();
        for rotation in 0..5 {
            let mut file = append_to(&house.path("a.log"));
            let lines = numbered(&format!("r{rotation}"), 0..100);
            file.write_all((lines[..50].join("\n") + "\n").as_bytes()).unwrap();
            for old in (1..5).rev() {
                let _ = fs::rename(
                    house.path(&format!("a.log.{old}")),
                    house.path(&format!("a.log.{}", old + 1)),
                );
            }
            fs::rename(house.path("a.log"), house.path("a.log.1")).unwrap();
            write(&house.path("a.log"), [format!("first of {rotation}")]);
            file.write_all((lines[50..].join("\n") + "\n").as_bytes()).unwrap();
            all.extend(lines);
            all.push(format!("first of {rotation}"));
            house.expect(all.clone()).await;
        }
        house.expect_no_more(&running).await;
        running.stop().await;
    });
}

/// A file that leaves the patterns, or is deleted, is read to its end while its writer goes on.
#[test]
fn reads_what_is_deleted() {
    run(async {
        let house = House::with("*.log");
        let running = house.start();
        let mut moved = append_to(&house.path("a.log"));
        let mut deleted = append_to(&house.path("b.log"));
        moved.write_all(b"a1\n").unwrap();
        deleted.write_all(b"b1\n").unwrap();
        house.expect(vec!["a1".into(), "b1".into()]).await;
        fs::rename(house.path("a.log"), house.path("elsewhere")).unwrap();
        fs::remove_file(house.path("b.log")).unwrap();
        running.status().await;
        moved.write_all(b"a2\n").unwrap();
        deleted.write_all(b"b2\n").unwrap();
        house.expect(["a1", "a2", "b1", "b2"].map(String::from).to_vec()).await;
        let mut states: Vec<_> = running.status().await.iter().map(|file| file.state.as_str()).collect();
        states.sort_unstable();
        assert_eq!(states, ["deleted", "rotated"]);
        running.stop().await;
    });
}

/// A line without its end becomes a record when its deleted file is given up.
#[test]
fn delivers_the_last_line_of_a_deleted_file() {
    run(async {
        let mut house = House::new();
        house.settings.rotate_wait = Duration::from_millis(1);
        let running = house.start();
        append_to(&house.path("a.log")).write_all(b"one\nlast").unwrap();
        house.expect(vec!["one".into()]).await;
        fs::remove_file(house.path("a.log")).unwrap();
        house.expect(vec!["one".into(), "last".into()]).await;
        while !running.status().await.is_empty() {}
        running.stop().await;
    });
}

/// The rest of a deleted file that could not be read for too long is counted.
#[test]
fn counts_what_it_gives_up() {
    run(async {
        let mut house = House::new();
        house.settings.rotate_wait = Duration::from_millis(1);
        house.settings.inputs[0].lines.longest_line = 1 << 10;
        house.settings.inputs[0].lines.format =
            tidegate_lines::Format::Only(tidegate_lines::LineFormat::Plain);
        house.memory.store.borrow_mut().answers = vec![AppendError::Retry(Duration::from_secs(3600))];
        let lines = numbered("a", 0..1000);
        write(&house.path("a.log"), &lines);
        let size = fs::metadata(house.path("a.log")).unwrap().len();
        let running = house.start();
        while house.meters.retries() == 0 {
            running.status().await;
        }
        fs::remove_file(house.path("a.log")).unwrap();
        while house.meters.lost(crate::LossReason::RotateWait) == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(house.meters.lost(crate::LossReason::RotateWait), size);
        running.stop().await;
    });
}

/// A directory that is renamed takes its files with it.
#[test]
fn follows_a_directory() {
    run(async {
        let house = House::with("*/a.log");
        fs::create_dir(house.path("one")).unwrap();
        let mut file = append_to(&house.path("one/a.log"));
        file.write_all(b"1\n").unwrap();
        let running = house.start();
        house.expect(vec!["1".into()]).await;
        fs::rename(house.path("one"), house.path("two")).unwrap();
        running.status().await;
        file.write_all(b"2\n").unwrap();
        house.expect(vec!["1".into(), "2".into()]).await;
        assert!(running.status().await[0].path.ends_with("two/a.log"));
        running.stop().await;
    });
}

/// Of a file that was truncated and then deleted nothing stays under its own key.
#[test]
fn the_checkpoint_of_a_truncated_and_deleted_file_goes() {
    run(async {
        let mut house = House::new();
        house.settings.rotate_wait = Duration::from_millis(1);
        let running = house.start();
        write(&house.path("a.log"), numbered("a", 0..50));
        house.expect(numbered("a", 0..50)).await;
        OpenOptions::new().write(true).truncate(true).open(house.path("a.log")).unwrap();
        while house.meters.truncations() == 0 {
            running.status().await;
        }
        fs::remove_file(house.path("a.log")).unwrap();
        while !running.status().await.is_empty() {}
        running.stop().await;
        let store = house.memory.store.borrow();
        let own = store.checkpoints.keys().filter(|key| crate::FileId::from_key(b'f', key).is_some());
        assert_eq!(own.count(), 0);
    });
}
