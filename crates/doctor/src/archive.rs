//! A bug report in a file: what was found, and what somebody far away needs to know, without secrets and telemetry.
//!
//! Left out are words of peers, which may quote what they were sent, and the content of every file of the gateway. What stays is
//! masked once more, whatever it is.

mod scrub;

use crate::examination::{Examination, READ_LIMIT};
use crate::report::Report;
use crate::system::{cgroup::Groups, read, within};
use serde_json::json;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use tidegate_wire::gzip::Encoder;

/// The most files that are listed.
const MOST_FILES: usize = 10_000;
/// The level of gzip.
const LEVEL: i32 = 6;
/// The folders of the data folder whose files are listed. Others may have names from outside.
const LISTED: [&str; 4] = ["journal", "dead-letters", "lake", "handoff"];
/// The folder in the archive.
const FOLDER: &str = "tidegate-doctor";

/// Files to be archived: each with its name and its content.
#[derive(Debug, Clone, Default)]
pub struct Archive(Vec<(&'static str, String)>);

/// Collects what is known of an examination.
pub fn archive(seen: &Examination<'_>, report: &Report) -> Archive {
    let masker = seen.masker_of_archive();
    let text = |text: &str| masker.mask(text);
    // Text by text, so that it stays JSON.
    let json = |value: &serde_json::Value| format!("{:#}\n", scrub::masked(value, &masker));
    let mut files: Vec<(&'static str, String)> = Vec::new();
    let version = &seen.subject.program.version;
    files.push(("findings.json", json(&report.json(version, true))));
    let mut findings = String::new();
    // Writing to a text does not fail.
    let _ = report.without_quotes().write_text(&mut findings, false);
    files.push(("findings.txt", text(&findings)));
    files.push(("configuration.yaml", text(&seen.subject.configuration.effective)));
    files.push(("system.json", json(&system(seen))));
    files.push(("limits.txt", text(&limits(seen))));
    if let Some(setup) = seen.setup() {
        let data = setup.data.path.clone();
        let list = within(READ_LIMIT, move || listed(&data));
        files.push(("files.txt", text(&list.unwrap_or_else(|| "(the disk does not answer)\n".to_owned()))));
    }
    let running = Some(&seen.running).filter(|running| running.is_ours);
    if let Some(status) = running.and_then(|running| running.status.as_ref()) {
        files.push(("status.json", json(&scrub::status(status))));
    }
    if let Some(metrics) = running.and_then(|running| running.metrics.as_ref()) {
        files.push(("metrics.txt", text(metrics)));
    }
    Archive(files)
}

impl Archive {
    /// The names and contents of its files.
    pub fn files(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.0.iter().map(|(name, text)| (*name, text.as_str()))
    }

    /// Writes it to a new file, as a tar archive in gzip, which only its owner may read.
    ///
    /// # Errors
    /// When there is such a file, or it cannot be written.
    pub fn write(&self, file: &Path) -> io::Result<()> {
        use std::os::unix::fs::OpenOptionsExt;
        let bytes = gzip(&self.tar()?);
        let mut out = fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
        io::Write::write_all(&mut out, &bytes)
    }

    fn tar(&self) -> io::Result<Vec<u8>> {
        let mut out = tar::Builder::new(Vec::new());
        for (name, text) in &self.0 {
            let mut header = tar::Header::new_ustar();
            header.set_size(text.len() as u64);
            header.set_mode(0o600);
            header.set_cksum();
            out.append_data(&mut header, format!("{FOLDER}/{name}"), text.as_bytes())?;
        }
        out.into_inner()
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = Encoder::new(LEVEL).unwrap_or_else(|_| unreachable!("a level"));
    let mut out = vec![0; Encoder::max_len(bytes.len())];
    let (_, written) = encoder.step(bytes, &mut out);
    let (rest, _) = encoder.finish(out.get_mut(written..).unwrap_or_default());
    out.truncate(written + rest);
    out
}

fn system(seen: &Examination<'_>) -> serde_json::Value {
    let name = rustix::system::uname();
    let text = |part: &std::ffi::CStr| part.to_string_lossy().into_owned();
    let release = read(&seen.root.join("etc/os-release")).unwrap_or_default();
    let release = release.lines().find_map(|line| line.strip_prefix("PRETTY_NAME=")).unwrap_or_default();
    let groups = Groups::of(seen.root, &seen.process());
    let limit = |limit: &Option<(u64, std::path::PathBuf)>| {
        limit.as_ref().map(|(bytes, file)| json!({"bytes": bytes, "file": file.display().to_string()}))
    };
    json!({
        "version": seen.subject.program.version,
        "program_date": seen.subject.program.date.map(crate::checks::clocks::shown),
        "at": crate::checks::clocks::shown(seen.now),
        "kernel": text(name.release()),
        "kernel_version": text(name.version()),
        "machine": text(name.machine()),
        "system": release.trim_matches('"'),
        "processors": std::thread::available_parallelism().map_or(0, usize::from),
        "user": rustix::process::geteuid().as_raw(),
        "gateway_process": seen.owner,
        "cgroup": {
            "limit": limit(&groups.limit),
            "high": limit(&groups.high),
            "used": groups.used,
            "oom_kills": groups.kills.map(|(kills, _)| kills),
            "processes": groups.processes,
        },
    })
}

fn limits(seen: &Examination<'_>) -> String {
    let process = seen.process();
    let mut text = String::new();
    for file in ["limits", "cgroup", "status"] {
        let file = Path::new("proc").join(&process).join(file);
        let content = read(&seen.root.join(&file)).unwrap_or_else(|| "(cannot be read)".to_owned());
        text.push_str(&format!("==> /{} <==\n{content}\n", file.display()));
    }
    for file in [
        "proc/meminfo",
        "proc/sys/vm/overcommit_memory",
        "proc/sys/fs/inotify/max_user_instances",
        "proc/sys/fs/inotify/max_user_watches",
    ] {
        let content = read(&seen.root.join(file)).unwrap_or_else(|| "(cannot be read)\n".to_owned());
        text.push_str(&format!("==> /{file} <==\n{content}\n"));
    }
    text
}

/// The names and lengths of the gateway's files.
fn listed(data: &Path) -> String {
    let mut folders: Vec<_> = LISTED.iter().rev().map(|name| data.join(name)).collect();
    let (mut lines, mut left) = (Vec::new(), MOST_FILES);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        let mut entries: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
        entries.sort_unstable();
        for path in entries {
            let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
            if metadata.is_dir() {
                folders.push(path);
                continue;
            }
            left = left.saturating_sub(1);
            if left == 0 {
                lines.push(format!("and more: only {MOST_FILES} are listed"));
                return lines.join("\n");
            }
            let name = path.strip_prefix(data).unwrap_or(&path).display().to_string();
            lines.push(format!(
                "{:>14} {:04o} {}",
                metadata.len(),
                metadata.mode() & 0o7777,
                tidegate_plain::line(&name)
            ));
        }
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests;
