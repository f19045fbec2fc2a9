//! Trees of directories and names that somebody else chose.

use super::*;
use std::os::unix::fs::symlink;

/// More directories than are planned are left out and counted; files of those that are known are read.
#[test]
fn bounds_the_directories() {
    run(async {
        let mut house = House::with("**/*.log");
        house.settings.max_files = 300;
        house.settings.rescan = Duration::from_millis(50);
        for n in 0..400 {
            fs::create_dir(house.path(&format!("{n:03}"))).unwrap();
        }
        write(&house.path("a.log"), ["one"]);
        let running = house.start();
        house.expect(vec!["one".into()]).await;
        // The base is one of the 300.
        while house.meters.untracked() != 101 {
            running.status().await;
        }
        running.stop().await;
    });
}

/// A file with more names than are planned is read once, and keeps some of them.
#[test]
fn bounds_the_names() {
    run(async {
        let mut house = House::new();
        house.settings.max_files = 16;
        write(&house.path("a"), ["one"]);
        for n in 0..500 {
            symlink(house.path("a"), house.path(&format!("{n}.log"))).unwrap();
        }
        let running = house.start();
        house.expect(vec!["one".into()]).await;
        write(&house.path("a"), ["two"]);
        house.expect(vec!["one".into(), "two".into()]).await;
        house.expect_no_more(&running).await;
        running.stop().await;
    });
}

/// Files with paths that are longer than planned are left out, and counted.
#[test]
fn bounds_the_paths() {
    run(async {
        let mut house = House::with("**/*.log");
        house.settings.max_files = 256;
        house.settings.rescan = Duration::from_millis(50);
        let mut deep = house.path("");
        for _ in 0..10 {
            deep.push("d".repeat(200));
            fs::create_dir(&deep).unwrap();
        }
        for n in 0..60 {
            write(&deep.join(format!("{n}.log")), [format!("{n}")]);
        }
        let running = house.start();
        house.until("some", |store| !store.records.is_empty()).await;
        while house.meters.untracked() == 0 {
            running.status().await;
        }
        assert!(house.meters.files() + house.meters.untracked() <= 60);
        assert!((10..40).contains(&house.meters.files()), "{} files", house.meters.files());
        running.stop().await;
    });
}

/// A name that leads to another file now does not keep the old one, also when the new one cannot be taken.
#[test]
fn gives_up_a_replaced_file_of_a_full_table() {
    run(async {
        let mut house = House::with("*.log");
        house.settings.max_files = 1;
        house.settings.rotate_wait = Duration::from_millis(1);
        house.settings.rescan = Duration::from_millis(50);
        write(&house.path("a.log"), ["old"]);
        let running = house.start();
        house.expect(vec!["old".into()]).await;
        write(&house.path("new"), ["new"]);
        fs::rename(house.path("new"), house.path("a.log")).unwrap();
        house.expect(vec!["old".into(), "new".into()]).await;
        running.stop().await;
    });
}

/// A base that is moved away, with another in its place, is watched at its path.
#[test]
fn watches_what_has_the_path_of_a_base() {
    run(async {
        let mut house = House::with("base/*.log");
        house.settings.rescan = Duration::from_millis(20);
        fs::create_dir(house.path("base")).unwrap();
        write(&house.path("base/a.log"), ["one"]);
        let running = house.start();
        house.expect(vec!["one".into()]).await;
        fs::rename(house.path("base"), house.path("away")).unwrap();
        fs::create_dir(house.path("base")).unwrap();
        write(&house.path("base/a.log"), ["two"]);
        house.expect(vec!["one".into(), "two".into()]).await;
        // From now on only the watch tells of a change.
        house.settings.rescan = Duration::from_secs(3600);
        running.look_again(&house).await;
        write(&house.path("base/a.log"), ["three"]);
        house.expect(["one", "two", "three"].map(String::from).to_vec()).await;
        running.stop().await;
    });
}

/// A file of zeros, which makes no records, does not keep others waiting.
#[test]
fn a_hole_does_not_keep_others_waiting() {
    run(async {
        let mut house = House::new();
        house.settings.inputs[0].lines.longest_line = 1 << 10;
        house.settings.inputs[0].lines.on_long_line = tidegate_lines::OnLongLine::Drop;
        let hole = File::create(house.path("0.log")).unwrap();
        hole.set_len(1 << 40).unwrap();
        let running = house.start();
        running.status().await;
        write(&house.path("b.log"), ["other"]);
        house.expect(vec!["other".into()]).await;
        running.kill().await;
    });
}

/// A resource that fits no batch is left out; what does not fit then is counted.
#[test]
fn a_resource_that_fits_no_batch_keeps_nothing_waiting() {
    run(async {
        let house = House::new();
        house.memory.store.borrow_mut().largest = 64;
        let name = format!("{}.log", "a".repeat(100));
        write(&house.path(&name), ["one"]);
        let running = house.start();
        while house.memory.store.borrow().too_large == 0 {
            running.status().await;
        }
        assert_eq!(running.status().await[0].lag, 0);
        running.stop().await;
    });
}
