//! Random lives of a log file, its writer and its reader.

use super::*;
use proptest::prelude::*;

/// The next step.
#[derive(Debug, Clone, Copy)]
enum Step {
    Write(u32),
    Rename,
    CopyTruncate,
    Kill,
    Stop,
    Refuse,
    /// Lets the reader come up with the writer.
    Read,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => (1_u32..200).prop_map(Step::Write),
        2 => Just(Step::Rename),
        2 => Just(Step::CopyTruncate),
        2 => Just(Step::Kill),
        1 => Just(Step::Stop),
        1 => Just(Step::Refuse),
        2 => Just(Step::Read),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever happens in whatever order, each line comes exactly once, as long as the copies are included.
    #[test]
    fn every_line_once(steps in prop::collection::vec(step(), 1..25)) {
        run(async {
            let mut house = House::new();
            house.settings.batch = 8 << 10;
            house.settings.turn = 2 << 10;
            let mut running = house.start();
            let (mut all, mut next, mut generation) = (Vec::new(), 0, 0);
            for step in steps {
                match step {
                    Step::Write(count) => {
                        let lines = numbered("line", next..next + count);
                        write(&house.path("a.log"), &lines);
                        all.extend(lines);
                        next += count;
                    }
                    Step::Rename => {
                        let _ = fs::rename(house.path("a.log"), house.path(&format!("a.log.{generation}")));
                        generation += 1;
                    }
                    Step::CopyTruncate if house.path("a.log").exists() => {
                        fs::copy(house.path("a.log"), house.path(&format!("a.log.{generation}"))).unwrap();
                        OpenOptions::new().write(true).truncate(true).open(house.path("a.log")).unwrap();
                        generation += 1;
                    }
                    Step::CopyTruncate => {}
                    Step::Kill => {
                        running.kill().await;
                        running = house.start();
                    }
                    Step::Stop => {
                        running.stop().await;
                        running = house.start();
                    }
                    Step::Refuse => {
                        let refusal = AppendError::Retry(Duration::from_millis(1));
                        house.memory.store.borrow_mut().answers.push(refusal);
                    }
                    Step::Read => house.expect(all.clone()).await,
                }
            }
            house.expect(all).await;
            house.expect_no_more(&running).await;
            running.stop().await;
        });
    }
}
