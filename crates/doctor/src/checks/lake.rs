//! A lake: whether everything is there that its manifests name, and what a crash has left.

use crate::examination::READ_LIMIT;
use crate::finding::Finding;
use crate::subject::Lake;
use crate::system::within;
use std::fs;
use std::path::{Path, PathBuf};
use tidegate_arena::Bytes;
use tidegate_lake::{Error, VerifyReport, verify, verify_presence};

/// Lakes up to so many bytes are read whole.
const READ_WHOLE: u64 = 64 << 20;
/// The most places that are told.
const PLACES: usize = 3;
/// The most characters about one place.
const LONGEST_LINE: usize = 300;

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
    let mut findings = vec![match looked_at(&lake.path, is_in_use) {
        None => {
            let what = format!("{name}: the lake was not looked at whole, for want of time");
            Finding::note(what, format!("after {} s", READ_LIMIT.as_secs()))
                .remedy("`tidegate lake verify` reads all of it")
        }
        Some((Err(error), _)) => Finding::broken(format!("{name}: the lake cannot be read"), "")
            .quoting(error.to_string())
            .remedy("look at the disk (`dmesg`)"),
        Some((Ok(report), how)) => judge(&name, lake, &report, how),
    }];
    findings.extend(unfinished(&name, &root.join("tmp"), is_in_use));
    findings
}

/// The report on a lake; `None` when that takes too long. A gateway that uses it deletes and replaces files meanwhile: only what is
/// wrong twice counts then.
fn looked_at(path: &Path, is_in_use: bool) -> Option<(Result<VerifyReport, Error>, &'static str)> {
    let first = report(path)?;
    let problems = match &first.0 {
        Ok(found) if is_in_use && !found.is_sound() => found.problems.clone(),
        _ => return Some(first),
    };
    let (mut second, how) = report(path)?;
    if let Ok(found) = &mut second {
        // Of those that were not kept, nobody knows which they are.
        let more = found.problem_count.saturating_sub(found.problems.len() as u64);
        found.problems.retain(|(path, _)| problems.iter().any(|(known, _)| known == path));
        found.problem_count = more + found.problems.len() as u64;
    }
    Some((second, how))
}

/// The report on a lake, whose files are read if they are few; `None` when that takes too long.
fn report(path: &Path) -> Option<(Result<VerifyReport, Error>, &'static str)> {
    let path: PathBuf = path.to_owned();
    within(READ_LIMIT, move || {
        let outcome = verify_presence(&path);
        let is_small = outcome.as_ref().is_ok_and(|report| report.is_sound() && report.bytes <= READ_WHOLE);
        match is_small {
            true => (verify(&path), "read whole"),
            false => (outcome, "looked for, with their lengths"),
        }
    })
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
    // Names in a manifest, and what is wrong with it, may be made of telemetry.
    let lines = report.problems.iter().take(PLACES).map(|(path, problem)| {
        let line = format!("{}: {problem}", path.display());
        line.chars().take(LONGEST_LINE).collect::<String>()
    });
    let what = format!("{name}: the lake has {} problems", report.problem_count);
    Finding::at_risk(what, evidence)
        .quoting(lines.collect::<Vec<_>>().join("\n"))
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
        assert!(
            found[0].quote.contains("x.parquet") && !found[0].evidence.contains("x.parquet"),
            "{found:?}"
        );
        assert_eq!(check(&lake(dir.path()), true)[0].severity, Severity::AtRisk, "it is missing twice");
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
