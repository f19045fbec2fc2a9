//! Settings that change while files are read.

use super::*;
use tidegate_lines::{Boundary, Multiline};
use tidegate_pipeline::LinePattern;

/// An input that comes is read; one that goes is not read any more, and goes on where it ended when it comes back.
#[test]
fn inputs_come_and_go() {
    run(async {
        let house = House::new();
        write(&house.path("a.log"), ["a 1"]);
        write(&house.path("b.txt"), ["b 1"]);
        let running = house.start();
        house.expect(vec!["a 1".into()]).await;
        let mut both = house.settings.clone();
        both.inputs.push(input("text", &house.path("*.txt").display().to_string()));
        running.change(&both).await;
        house.expect(vec!["a 1".into(), "b 1".into()]).await;
        running.change(&house.settings).await;
        assert_eq!(running.status().await.len(), 1, "the files of the other input are let go");
        write(&house.path("b.txt"), ["b 2"]);
        write(&house.path("a.log"), ["a 2"]);
        house.expect(vec!["a 1".into(), "a 2".into(), "b 1".into()]).await;
        running.change(&both).await;
        house.expect(vec!["a 1".into(), "a 2".into(), "b 1".into(), "b 2".into()]).await;
        running.stop().await;
    });
}

/// Changes while lines are written at full speed lose none of them and repeat none.
#[test]
fn no_line_is_lost_or_repeated_over_changes() {
    run(async {
        let house = House::new();
        let mut other = house.settings.clone();
        other.inputs[0].attributes.push(("a".into(), "b".into()));
        other.inputs.push(input("text", &house.path("*.txt").display().to_string()));
        other.batch = 4 << 10;
        let running = house.start();
        let mut expected = Vec::new();
        for round in 0..60 {
            for name in ["a.log", "b.log"] {
                let lines = numbered(&format!("{name} {round}"), 0..50);
                write(&house.path(name), &lines);
                expected.extend(lines);
            }
            if round % 10 == 5 {
                fs::rename(house.path("a.log"), house.path(&format!("a.log.{round}"))).unwrap();
            }
            if round % 7 == 3 {
                house.memory.store.borrow_mut().answers.push(AppendError::Retry(Duration::from_millis(1)));
            }
            running.change(if round % 2 == 0 { &other } else { &house.settings }).await;
            tokio::task::yield_now().await;
        }
        house.expect(expected).await;
        house.expect_no_more(&running).await;
        running.stop().await;
    });
}

/// A record that is begun when its rules change is read again by the new ones.
#[test]
fn a_begun_record_is_read_by_the_new_rules() {
    run(async {
        let mut house = House::new();
        house.settings.inputs[0].lines.multiline = Some(by_start("^> "));
        write(&house.path("a.log"), ["> one", "more", "> two", "more"]);
        let running = house.start();
        house.expect(vec!["> one\nmore".into()]).await;
        house.settings.inputs[0].lines.multiline = None;
        running.change(&house.settings).await;
        house.expect(vec!["> one\nmore".into(), "> two".into(), "more".into()]).await;
        house.expect_no_more(&running).await;
        running.stop().await;
    });
}

/// A file keeps its reading when one of its two names leaves the inputs.
#[test]
fn a_file_with_another_name_stays() {
    run(async {
        let house = House::new();
        let mut both = house.settings.clone();
        both.inputs.insert(0, input("text", &house.path("*.txt").display().to_string()));
        write(&house.path("a.txt"), ["one"]);
        fs::hard_link(house.path("a.txt"), house.path("a.log")).unwrap();
        let running = house.start();
        house.expect(vec!["one".into()]).await;
        running.change(&both).await;
        running.status().await;
        running.change(&house.settings).await;
        write(&house.path("a.txt"), ["two"]);
        house.expect(vec!["one".into(), "two".into()]).await;
        let files = running.status().await;
        assert_eq!((files.len(), files[0].input.as_str()), (1, "main"));
        running.stop().await;
    });
}

/// A file whose last name leaves the inputs is let go, also if it was found by another name.
#[test]
fn a_file_without_a_name_is_let_go() {
    run(async {
        let mut house = House::new();
        write(&house.path("a.log"), ["one"]);
        let running = house.start();
        house.expect(vec!["one".into()]).await;
        fs::hard_link(house.path("a.log"), house.path("a.log.1")).unwrap();
        running.look_again(&house).await;
        fs::remove_file(house.path("a.log")).unwrap();
        running.look_again(&house).await;
        house.settings.inputs = vec![input("main", &house.path("*.log").display().to_string())];
        running.look_again(&house).await;
        assert_eq!(running.status().await.len(), 0);
        running.stop().await;
    });
}

/// Compressed files are read when that is switched on.
#[test]
fn compressed_files_are_read_when_they_are_wanted() {
    run(async {
        let mut house = House::new();
        let lines = numbered("a", 0..100);
        let mut gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gz.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
        fs::write(house.path("a.log.gz"), gz.finish().unwrap()).unwrap();
        let running = house.start();
        let waiting = async {
            while house.meters.skipped_compressed() == 0 {
                tokio::task::yield_now().await
            }
        };
        tokio::time::timeout(SOON, waiting).await.unwrap();
        house.settings.inputs[0].compressed = true;
        running.change(&house.settings).await;
        house.expect(lines).await;
        running.stop().await;
    });
}

fn by_start(pattern: &str) -> Multiline {
    Multiline {
        boundary: Boundary::Start(LinePattern::compile(pattern).unwrap()),
        timeout_ns: 3_600_000_000_000,
        longest: 64 << 10,
    }
}
