//! Every mistake is reported, all of a file at once, each with its place, an excerpt and what to do.
//!
//! `tests/mistakes/NAME.yaml` holds the mistakes, `NAME.txt` the whole message. Written anew with
//! `UPDATE_DOCS=1`, to be read before it is committed.

#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_config::{LONGEST_FILE, load, load_and_look, parse};

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

/// Messages never repeat a secret variable's value.
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

/// A file's contents replace a reference, and no message repeats them, whatever the error and whichever the setting.
#[test]
fn a_secret_from_a_file_is_used_and_never_repeated() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    fs::write(&secret, "hunter2\n").unwrap();
    let secret = secret.to_str().unwrap();
    let config = folder.path().join("tidegate.yaml");
    let read = |text: &str| {
        fs::write(&config, text.replace("SECRET", &format!("${{file:{secret}}}"))).unwrap();
        load(&config).map(|loaded| loaded.config)
    };
    let sink =
        "sinks: { up: { type: elasticsearch, endpoints: [\"http://127.0.0.1:9200\"], api_key: \"SECRET\" } }";
    let read_back = read(sink).unwrap();
    let tidegate_config::Sink::Elasticsearch(sink) = read_back.sinks.values().next().unwrap() else {
        panic!()
    };
    assert_eq!(sink.api_key.as_ref().unwrap().expose(), "hunter2");
    assert!(!tidegate_config::effective(&read_back).contains("hunter2"));
    for text in [
        "memory: SECRET",
        "journal: { durability: \"SECRET\", quota: 1MiB }",
        "sinks: SECRET",
        "sinks: { up: { type: \"SECRET\" } }",
        "sinks: { up: { type: prometheus_remote_write, url: \"http://me:SECRET@host/\" } }",
        "sinks: { up: { type: prometheus_remote_write, url: \"http://SECRET\" } }",
        "listen: { http: \"SECRET\" }",
        "journal: { segment: 512MiB, quota: \"SECRET\" }",
    ] {
        let message = read(text).unwrap_err().to_string();
        assert!(message.contains(secret) && !message.contains("hunter2"), "{text}: {message}");
    }
    fs::remove_file(secret).unwrap();
    let message = read("memory: SECRET").unwrap_err().to_string();
    assert!(message.contains("tidegate.yaml:1:9") && message.contains("No such file"), "{message}");
    // A text that is not the machine's own configuration reads no files.
    assert!(parse("a.yaml", "memory: ${file:/etc/hostname}", &environment).is_err());
}

/// Certificates and keys that are not there are named with the setting and its place, all at once.
#[test]
fn files_that_are_missing_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("tidegate.yaml");
    let text = "listen:\n  apm: 127.0.0.1:0\n  tls:\n    cert_file: DIR/cert.pem\n    key_file: DIR\n    apm:\n      cert_file: DIR/apm.pem\n      \
                key_file: DIR/empty\naccess:\n  credentials_file: DIR/who\nsinks:\n  out:\n    type: otlp\n    \
                endpoints: [\"https://h:4317\"]\n    tls:\n      ca_file: DIR/ca.pem\n";
    fs::write(&config, text.replace("DIR", folder.path().to_str().unwrap())).unwrap();
    fs::write(folder.path().join("empty"), "").unwrap();
    assert!(load(&config).is_ok(), "whoever only reads it looks for nothing");
    let message = load_and_look(&config).unwrap_err().to_string();
    for words in [
        "tidegate.yaml:4:16",
        "`listen.tls.cert_file`: the file",
        "cert.pem cannot be read: No such file",
        "`listen.tls.key_file`",
        "it is not a file",
        "apm.pem",
        "it is empty",
        "`access.credentials_file`",
        "`sinks.out.tls.ca_file`",
        "6 errors",
    ] {
        assert!(message.contains(words), "{words}: {message}");
    }
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
