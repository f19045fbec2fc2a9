//! The contents of an archive, and what must not be in it.

use super::*;
use crate::examination::{Options, examine};
use crate::subject::{Configuration, Program, Subject};
use std::process::Command;

fn subject() -> Subject {
    Subject {
        program: Program { version: "1.2.3".into(), date: None },
        configuration: Configuration {
            errors: vec!["`a` of http://user:hunter1@h is wrong with hunter2-token".into()],
            notes: vec!["https://hooks.example/hunter4/path/v1 and \"hunter5-variable\"".into()],
            effective:
                "password: hunter2-token\nurl: https://hooks.example/hunter4/path\nname: hunter5-variable\n"
                    .into(),
            ..Configuration::default()
        },
        setup: Some(crate::checks::journal::tests::setup(Path::new("/no/such/folder"), &[])),
        secrets: vec!["Bearer hunter2-token".into()],
        contents: vec!["https://hooks.example/hunter4/path".into()],
        variables: vec!["hunter5-variable".into()],
    }
}

#[test]
fn is_a_tar_in_gzip_without_secrets() {
    let dir = tempfile::tempdir().unwrap();
    let (subject, options) =
        (subject(), Options { is_offline: true, authorization: "Bearer hunter3-token".into() });
    let seen = examine(&subject, &options);
    let report = seen.report();
    let archive = archive(&seen, &report);
    for (name, text) in archive.files() {
        assert!(!text.contains("hunter"), "{name}: {text}");
        let is_json = serde_json::from_str::<serde_json::Value>(text).is_ok();
        assert_eq!(is_json, name.ends_with(".json"), "{name}: {text}");
    }
    let mut text = String::new();
    report.write_text(&mut text, false).unwrap();
    assert!(
        text.contains("hunter5-variable") && !text.contains("hunter4"),
        "a terminal shows variables: {text}"
    );
    let file = dir.path().join("report.tar.gz");
    archive.write(&file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
    assert_eq!(archive.write(&file).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
    let listed = Command::new("tar").arg("-tzf").arg(&file).output().unwrap();
    let listed = String::from_utf8(listed.stdout).unwrap();
    for name in
        ["findings.json", "findings.txt", "configuration.yaml", "system.json", "limits.txt", "files.txt"]
    {
        assert!(listed.contains(&format!("{FOLDER}/{name}\n")), "{listed}");
    }
}

#[test]
fn files_are_listed_without_their_content() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("journal")).unwrap();
    fs::create_dir_all(dir.path().join("other")).unwrap();
    fs::write(dir.path().join("journal/1.seg"), "content").unwrap();
    fs::write(dir.path().join("other/secret-name"), "").unwrap();
    let listed = listed(dir.path());
    assert!(listed.contains("7 ") && listed.contains("journal/1.seg"), "{listed}");
    assert!(!listed.contains("content") && !listed.contains("secret-name"), "{listed}");
}
