//! Memory limits of control groups, version 1 and 2, from a process's own group up to the root.

use super::{number, read};
use std::path::{Component, Path, PathBuf};

/// Version 1 writes no limit as a number near the largest.
const NO_LIMIT: u64 = 1 << 60;

/// What the groups of a process say of memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Groups {
    /// The smallest hard limit, and its file.
    pub(crate) limit: Option<(u64, PathBuf)>,
    /// The smallest limit above which processes are slowed down (`memory.high`), and its file.
    pub(crate) high: Option<(u64, PathBuf)>,
    /// The memory that the group with the hard limit uses now.
    pub(crate) used: Option<u64>,
    /// How often the kernel has killed a process for memory, in the group with the hard limit or the innermost one; and the file.
    pub(crate) kills: Option<(u64, PathBuf)>,
    /// Processes in the innermost group.
    pub(crate) processes: usize,
}

impl Groups {
    /// Those of `process` (a number, or `self`) in the system below `root`.
    pub(crate) fn of(root: &Path, process: &str) -> Groups {
        let mut found = Groups::default();
        let Some(lines) = read(&root.join("proc").join(process).join("cgroup")) else { return found };
        for folder in lines.lines().flat_map(|line| folders(root, line)) {
            let smaller = |before: &Option<(u64, PathBuf)>, name: &str| {
                let file = folder.join(name);
                let limit = number(&file).filter(|limit| *limit < NO_LIMIT)?;
                before.as_ref().is_none_or(|(known, _)| limit < *known).then_some((limit, file))
            };
            let limit = smaller(&found.limit, "memory.max")
                .or_else(|| smaller(&found.limit, "memory.limit_in_bytes"));
            if limit.is_some() {
                found.limit = limit;
                found.used = number(&folder.join("memory.current"))
                    .or_else(|| number(&folder.join("memory.usage_in_bytes")));
            }
            found.high = smaller(&found.high, "memory.high").or(found.high);
            let innermost = found.processes == 0;
            if innermost {
                found.processes = read(&folder.join("cgroup.procs")).map_or(0, |text| text.lines().count());
            }
            if found.kills.is_none() {
                found.kills = kills(&folder.join("memory.events"))
                    .or_else(|| kills(&folder.join("memory.oom_control")));
            }
        }
        found
    }
}

/// The folders of the groups in one line of `/proc/PID/cgroup` (`hierarchy:controllers:path`), innermost first.
fn folders(root: &Path, line: &str) -> Vec<PathBuf> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(group)) = (parts.next(), parts.next()) else { return Vec::new() };
    let mounts: &[&str] = if controllers.is_empty() {
        &["sys/fs/cgroup", "sys/fs/cgroup/unified"]
    } else if controllers.split(',').any(|controller| controller == "memory") {
        &["sys/fs/cgroup/memory"]
    } else {
        return Vec::new();
    };
    // In a container the group's own folder may be the mount's root, and its path may not exist: the way up ends there.
    let group: PathBuf =
        Path::new(group).components().filter(|part| matches!(part, Component::Normal(_))).collect();
    let mounted = mounts.iter().map(|mount| root.join(mount));
    mounted
        .flat_map(|mount| group.ancestors().map(|part| mount.join(part)).collect::<Vec<_>>())
        .filter(|folder| folder.is_dir())
        .collect()
}

fn kills(file: &Path) -> Option<(u64, PathBuf)> {
    let text = read(file)?;
    let count = text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())?;
    Some((count, file.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn write(root: &Path, files: &[(&str, &str)]) {
        for (file, text) in files {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
    }

    #[test]
    fn version_2_is_read_up_to_the_root() {
        let root = tempfile::tempdir().unwrap();
        write(
            root.path(),
            &[
                ("proc/7/cgroup", "0::/a/b\n"),
                ("sys/fs/cgroup/a/b/memory.max", "max\n"),
                ("sys/fs/cgroup/a/b/memory.high", "900\n"),
                ("sys/fs/cgroup/a/b/memory.events", "low 0\noom_kill 3\n"),
                ("sys/fs/cgroup/a/b/cgroup.procs", "7\n8\n"),
                ("sys/fs/cgroup/a/memory.max", "1000\n"),
                ("sys/fs/cgroup/a/memory.current", "600\n"),
            ],
        );
        let groups = Groups::of(root.path(), "7");
        assert_eq!(groups.limit, Some((1000, root.path().join("sys/fs/cgroup/a/memory.max"))));
        assert_eq!(groups.high.map(|(high, _)| high), Some(900));
        assert_eq!(
            (groups.used, groups.kills.map(|(kills, _)| kills), groups.processes),
            (Some(600), Some(3), 2)
        );
    }

    #[test]
    fn version_1_has_a_number_for_no_limit() {
        let root = tempfile::tempdir().unwrap();
        write(
            root.path(),
            &[
                ("proc/self/cgroup", "4:cpu:/x\n9:memory:/pod/one\n"),
                ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
                ("sys/fs/cgroup/memory/memory.oom_control", "oom_kill_disable 0\noom_kill 1\n"),
            ],
        );
        assert_eq!(Groups::of(root.path(), "self").limit, None);
        write(root.path(), &[("sys/fs/cgroup/memory/pod/memory.limit_in_bytes", "5000")]);
        let groups = Groups::of(root.path(), "self");
        assert_eq!(groups.limit.map(|(limit, _)| limit), Some(5000));
        assert_eq!(groups.kills.map(|(kills, _)| kills), Some(1));
    }

    #[test]
    fn no_groups_are_no_limits() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Groups::of(root.path(), "self"), Groups::default());
    }
}
