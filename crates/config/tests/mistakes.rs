//! Every mistake is reported, all of a file at once, each with its place, an excerpt and what to do.
//!
//! `tests/mistakes/NAME.yaml` holds the mistakes, `NAME.txt` the whole message. Written anew with
//! `UPDATE_DOCS=1`, to be read before it is committed.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_config::{LONGEST_FILE, load, parse};

#[test]
fn every_mistake_is_reported_as_written_down() {
    let update = std::env::var_os("UPDATE_DOCS").is_some();
    let mut wrong = Vec::new();
    let cases = cases();
    assert!(cases.len() >= 10, "the cases are missing");
    for case in cases {
        let text = fs::read_to_string(&case).unwrap();
        let name = case.file_name().unwrap().to_str().unwrap();
        let message = match parse(name, &text, &environment) {
            Ok(_) => "nothing is wrong".to_owned(),
            Err(errors) => errors.to_string(),
        };
        let golden = case.with_extension("txt");
        if update {
            fs::write(&golden, format!("{message}\n")).unwrap();
        }
        let expected = fs::read_to_string(&golden).unwrap_or_default();
        if expected.trim_end() != message {
            wrong.push(format!("{name}: expected\n{expected}\nbut got\n{message}\n"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn colour_adds_nothing_but_colour() {
    let errors = parse("a.yaml", "memory: much\n", &environment).unwrap_err();
    let coloured = errors.coloured().to_string();
    assert!(coloured.contains("\x1b[1;31merror\x1b[0m"));
    let mut plain = String::new();
    let mut rest = coloured.as_str();
    while let Some((before, after)) = rest.split_once("\x1b[") {
        plain.push_str(before);
        rest = after.split_once('m').unwrap().1;
    }
    plain.push_str(rest);
    assert_eq!(plain, errors.to_string());
}

#[test]
fn many_mistakes_are_counted_but_not_all_shown() {
    let text: String = (0..500).map(|n| format!("unknown_{n}: 1\n")).collect();
    let errors = parse("a.yaml", &text, &environment).unwrap_err();
    assert_eq!(errors.problems().len(), 100);
    assert!(errors.to_string().ends_with("500 errors in a.yaml, 400 of them not shown"));
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_with_its_path() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("none.yaml");
    let message = load(&missing).unwrap_err().to_string();
    assert!(message.contains("none.yaml") && message.contains("No such file"), "{message}");

    let binary = folder.path().join("binary.yaml");
    fs::write(&binary, b"memory: \xff").unwrap();
    assert!(load(&binary).unwrap_err().to_string().contains("byte 8 of"));

    let huge = folder.path().join("huge.yaml");
    fs::write(&huge, vec![b'#'; LONGEST_FILE + 1]).unwrap();
    assert!(load(&huge).unwrap_err().to_string().contains("longer than 1048576 bytes"));
    fs::write(&huge, vec![b'#'; LONGEST_FILE]).unwrap();
    assert!(load(&huge).is_ok());
}

/// What stands in a variable is never repeated where it would be a secret.
#[test]
fn a_secret_is_not_repeated_in_a_message() {
    let text =
        "sinks: { up: { type: prometheus_remote_write, url: \"${URL}\", headers: { a: \"${BAD}\" } } }";
    let errors = parse("a.yaml", text, &|name| match name {
        "URL" => Some("http://me:hunter2@host/".to_owned()),
        _ => Some("hunter2\n".to_owned()),
    });
    let message = errors.unwrap_err().to_string();
    assert!(message.contains("2 errors") && !message.contains("hunter2"), "{message}");
}

fn environment(name: &str) -> Option<String> {
    match name {
        "WORD" => Some("much".to_owned()),
        "SLY" => Some("64MiB\ndata: /etc".to_owned()),
        _ => None,
    }
}

fn cases() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mistakes");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut cases: Vec<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|end| end == "yaml")).collect();
    cases.sort();
    cases
}
