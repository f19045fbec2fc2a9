//! Asks Thanos' own code, which `make test-real` builds.

use crate::case::{Agreement, Answer, Case, Recorded, compare};
use crate::generate::{self, Random};
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

/// Fresh cases of a test, and series of each.
const CASES: usize = 600;
const QUERIES: usize = 25;
/// For an answer, which takes far less than a second.
const DEADLINE: Duration = Duration::from_secs(60);

/// The program; `None` if the set-up left it out.
fn program() -> Option<PathBuf> {
    let folder =
        std::env::var_os("TIDEGATE_TEST_REAL").expect("TIDEGATE_TEST_REAL is set by `make test-real`");
    let folder = PathBuf::from(folder);
    let left_out = std::fs::read_to_string(folder.join("left-out")).unwrap_or_default();
    if let Some(line) = left_out.lines().find(|line| line.starts_with("thanos:")) {
        println!("SKIPPED: {line}");
        return None;
    }
    Some(folder.join("thanos").join("oracle"))
}

/// Asks about cases one after the other, until all are answered or the program ends.
fn ask(cases: Vec<Case>, mut answered: impl FnMut(Case, Answer)) {
    let Some(program) = program() else { return };
    let mut child = Command::new(program).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
    let (sender, lines) = sync_channel(1);
    let reader = std::thread::spawn(move || output.lines().try_for_each(|line| sender.send(line.unwrap())));
    for case in cases {
        writeln!(input, "{}", serde_json::to_string(&case).unwrap()).unwrap();
        let Ok(line) = lines.recv_timeout(DEADLINE) else {
            child.kill().unwrap();
            panic!("no answer to {case:?}");
        };
        let answer =
            serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error} in {line:?} to {case:?}"));
        answered(case, answer);
    }
    drop(input);
    assert!(child.wait().unwrap().success());
    reader.join().unwrap().unwrap();
}

fn cases(seed: u64, count: usize, queries: usize) -> Vec<Case> {
    let mut random = Random(seed);
    let all = std::iter::repeat_with(|| generate::case(&mut random, queries));
    all.filter_map(Case::without_endless).take(count).collect()
}

#[test]
#[ignore = "`make test-real` runs it"]
fn placement_is_that_of_thanos() {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let seed = std::env::var("TIDEGATE_SEED").map_or(now.as_nanos() as u64, |seed| seed.parse().unwrap());
    println!("TIDEGATE_SEED={seed}");
    let mut total = Agreement::default();
    ask(cases(seed, CASES, QUERIES), |case, answer| {
        let agreement = compare(&case, &answer).unwrap_or_else(|error| panic!("{error}"));
        total.placed += agreement.placed;
        total.sharded += agreement.sharded;
        total.refused += agreement.refused;
    });
    let Agreement { placed, sharded, refused } = total;
    println!("{placed} series placed alike, {sharded} of them in shards; {refused} refused alike");
}

/// Writes the answers that `cargo test` replays: `TIDEGATE_RECORD=FILE`.
#[test]
#[ignore = "records answers"]
fn record() {
    let Some(file) = std::env::var_os("TIDEGATE_RECORD") else { return };
    let mut lines = String::new();
    ask(cases(1, 100, 20), |case, answer| {
        lines.push_str(&serde_json::to_string(&Recorded { case, answer }.shortened()).unwrap());
        lines.push('\n');
    });
    std::fs::write(file, lines).unwrap();
}
