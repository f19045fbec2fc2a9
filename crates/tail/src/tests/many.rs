//! Many files: bounds, fairness, memory.

use super::*;

/// More files than `max_files` are counted, and read when others are gone.
#[test]
fn bounds_the_files() {
    run(async {
        let mut house = House::new();
        house.settings.max_files = 3;
        house.settings.rescan = Duration::from_millis(20);
        house.settings.rotate_wait = Duration::from_millis(1);
        for n in 0..5 {
            write(&house.path(&format!("{n}.log")), [format!("line {n}")]);
        }
        let running = house.start();
        house.until("three", |store| store.records.len() == 3).await;
        while house.meters.untracked() != 2 {
            tokio::task::yield_now().await;
        }
        for file in running.status().await {
            fs::remove_file(file.path).unwrap();
        }
        house.expect((0..5).map(|n| format!("line {n}")).collect()).await;
        running.stop().await;
    });
}

/// A large file does not keep small ones waiting: their lines come before much of it.
#[test]
fn is_fair() {
    run(async {
        let mut house = House::new();
        house.settings.batch = 64 << 10;
        house.settings.turn = 16 << 10;
        write(&house.path("large.log"), numbered("large", 0..100_000));
        for n in 0..100 {
            write(&house.path(&format!("small{n}.log")), [format!("small {n}")]);
        }
        let running = house.start();
        let count = |store: &Store, word: &str| {
            store.records.iter().filter(|(_, text)| text.starts_with(word)).count()
        };
        house.until("the small ones", |store| count(store, "small") == 100).await;
        assert!(count(&house.memory.store.borrow(), "large") < 20_000);
        running.kill().await;
    });
}

/// Removed inputs are left, added ones are read, and the others go on.
#[test]
fn takes_new_settings() {
    run(async {
        let mut house = House::with("a/*.log");
        for folder in ["a", "b"] {
            fs::create_dir(house.path(folder)).unwrap();
            write(&house.path(&format!("{folder}/x.log")), [format!("{folder}1")]);
        }
        let running = house.start();
        house.expect(vec!["a1".into()]).await;
        let b = input("b", &house.path("b/*.log").display().to_string());
        house.settings.inputs.push(b.clone());
        running.look_again(&house).await;
        house.expect(vec!["a1".into(), "b1".into()]).await;
        house.settings.inputs = vec![b];
        running.look_again(&house).await;
        write(&house.path("a/x.log"), ["a2"]);
        write(&house.path("b/x.log"), ["b2"]);
        house.expect(vec!["a1".into(), "b1".into(), "b2".into()]).await;
        house.settings.inputs.push(input("main", &house.path("a/*.log").display().to_string()));
        running.look_again(&house).await;
        house.expect(["a1", "b1", "b2", "a2"].map(String::from).to_vec()).await;
        running.stop().await;
    });
}
