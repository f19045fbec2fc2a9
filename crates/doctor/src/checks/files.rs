//! Limits on open files, and on the folders that are watched for log files.

use crate::finding::Finding;
use crate::subject::Files;
use crate::system::{number, processes, read};
use std::path::Path;

/// The most entries of `fdinfo` whose watches are counted.
const MOST_COUNTED: usize = 4096;

/// Looks at the limits of the gateway with this number, or of this process.
pub(crate) fn check(files: &Files, root: &Path, gateway: Option<u32>) -> Vec<Finding> {
    let mut findings = vec![match gateway {
        Some(pid) => running(files, root, pid),
        None => would_start(files),
    }];
    if files.follows_files {
        findings.push(inotify(root, gateway.is_some()));
    }
    findings
}

fn would_start(files: &Files) -> Finding {
    let evidence = format!(
        "the hard limit of this process is {} (`ulimit -Hn`), and {} are needed",
        files.allowed, files.needed
    );
    let remedy = format!(
        "raise it to {} (`ulimit -Hn`, `LimitNOFILE=` of systemd): the gateway takes what it needs by itself",
        files.needed
    );
    match (&files.error, &files.shortage) {
        (Some(error), _) => Finding::broken(error.clone(), evidence).remedy(remedy),
        (None, Some(shortage)) => Finding::at_risk(shortage.clone(), evidence).remedy(remedy),
        (None, None) => Finding::fine("the limit on open files is high enough", evidence),
    }
}

fn running(files: &Files, root: &Path, pid: u32) -> Finding {
    let process = pid.to_string();
    let Some((soft, _)) = processes::limits(root, &process, "Max open files") else {
        return Finding::note(
            "the limits of the running gateway cannot be read",
            format!("/proc/{pid}/limits"),
        )
        .remedy("run the doctor as the user of the gateway, or as root");
    };
    let soft = soft.unwrap_or(u64::MAX);
    let (mut open, mut may_see) = (0u64, false);
    if let Ok(entries) = std::fs::read_dir(root.join("proc").join(&process).join("fd")) {
        (open, may_see) = (entries.count() as u64, true);
    }
    let count = if may_see { format!(", and it has {open} open") } else { String::new() };
    let evidence = format!(
        "/proc/{pid}/limits: Max open files {soft}; {} are needed for everything that is configured{count}",
        files.needed
    );
    let remedy = format!(
        "raise the hard limit to {} (`LimitNOFILE=` of systemd) and restart the gateway",
        files.needed
    );
    if soft < files.needed {
        return Finding::at_risk("the running gateway may open fewer files than its configuration needs, so it takes fewer connections", evidence).remedy(remedy);
    }
    Finding::fine("the running gateway may open as many files as it needs", evidence)
}

/// Instances and watches of this user beside their limits: without a free instance, files are looked at every second.
fn inotify(root: &Path, is_running: bool) -> Finding {
    let limits = root.join("proc/sys/fs/inotify");
    let Some(instances) = number(&limits.join("max_user_instances")) else {
        return Finding::note(
            "this kernel has no limits of inotify to look at",
            limits.display().to_string(),
        );
    };
    let most_watches = number(&limits.join("max_user_watches")).unwrap_or(u64::MAX);
    let (mut used, mut holders) = (0u64, Vec::new());
    let own = rustix::process::geteuid().as_raw();
    processes::each_file(root, &mut |pid, file| {
        if file == "anon_inode:inotify" && is_of(root, pid, own) {
            used += 1;
            if holders.last() != Some(&pid) {
                holders.push(pid);
            }
        }
    });
    let watches: u64 = holders.iter().map(|pid| watches(root, *pid)).sum();
    let evidence = format!(
        "user {own} has {used} of {instances} instances (fs.inotify.max_user_instances) and {watches} of {most_watches} watches \
         (fs.inotify.max_user_watches), as far as may be seen"
    );
    let remedy = "raise the limits: `sysctl fs.inotify.max_user_instances=1024 fs.inotify.max_user_watches=1048576`; without \
                  inotify, files are looked at every second";
    if used >= instances && !is_running || watches.saturating_add(watches / 20) >= most_watches {
        return Finding::at_risk("inotify has nothing left for log files to be followed", evidence)
            .remedy(remedy);
    }
    Finding::fine("inotify has room for log files to be followed", evidence)
}

fn is_of(root: &Path, pid: u32, uid: u32) -> bool {
    let status = read(&root.join("proc").join(pid.to_string()).join("status")).unwrap_or_default();
    crate::system::field(&status, "Uid") == Some(uid.into())
}

fn watches(root: &Path, pid: u32) -> u64 {
    let Ok(entries) = std::fs::read_dir(root.join("proc").join(pid.to_string()).join("fdinfo")) else {
        return 0;
    };
    let infos = entries.flatten().take(MOST_COUNTED).filter_map(|entry| read(&entry.path()));
    infos.map(|info| info.lines().filter(|line| line.starts_with("inotify ")).count() as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;
    use std::fs;

    fn files() -> Files {
        Files { needed: 2000, allowed: 4096, error: None, shortage: None, follows_files: false }
    }

    #[test]
    fn too_few_files_are_told() {
        let root = Path::new("/");
        let severity = |files: &Files| check(files, root, None)[0].severity;
        assert_eq!(severity(&files()), Severity::Fine);
        assert_eq!(severity(&Files { shortage: Some("few".into()), ..files() }), Severity::AtRisk);
        assert_eq!(severity(&Files { error: Some("none".into()), ..files() }), Severity::Broken);
    }

    #[test]
    fn a_running_gateway_is_looked_at_itself() {
        let root = tempfile::tempdir().unwrap();
        let limits = |soft: &str| {
            fs::create_dir_all(root.path().join("proc/9/fd")).unwrap();
            fs::write(
                root.path().join("proc/9/limits"),
                format!("Max open files            {soft}   4096   files\n"),
            )
            .unwrap();
            check(&files(), root.path(), Some(9))[0].severity
        };
        assert_eq!(limits("1024"), Severity::AtRisk);
        assert_eq!(limits("4096"), Severity::Fine);
        assert_eq!(limits("unlimited"), Severity::Fine);
        assert_eq!(check(&files(), root.path(), Some(10))[0].severity, Severity::Note);
    }

    #[test]
    fn no_free_instance_of_inotify_is_told() {
        let root = tempfile::tempdir().unwrap();
        let write = |file: &str, text: &str| {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("proc/sys/fs/inotify/max_user_instances", "1\n");
        write("proc/sys/fs/inotify/max_user_watches", "100\n");
        write("proc/9/status", &format!("Name: x\nUid:\t{}\t0\t0\t0\n", rustix::process::geteuid().as_raw()));
        write("proc/9/fdinfo/3", "inotify wd:1 ino:2\n");
        fs::create_dir_all(root.path().join("proc/9/fd")).unwrap();
        let follows = Files { follows_files: true, ..files() };
        assert_eq!(check(&follows, root.path(), None)[1].severity, Severity::Fine);
        std::os::unix::fs::symlink("anon_inode:inotify", root.path().join("proc/9/fd/3")).unwrap();
        let found = &check(&follows, root.path(), None)[1];
        assert_eq!(found.severity, Severity::AtRisk);
        assert!(
            found.evidence.contains("1 of 1 instances") && found.evidence.contains("1 of 100 watches"),
            "{found:?}"
        );
    }
}
