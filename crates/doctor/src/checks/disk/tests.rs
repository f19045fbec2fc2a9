//! Folders in which something really is wrong.

use super::*;
use crate::finding::Severity;
use crate::subject::{Journal, Lake};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

fn data(path: &Path) -> DataFolder {
    let journal = Journal { quota: 1 << 20, segment: 1 << 16, durability: Durability::Fsync };
    DataFolder { path: path.to_owned(), journal, lakes: Vec::new(), others: Vec::new() }
}

/// The findings of this severity.
fn of(findings: &[Finding], severity: Severity) -> Vec<&str> {
    findings.iter().filter(|finding| finding.severity == severity).map(|finding| &*finding.what).collect()
}

#[test]
fn a_folder_that_can_be_made_is_fine() {
    let dir = tempfile::tempdir().unwrap();
    let findings = check(&data(&dir.path().join("new/folder")), Path::new("/"), false);
    assert_eq!(of(&findings, Severity::Broken), [""; 0]);
    let fine = of(&findings, Severity::Fine);
    assert!(fine.iter().any(|what| what.contains("the gateway makes it")), "{findings:?}");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "nothing was made");
}

#[test]
fn a_file_in_the_way_is_broken() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let lakes = vec![Lake { sink: "lake".into(), path: file, retention: 1 }];
    let findings = check(&DataFolder { lakes, ..data(dir.path()) }, Path::new("/"), false);
    let broken = of(&findings, Severity::Broken);
    assert!(broken[0].contains("`sinks.lake`: ") && broken[0].contains("not a folder"), "{findings:?}");
}

/// As another user than root, whom the kernel lets do anything: as root, `tests/tests/doctor.rs` runs the program as another user.
#[test]
fn a_folder_that_may_not_be_written_is_broken() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("closed");
    fs::create_dir(&folder).unwrap();
    fs::set_permissions(&folder, Permissions::from_mode(0o555)).unwrap();
    let findings = look(&Place { setting: "data".into(), path: &folder, quota: 1 }, Path::new("/"));
    let may_write = rustix::process::geteuid().is_root();
    assert_eq!(of(&findings, Severity::Broken).is_empty(), may_write, "{findings:?}");
}

#[test]
fn file_systems_that_lose_data_are_told() {
    let severity = |kind: &str, is_read_only| {
        let (kind, source) = (kind.to_owned(), "x".to_owned());
        let mount = mounts::Mount { point: "/".into(), kind, source, is_read_only };
        file_system("data", Path::new("/d"), &mount).severity
    };
    for kind in ["tmpfs", "overlay", "nfs4"] {
        assert_eq!(severity(kind, false), Severity::AtRisk, "{kind}");
    }
    assert_eq!(severity("ext4", false), Severity::Fine);
    assert_eq!(severity("ext4", true), Severity::Broken);
}

#[test]
fn the_process_that_has_the_folder_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let settings = tidegate_journal::Settings::new(dir.path().join("journal"));
    let (held, _) = tidegate_journal::Journal::open(settings).unwrap();
    let findings = check(&data(dir.path()), Path::new("/"), true);
    let own = std::process::id().to_string();
    assert!(of(&findings, Severity::Note).iter().any(|what| what.contains(&own)), "{findings:?}");
    drop(held);
}
