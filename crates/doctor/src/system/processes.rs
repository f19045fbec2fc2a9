//! Other processes, as far as this one may see them.

use super::read;
use std::fs;
use std::path::Path;

/// The most entries of `/proc` that are looked at.
const MOST: usize = 65_536;

/// The name of a process.
pub(crate) fn name(root: &Path, pid: u32) -> Option<String> {
    Some(read(&root.join("proc").join(pid.to_string()).join("comm"))?.trim_end().to_owned())
}

/// `PID (NAME)`.
pub(crate) fn shown(root: &Path, pid: u32) -> String {
    match name(root, pid) {
        Some(name) => format!("{pid} (`{name}`)"),
        None => pid.to_string(),
    }
}

/// Whether a process of this number is there.
pub(crate) fn exists(root: &Path, pid: u32) -> bool {
    root.join("proc").join(pid.to_string()).exists()
}

/// Limits of a process (`/proc/PID/limits`): the soft and the hard one; `None` each without a limit.
pub(crate) fn limits(root: &Path, process: &str, name: &str) -> Option<(Option<u64>, Option<u64>)> {
    let text = read(&root.join("proc").join(process).join("limits"))?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut words = line.split_whitespace().map(|word| word.parse().ok());
    Some((words.next()?, words.next()?))
}

/// Calls `look` for each open file of each process that may be seen: its number, and what the file is.
pub(crate) fn each_file(root: &Path, look: &mut dyn FnMut(u32, &str)) {
    let Ok(entries) = fs::read_dir(root.join("proc")) else { return };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let mut left = MOST;
    for pid in pids {
        let Ok(files) = fs::read_dir(root.join("proc").join(pid.to_string()).join("fd")) else { continue };
        for file in files.flatten() {
            left = left.saturating_sub(1);
            if left == 0 {
                return;
            }
            if let Ok(target) = fs::read_link(file.path()) {
                look(pid, &target.to_string_lossy());
            }
        }
    }
}
