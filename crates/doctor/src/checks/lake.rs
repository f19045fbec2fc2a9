//! A lake: whether everything is there that its manifests name, and what a crash has left.

use crate::examination::READ_LIMIT;
use crate::finding::Finding;
use crate::subject::Lake;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use tidegate_arena::Bytes;
use tidegate_lake::{Error, VerifyReport, verify, verify_presence};

/// Lakes up to so many bytes are read whole.
const READ_WHOLE: u64 = 64 << 20;
/// The most places that are told.
const PLACES: usize = 3;

/// Looks at a lake; a gateway that uses it may be writing files.
pub(crate) fn check(lake: &Lake, is_in_use: bool) -> Vec<Finding> {
    let (name, root) = (format!("`sinks.{}`", lake.sink), lake.path.join("v1"));
    match fs::read_dir(&root) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return vec![Finding::fine(
                format!("{name}: there is no lake yet"),
                format!("{} is not there", root.display()),
            )];
        }
        Err(error) => {
            return vec![
                Finding::broken(
                    format!("{name}: the lake cannot be looked at"),
                    format!("{}: {error}", root.display()),
                )
                .remedy("run the doctor as the gateway's user, or as root; see the findings on the disk"),
            ];
        }
        Ok(_) => {}
    }
    let mut findings = vec![match report(&lake.path) {
        None => {
            let what = format!("{name}: the lake was not looked at whole, for want of time");
            Finding::note(what, format!("after {} s", READ_LIMIT.as_secs()))
                .remedy("`tidegate lake verify` reads all of it")
        }
        Some((Err(error), _)) => {
            Finding::broken(format!("{name}: the lake cannot be read"), error.to_string())
                .remedy("look at the disk (`dmesg`)")
        }
        Some((Ok(report), how)) => judge(&name, lake, &report, how),
    }];
    findings.extend(unfinished(&name, &root.join("tmp"), is_in_use));
    findings
}

/// The report on a lake, whose files are read if they are few; `None` when that takes too long.
fn report(path: &Path) -> Option<(Result<VerifyReport, Error>, &'static str)> {
    let (send, receive) = sync_channel(1);
    let path: PathBuf = path.to_owned();
    // A thread that is left behind ends with the program.
    std::thread::spawn(move || {
        let outcome = verify_presence(&path);
        let is_small = outcome.as_ref().is_ok_and(|report| report.is_sound() && report.bytes <= READ_WHOLE);
        let outcome = if is_small {
            (verify(&path), "read whole")
        } else {
            (outcome, "looked for, with their lengths")
        };
        let _ = send.send(outcome);
    });
    receive.recv_timeout(READ_LIMIT).ok()
}

fn judge(name: &str, lake: &Lake, report: &VerifyReport, how: &str) -> Finding {
    let evidence = format!(
        "{} files with {} of {}, which were {how}",
        report.files,
        Bytes(report.bytes),
        Bytes(lake.retention)
    );
    if report.is_sound() {
        return Finding::fine(format!("{name}: the lake is sound"), evidence);
    }
    let lines: Vec<String> = report
        .problems
        .iter()
        .take(PLACES)
        .map(|(path, problem)| format!("{}: {problem}", path.display()))
        .collect();
    let what = format!("{name}: the lake has {} problems", report.problem_count);
    Finding::at_risk(what, format!("{}\n{evidence}", lines.join("\n")))
        .remedy("rows of these files are lost to queries; `tidegate lake verify` lists them all; look at the disk (`dmesg`, `smartctl -a`)")
}

/// Files that were being written when the gateway ended: the next start removes them.
fn unfinished(name: &str, folder: &Path, is_in_use: bool) -> Option<Finding> {
    let entries = fs::read_dir(folder).ok()?;
    let (mut count, mut bytes) = (0_u64, 0_u64);
    for entry in entries.flatten() {
        count += 1;
        bytes += entry.metadata().map_or(0, |metadata| metadata.len());
    }
    (count > 0 && !is_in_use).then(|| {
        let what = format!("{name}: {count} files are unfinished, {}", Bytes(bytes));
        Finding::note(what, folder.display().to_string())
            .remedy("nothing: the next start removes them, and writes their rows again from the journal")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;

    /// A lake whose manifest names one file, which is not there.
    fn lake(dir: &Path) -> Lake {
        let folder = dir.join("v1/manifest/dt=2026-11-21");
        fs::create_dir_all(&folder).unwrap();
        let line = r#"{"node":"n","first":1,"last":2,"files":[{"table":"logs","file":"x.parquet","rows":3,"bytes":4,"min_time_us":0,"max_time_us":1,"xxh64":"0"}]}"#;
        fs::write(folder.join("hh=07.jsonl"), format!("{line}\n")).unwrap();
        Lake { sink: "lake".into(), path: dir.to_owned(), retention: 1 << 30 }
    }

    #[test]
    fn a_missing_file_is_told() {
        let dir = tempfile::tempdir().unwrap();
        let found = check(&lake(dir.path()), false);
        assert_eq!((found.len(), found[0].severity), (1, Severity::AtRisk), "{found:?}");
        assert!(found[0].evidence.contains("x.parquet"), "{found:?}");
    }

    #[test]
    fn what_a_crash_left_is_a_note_unless_a_gateway_writes_it() {
        let dir = tempfile::tempdir().unwrap();
        let none = Lake { sink: "lake".into(), path: dir.path().join("none"), retention: 1 };
        assert_eq!(check(&none, false)[0].severity, Severity::Fine);
        let lake = lake(dir.path());
        fs::create_dir_all(dir.path().join("v1/tmp")).unwrap();
        fs::write(dir.path().join("v1/tmp/a"), "half").unwrap();
        assert_eq!(check(&lake, false)[1].severity, Severity::Note);
        assert_eq!(check(&lake, true).len(), 1);
    }
}
