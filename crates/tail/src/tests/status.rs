//! The status of files.

use super::*;
use crate::FileState;
use std::os::unix::fs::PermissionsExt;

/// The pages by number have each file once, whatever their size.
#[test]
fn pages_have_every_file_once() {
    run(async {
        let house = House::new();
        for n in 0..25 {
            write(&house.path(&format!("{n}.log")), [format!("line {n}")]);
        }
        let running = house.start();
        house.until("all lines", |store| store.records.len() == 25).await;
        for most in [1, 7, 25, 100] {
            let (mut paths, mut first) = (Vec::new(), Some(0));
            while let Some(number) = first {
                let page = running.ask("", Order::Number(number), most).await;
                assert!(page.files.len() <= most && page.matching == 25 && page.known == 25);
                paths.extend(page.files.into_iter().map(|file| file.path));
                first = page.next;
            }
            paths.sort();
            paths.dedup();
            assert_eq!(paths.len(), 25, "pages of {most}");
        }
        let page = running.ask("1*.log", Order::Lag, 3).await;
        assert_eq!((page.matching, page.files.len(), page.next), (11, 3, None));
        running.stop().await;
    });
}

/// While the destination refuses, a file that grows shows how far it is behind, and comes first.
#[test]
fn lag_grows_while_the_destination_refuses() {
    run(async {
        let house = House::new();
        write(&house.path("a.log"), ["a 1"]);
        write(&house.path("b.log"), ["b 1"]);
        let running = house.start();
        house.until("the lines", |store| store.records.len() == 2).await;
        let refusal = AppendError::Retry(Duration::from_secs(3600));
        house.memory.store.borrow_mut().answers = vec![refusal];
        write(&house.path("b.log"), ["b 2"]);
        let waiting = async {
            while house.meters.retries() == 0 {
                tokio::task::yield_now().await
            }
        };
        tokio::time::timeout(SOON, waiting).await.unwrap();
        write(&house.path("b.log"), ["b three"]);
        let files = running.status().await;
        let [first, second] = files.as_slice() else { panic!("{files:?}") };
        assert!(first.path.ends_with("/b.log") && first.state == FileState::Reading);
        assert_eq!((first.offset, first.size, first.lag), (4, 16, 12));
        assert_eq!((second.lag, second.state), (0, FileState::Idle));
        running.stop().await;
    });
}

/// Files that are not read have their reasons: compressed ones, copies, and those that cannot be opened.
#[test]
fn files_that_are_not_read_have_a_reason() {
    run(async {
        let house = House::new();
        write(&house.path("a.log"), numbered("a", 0..100));
        let running = house.start();
        house.until("the lines", |store| store.records.len() == 100).await;
        fs::copy(house.path("a.log"), house.path("a.log.1")).unwrap();
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all(numbered("b", 0..100).join("\n").as_bytes()).unwrap();
        fs::write(house.path("b.log.gz"), gz.finish().unwrap()).unwrap();
        write(&house.path("c.log"), ["secret"]);
        fs::set_permissions(house.path("c.log"), fs::Permissions::from_mode(0o0)).unwrap();
        running.look_again(&house).await;
        let reason_of = async |name: &str| {
            let file = running.ask(name, Order::Lag, 10).await.files.pop();
            file.and_then(|file| file.reason).unwrap_or_default()
        };
        let waiting = async {
            while reason_of("b.log.gz").await.is_empty() || reason_of("a.log.1").await.is_empty() {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(SOON, waiting).await.unwrap();
        assert_eq!(reason_of("b.log.gz").await, "compressed, and `compressed` is off");
        assert_eq!(reason_of("a.log.1").await, format!("a copy of {}", house.path("a.log").display()));
        let status = running.ask("", Order::Lag, 10).await;
        // Root can read everything.
        if File::open(house.path("c.log")).is_err() {
            assert_eq!(status.unreadable.len(), 1);
            assert_eq!(status.unreadable[0].path, house.path("c.log").display().to_string());
        }
        running.stop().await;
    });
}

/// A deleted file that is still open shows the disk space that it takes.
#[test]
fn a_held_file_shows_its_length() {
    run(async {
        let house = House::new();
        write(&house.path("a.log"), ["a line"]);
        let running = house.start();
        house.until("the line", |store| store.records.len() == 1).await;
        fs::remove_file(house.path("a.log")).unwrap();
        let waiting = async {
            loop {
                let status = running.ask("", Order::Lag, 10).await;
                if status.held == 1 {
                    break status;
                }
                tokio::task::yield_now().await;
            }
        };
        let status = tokio::time::timeout(SOON, waiting).await.unwrap();
        assert_eq!(status.held_bytes, 7);
        assert_eq!(status.files[0].state, FileState::Deleted);
        running.stop().await;
    });
}
