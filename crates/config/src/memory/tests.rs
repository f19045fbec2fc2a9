//! Whatever the cgroups look like, the budget and what the kernel needs beside it are within the smallest limit that
//! applies, and the budget is no more than three quarters of it.

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use super::*;

fn machine(files: &[(&str, &str)]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    root
}

fn budget(files: &[(&str, &str)]) -> (Bytes, Option<String>) {
    let root = machine(files);
    let budget = Config::default().memory_budget_in(root.path());
    let file = match budget.origin {
        Origin::Cgroup { file, .. } => Some(below(root.path(), &file)),
        _ => None,
    };
    (budget.bytes, file)
}

fn below(root: &Path, file: &Path) -> String {
    file.strip_prefix(root).unwrap().to_str().unwrap().to_owned()
}

const UNLIMITED_V1: &str = "9223372036854771712\n";

/// The `memory` chosen for a limit of this many MiB.
fn of_limit(mib: u64) -> Bytes {
    let text = (mib << 20).to_string();
    let root = machine(&[("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", &text)]);
    Config::default().memory_budget_in(root.path()).bytes
}

/// The chosen value leaves the memory that `tidegate plan` reserves for the kernel, and wastes little; a connection
/// limit above the kernel's memory is not accepted.
#[test]
fn the_budget_and_the_kernels_memory_fit_the_limit() {
    for mib in (48..2048).step_by(7) {
        let text = (mib << 20_u64).to_string();
        let root = machine(&[("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", &text)]);
        let config = Config::default();
        let budget = config.memory_budget_in(root.path());
        let connections = config.connections(&budget);
        let kernel = kernel_needs(budget.bytes, connections).get();
        assert!(budget.bytes.get() + kernel <= mib << 20, "{mib} MiB: {budget}, {connections} connections");
        assert!(budget.bytes.get() >= (mib << 20) / 2, "{mib} MiB: {budget}");
        assert!(budget.bytes.get() <= (mib << 20) / 4 * 3, "{mib} MiB: {budget}");
        assert!((768..=12_000).contains(&connections));
    }
    // An explicit connection limit is honoured, and the budget leaves memory for it.
    let root = machine(&[("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "268435456")]);
    let mut config = Config::default();
    config.limits.connections = Some(8000);
    let budget = config.memory_budget_in(root.path());
    assert_eq!(config.connections(&budget), 8000);
    assert!(budget.bytes.get() + kernel_needs(budget.bytes, 8000).get() <= 256 << 20, "{budget}");
}

#[test]
fn without_cgroups_it_is_the_default() {
    assert_eq!(budget(&[]), (Bytes::mib(256), None));
}

#[test]
fn version_2_own_group() {
    let file = "sys/fs/cgroup/system.slice/tidegate.service/memory.max";
    let found = budget(&[
        ("proc/self/cgroup", "0::/system.slice/tidegate.service\n"),
        (file, "536870912\n"),
        ("sys/fs/cgroup/system.slice/memory.max", "max\n"),
    ]);
    assert_eq!(found, (Bytes::mib(384), Some(file.to_owned())));
    let limit = Bytes::mib(512).get();
    assert!(384 << 20 <= limit - kernel_needs(Bytes::mib(384), 1024).get());
}

#[test]
fn version_2_a_parent_may_be_the_smallest() {
    let parent = "sys/fs/cgroup/kubepods/memory.max";
    let found = budget(&[
        ("proc/self/cgroup", "0::/kubepods/pod1/box\n"),
        ("sys/fs/cgroup/kubepods/pod1/box/memory.max", "1073741824\n"),
        (parent, "134217728\n"),
    ]);
    assert_eq!(found, (of_limit(128), Some(parent.to_owned())));
}

#[test]
fn version_2_inside_a_namespace_the_root_is_the_own_group() {
    let found = budget(&[("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "67108864\n")]);
    assert_eq!(found, (of_limit(64), Some("sys/fs/cgroup/memory.max".to_owned())));
}

#[test]
fn version_1_own_group_and_unlimited_parents() {
    let file = "sys/fs/cgroup/memory/docker/0a1b/memory.limit_in_bytes";
    let found = budget(&[
        ("proc/self/cgroup", "5:devices:/x\n4:cpu,memory:/docker/0a1b\n0::/\n"),
        (file, "104857600\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", UNLIMITED_V1),
    ]);
    assert_eq!(found, (of_limit(100), Some(file.to_owned())));
}

#[test]
fn version_1_in_a_container_that_sees_only_its_own_folder() {
    let file = "sys/fs/cgroup/memory/memory.limit_in_bytes";
    let found = budget(&[("proc/self/cgroup", "4:memory:/docker/0a1b\n"), (file, "268435456\n")]);
    assert_eq!(found, (of_limit(256), Some(file.to_owned())));
}

#[test]
fn no_limit_anywhere_is_the_default() {
    let found = budget(&[
        ("proc/self/cgroup", "4:memory:/\n0::/\n"),
        ("sys/fs/cgroup/memory/memory.limit_in_bytes", UNLIMITED_V1),
        ("sys/fs/cgroup/unified/memory.max", "max\n"),
    ]);
    assert_eq!(found, (Bytes::mib(256), None));
}

#[test]
fn nonsense_is_no_limit_and_leads_nowhere_else() {
    let found = budget(&[
        ("proc/self/cgroup", "garbage\n::\n0::/../../../etc\n4:memory\n"),
        ("sys/fs/cgroup/etc/memory.max", "-5\n"),
        ("sys/fs/cgroup/memory.max", "12 apples\n"),
    ]);
    assert_eq!(found, (Bytes::mib(256), None));
}

#[test]
fn a_tiny_limit_still_gives_a_budget() {
    let found = budget(&[("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "0\n")]);
    assert_eq!(found.0, Bytes::mib(1));
}

#[test]
fn says_where_it_comes_from() {
    let mut config = Config::default();
    let root = machine(&[("proc/self/cgroup", "0::/\n"), ("sys/fs/cgroup/memory.max", "536870912\n")]);
    let said = config.memory_budget_in(root.path()).to_string();
    let file = root.path().join("sys/fs/cgroup/memory.max");
    assert_eq!(
        said,
        format!("384MiB: the cgroup's limit of 512MiB, less 128MiB for the kernel ({})", file.display())
    );
    config.memory = Some(Bytes::mib(64));
    assert_eq!(config.memory_budget_in(root.path()).to_string(), "64MiB: as `memory` says");
}
