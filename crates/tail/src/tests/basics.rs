//! Finding and reading files.

use super::*;

/// Lines that are there, lines that come, and files that come are read once each, in the order of their file.
#[test]
fn reads_what_is_there_and_what_comes() {
    run(async {
        let house = House::new();
        write(&house.path("a.log"), ["one", "two"]);
        let running = house.start();
        house.expect(vec!["one".into(), "two".into()]).await;
        write(&house.path("a.log"), ["three"]);
        write(&house.path("b.log"), ["other"]);
        house.expect(["one", "two", "three", "other"].map(String::from).to_vec()).await;
        assert_eq!(house.meters.records(), 4);
        house.expect_no_more(&running).await;
        running.stop().await;
        let files = house.memory.store.borrow();
        let of_a: Vec<_> =
            files.records.iter().filter(|(path, _)| path.ends_with("/a.log")).map(|(_, text)| text).collect();
        assert_eq!(of_a, ["one", "two", "three"]);
    });
}

/// A line is a record when it has its end.
#[test]
fn waits_for_the_end_of_a_line() {
    run(async {
        let house = House::new();
        let mut file = append_to(&house.path("a.log"));
        file.write_all(b"one\ntw").unwrap();
        let running = house.start();
        house.expect(vec!["one".into()]).await;
        file.write_all(b"o\n").unwrap();
        house.expect(vec!["one".into(), "two".into()]).await;
        running.stop().await;
    });
}

/// Files in new directories are found by the change of the directory above.
#[test]
fn finds_files_in_new_directories() {
    run(async {
        let mut house = House::with("pods/*/**/*.log");
        house.settings.rescan = Duration::from_secs(3600);
        fs::create_dir(house.path("pods")).unwrap();
        let running = house.start();
        running.status().await;
        fs::create_dir_all(house.path("pods/one/app")).unwrap();
        write(&house.path("pods/one/app/0.log"), ["first"]);
        house.expect(vec!["first".into()]).await;
        fs::create_dir_all(house.path("pods/two/app/deep")).unwrap();
        write(&house.path("pods/two/app/deep/0.log"), ["second"]);
        write(&house.path("pods/two/app/0.txt"), ["not matched"]);
        house.expect(vec!["first".into(), "second".into()]).await;
        running.stop().await;
    });
}

/// A directory that does not exist yet is found by the listing.
#[test]
fn finds_a_base_that_comes_later() {
    run(async {
        let mut house = House::with("later/*.log");
        house.settings.rescan = Duration::from_millis(20);
        let running = house.start();
        running.status().await;
        fs::create_dir(house.path("later")).unwrap();
        write(&house.path("later/a.log"), ["one"]);
        house.expect(vec!["one".into()]).await;
        running.stop().await;
    });
}

/// A link and its file are one file; what is written to the file is noticed through the link's target.
#[test]
fn follows_links() {
    run(async {
        let mut house = House::with("links/*.log");
        house.settings.rescan = Duration::from_secs(3600);
        fs::create_dir(house.path("links")).unwrap();
        fs::create_dir(house.path("real")).unwrap();
        write(&house.path("real/a"), ["one"]);
        std::os::unix::fs::symlink(house.path("real/a"), house.path("links/a.log")).unwrap();
        std::os::unix::fs::symlink(house.path("real/a"), house.path("links/b.log")).unwrap();
        let running = house.start();
        house.expect(vec!["one".into()]).await;
        write(&house.path("real/a"), ["two"]);
        house.expect(vec!["one".into(), "two".into()]).await;
        house.settings.inputs.push(input("other", &house.path("*.log").display().to_string()));
        house.expect_no_more(&running).await;
        running.stop().await;
    });
}

/// Excluded files are not read, and `start_at: end` skips what was there when the input was new, and nothing later.
#[test]
fn begins_where_it_is_told() {
    run(async {
        let mut house = House::new();
        let excluded = house.path("*.log.old").display().to_string();
        house.settings.inputs[0].exclude = Glob::parse(&excluded).unwrap();
        house.settings.inputs[0].start_at = StartAt::End;
        write(&house.path("a.log"), ["before"]);
        write(&house.path("a.log.old"), ["excluded"]);
        let running = house.start();
        running.status().await;
        house.until("the marker", |store| store.checkpoints.len() == 2).await;
        write(&house.path("a.log"), ["after"]);
        write(&house.path("b.log"), ["new"]);
        house.expect(vec!["after".into(), "new".into()]).await;
        running.stop().await;
        write(&house.path("c.log"), ["while it was down"]);
        let running = house.start();
        house.expect(vec!["after".into(), "new".into(), "while it was down".into()]).await;
        running.stop().await;
    });
}

/// A refused batch is read again: nothing is lost, nothing comes twice.
#[test]
fn reads_again_what_was_refused() {
    run(async {
        let mut house = House::new();
        house.settings.batch = 8 << 10;
        house.settings.turn = 1 << 10;
        let refusals = [
            AppendError::Retry(Duration::from_millis(1)),
            AppendError::TooLarge,
            AppendError::Retry(Duration::ZERO),
        ];
        house.memory.store.borrow_mut().answers = refusals.into();
        let (a, b) = (numbered("a", 0..500), numbered("b", 0..500));
        write(&house.path("a.log"), &a);
        write(&house.path("b.log"), &b);
        let running = house.start();
        house.expect([a, b].concat()).await;
        assert_eq!(house.meters.retries(), 3);
        assert_eq!(house.meters.records(), 1000);
        house.expect_no_more(&running).await;
        running.stop().await;
    });
}

/// A record that is larger than any batch is counted once, also if its batch is refused, and those behind it are read.
#[test]
fn counts_what_is_too_large() {
    run(async {
        let house = House::new();
        house.memory.store.borrow_mut().largest = 64 << 10;
        house.memory.store.borrow_mut().answers = vec![AppendError::Retry(Duration::from_millis(1)); 3];
        write(&house.path("a.log"), ["before", &"x".repeat(100_000), "after"]);
        let running = house.start();
        house.expect(vec!["before".into(), "after".into()]).await;
        assert_eq!(house.memory.store.borrow().too_large, 1);
        running.stop().await;
    });
}

/// The status shows each file's offset, lag and state.
#[test]
fn shows_its_files() {
    run(async {
        let house = House::new();
        write(&house.path("a.log"), ["one"]);
        let running = house.start();
        house.expect(vec!["one".into()]).await;
        append_to(&house.path("a.log")).write_all(b"unfinished").unwrap();
        let file = running.status().await.remove(0);
        assert_eq!((file.offset, file.records, file.input.as_str()), (4, 1, "main"));
        running.stop().await;
    });
}
