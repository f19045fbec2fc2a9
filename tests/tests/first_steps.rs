//! The program of `docs/first-steps.md` sends, and the queries of `docs/lake.md` find what it sent.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::process::Command;
use tidegate_tests::{Gateway, SOON, duckdb, finish, skip, tidegate, until};

fn page(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name)).unwrap()
}

/// The blocks of a language.
fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let begin = format!("```{language}\n");
    page.split(begin.as_str()).skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

/// The queries that a page gives to `duckdb -c`, and those in its blocks of SQL.
fn queries(page: &str) -> Vec<String> {
    let typed = page.split("$ duckdb -c \"").skip(1).map(|rest| rest.split('"').next().unwrap().to_owned());
    let in_blocks = blocks(page, "sql").into_iter().flat_map(|block| block.split_terminator(";\n"));
    typed.chain(in_blocks.map(str::to_owned)).collect()
}

#[test]
fn the_first_program_is_found_with_the_documented_queries() {
    let Some(python) = std::env::var_os("TIDEGATE_TEST_PYTHON").filter(|python| !python.is_empty()) else {
        return skip("TIDEGATE_TEST_PYTHON", "it must name a Python that has the packages of the page");
    };
    let settings = json!({"memory": "64MiB", "sinks": {"lake": {"type": "lake", "file_age": "1s"}}});
    let gateway = Gateway::started(settings);
    let steps = page("first-steps.md");
    let [program] = blocks(&steps, "python")[..] else { panic!("one program") };
    fs::write(gateway.folder().join("hello.py"), program).unwrap();
    let exports =
        steps.lines().filter_map(|line| line.strip_prefix("$ export ")).flat_map(str::split_whitespace);
    let endpoint = gateway.http().to_string();
    let variables = exports
        .map(|variable| variable.split_once('=').unwrap())
        .map(|(name, value)| (name, value.replace("127.0.0.1:4318", &endpoint)));
    let mut sender = Command::new(Path::new(&python).with_file_name("opentelemetry-instrument"));
    sender.arg(&python).arg("hello.py").envs(variables).current_dir(gateway.folder());
    assert_eq!(finish(&mut sender).succeeded(), "", "it prints nothing");

    let data = gateway.data();
    let data = data.to_str().unwrap();
    let rows = |table: &str| {
        let read =
            tidegate(&["lake", "cat", table, "--service", "hello", "--format", "ndjson", "--data", data]);
        read.stdout.lines().count()
    };
    until(SOON, "the program's rows in the lake", || {
        rows("spans") == 10 && rows("logs") == 5 && rows("metric_points") >= 1
    });
    let queries = queries(&page("lake.md"));
    let found: Vec<Vec<Value>> = queries
        .iter()
        .map(|query| {
            duckdb(&query.replace("tidegate-data", data)).expect("it is there with the other packages")
        })
        .collect();
    let [by_name, in_spans, of_an_hour, by_shop] = &found[..] else { panic!("four queries: {queries:?}") };
    let mut names: Vec<_> = by_name.iter().map(|row| (row[0].as_str().unwrap(), &row[1])).collect();
    names.sort_by_key(|(name, _)| *name);
    assert_eq!(names, [("charge card", &json!(5)), ("order", &json!(5))]);
    assert!(by_name.iter().all(|row| row[2].as_f64().unwrap() >= 50.0), "{by_name:?}");
    assert_eq!(in_spans.len(), 2);
    for row in in_spans {
        assert_eq!(row[0], "order");
        assert!(row[1].as_str().unwrap().ends_with(" is slow"), "{row}");
    }
    assert_eq!(of_an_hour.len(), 1);
    assert_eq!(by_shop, &[json!(["berlin", 5])]);
    gateway.books_close();
}
