//! Memory: the budget beside what control groups, the process's limits and the machine allow.

use crate::finding::Finding;
use crate::subject::Memory;
use crate::system::cgroup::Groups;
use crate::system::{field, number, processes, read};
use std::path::Path;
use tidegate_arena::Bytes;

/// As much as that swapped is more than what nobody uses.
const SWAPPED: u64 = 16 << 20;

/// The process whose memory is checked.
#[derive(Debug, Clone)]
pub(crate) struct MemoryOwner {
    /// A number, or `self` where no gateway runs that can be seen.
    pub(crate) process: String,
    /// The bound that a running gateway says it has.
    pub(crate) limit: Option<u64>,
}

/// Looks at the limits of `owner` in the system at `root`.
pub(crate) fn check(memory: &Memory, root: &Path, owner: &MemoryOwner) -> Vec<Finding> {
    let process = owner.process.as_str();
    if let Some(limit) = owner.limit.filter(|_| process == "self") {
        let what = "the running gateway is in a control group that cannot be seen from here";
        let evidence =
            format!("/status.json: its memory is {}, and /proc/locks does not name it", Bytes(limit));
        return vec![
            Finding::note(what, evidence).remedy("run the doctor where the gateway runs, in its container"),
        ];
    }
    let groups = Groups::of(root, process);
    let memory = &of_owner(memory, &groups, owner);
    let mut findings = vec![limit(memory, &groups, process)];
    findings.extend(high(memory, &groups));
    findings.extend(kills(&groups));
    findings.extend(machine(memory, root, process));
    findings.extend(address_space(memory, root, process));
    findings.extend(swap(root, process));
    findings
}

/// The demand of the gateway that runs. Without the setting, a budget follows the control group of the process that reads the
/// configuration, which is the doctor here.
fn of_owner(memory: &Memory, groups: &Groups, owner: &MemoryOwner) -> Memory {
    let with = |budget, origin: String| Memory { budget, origin, ..memory.clone() };
    match (owner.limit, &groups.limit) {
        (Some(limit), _) if limit != memory.budget => {
            with(limit, format!("{}: as the running gateway says in /status.json", Bytes(limit)))
        }
        // Three quarters, as where no connections are configured.
        (None, Some((limit, file))) if !memory.is_configured && owner.process != "self" => {
            let budget = memory.budget.min(limit.saturating_sub(memory.kernel)).min(limit / 4 * 3);
            with(
                budget,
                format!("{} or less: `memory` is not set and follows {}", Bytes(budget), file.display()),
            )
        }
        _ => memory.clone(),
    }
}

fn limit(memory: &Memory, groups: &Groups, process: &str) -> Finding {
    let (budget, kernel) = (memory.budget, memory.kernel);
    let whose = match process {
        "self" => "the doctor's own group, in which a gateway would be that is started from here; a service or a container has another".to_owned(),
        pid => format!("the group of the gateway, process {pid}"),
    };
    let Some((limit, file)) = &groups.limit else {
        return Finding::fine(
            format!("no control group limits memory to less than `memory`, {}", Bytes(budget)),
            format!("{}; looked at: {whose}", memory.origin),
        );
    };
    let mut evidence =
        format!("{} says {} ({whose}); memory {}", file.display(), Bytes(*limit), memory.origin);
    if groups.processes > 1
        && let Some(used) = groups.used
    {
        evidence.push_str(&format!(
            "; {} processes are in the group, which uses {}",
            groups.processes,
            Bytes(used)
        ));
    }
    let enough = Bytes(budget.saturating_add(kernel));
    if budget > *limit {
        let what = format!(
            "the control group allows {}, less than `memory`, {}: the kernel will kill the gateway",
            Bytes(*limit),
            Bytes(budget)
        );
        return Finding::broken(what, evidence).remedy(format!(
            "raise the group's limit to {enough}, or remove `memory`, which then follows the limit"
        ));
    }
    if budget.saturating_add(kernel) > *limit {
        let what = format!(
            "the control group allows {}, too little for `memory`, {}, and what the kernel charges to the group beside it, {}",
            Bytes(*limit),
            Bytes(budget),
            Bytes(kernel)
        );
        return Finding::at_risk(what, evidence).remedy(format!(
            "raise the group's limit to {enough}, or remove `memory`, which then follows the limit"
        ));
    }
    Finding::fine(format!("the control group allows {}, and {enough} are needed", Bytes(*limit)), evidence)
}

fn high(memory: &Memory, groups: &Groups) -> Option<Finding> {
    let (high, file) = groups.high.as_ref().filter(|(high, _)| *high < memory.budget)?;
    let what = format!(
        "the control group slows the gateway down above {}, less than `memory`, {}",
        Bytes(*high),
        Bytes(memory.budget)
    );
    let remedy = "remove `memory.high` (`MemoryHigh=` of systemd), or set `memory` below it";
    Some(Finding::at_risk(what, format!("{} says {}", file.display(), Bytes(*high))).remedy(remedy))
}

fn kills(groups: &Groups) -> Option<Finding> {
    let (kills, file) = groups.kills.as_ref().filter(|(kills, _)| *kills > 0)?;
    let what = format!("the kernel has killed processes of this control group for want of memory: {kills}");
    let remedy = "look for `oom` in the kernel's log (`dmesg`, `journalctl -k`): was it the gateway, or another process of the group? \
                  `tidegate plan` prints the limit that the gateway needs";
    let evidence =
        format!("`oom_kill` in {}, counted since the group was made: when, it does not say", file.display());
    Some(Finding::note(what, evidence).remedy(remedy))
}

fn machine(memory: &Memory, root: &Path, process: &str) -> Option<Finding> {
    let text = read(&root.join("proc/meminfo"))?;
    let (total, available) = (field(&text, "MemTotal")? << 10, field(&text, "MemAvailable")? << 10);
    // What a running gateway has is not available any more, and its own.
    let status = read(&root.join("proc").join(process).join("status"));
    let resident = status.and_then(|status| field(&status, "VmRSS")).unwrap_or(0) << 10;
    let evidence = format!("/proc/meminfo: MemTotal {}, MemAvailable {}", Bytes(total), Bytes(available));
    let needed = memory.budget.saturating_add(memory.kernel);
    Some(if memory.budget > total {
        let what = format!("the machine has {}, less than `memory`, {}", Bytes(total), Bytes(memory.budget));
        Finding::broken(what, evidence).remedy("set `memory` to what the gateway may have")
    } else if available + resident < needed {
        let what = format!(
            "other processes leave {}, and the gateway may come to need {}",
            Bytes(available + resident),
            Bytes(needed)
        );
        let remedy = "set `memory` lower, or move what else runs here; while memory is short, the kernel may kill the gateway";
        Finding::at_risk(what, evidence).remedy(remedy)
    } else {
        Finding::fine(format!("the machine has {} available", Bytes(available)), evidence)
    })
}

/// Whether the arena can be reserved: address space that costs nothing until it is used, unless it is counted.
fn address_space(memory: &Memory, root: &Path, process: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    let wanted = memory.address_space;
    if let Some((Some(limit), _)) = processes::limits(root, process, "Max address space") {
        let evidence = format!("/proc/{process}/limits: Max address space {limit}");
        findings.push(if limit < wanted {
            let what = format!("the limit on address space is {}, and the gateway reserves {}", Bytes(limit), Bytes(wanted));
            Finding::broken(what, evidence).remedy("remove the limit (`ulimit -v unlimited`, `LimitAS=` of systemd): `memory` is the bound on what is used")
        } else {
            Finding::fine(format!("the limit on address space, {}, is high enough", Bytes(limit)), evidence)
        });
    }
    if number(&root.join("proc/sys/vm/overcommit_memory")) == Some(2) {
        let text = read(&root.join("proc/meminfo")).unwrap_or_default();
        let (limit, committed) =
            (field(&text, "CommitLimit").unwrap_or(0) << 10, field(&text, "Committed_AS").unwrap_or(0) << 10);
        let left = limit.saturating_sub(committed);
        let evidence = format!(
            "/proc/sys/vm/overcommit_memory is 2; CommitLimit {}, Committed_AS {}",
            Bytes(limit),
            Bytes(committed)
        );
        findings.push(if left < wanted && process == "self" {
            let what = format!(
                "overcommit is off, {} may still be reserved, and the gateway reserves {}",
                Bytes(left),
                Bytes(wanted)
            );
            Finding::broken(what, evidence)
                .remedy("set `sysctl vm.overcommit_memory=0`: what is reserved is not used beyond `memory`")
        } else {
            Finding::fine("overcommit is off, and what may be reserved suffices", evidence)
        });
    }
    findings
}

fn swap(root: &Path, process: &str) -> Option<Finding> {
    let status = read(&root.join("proc").join(process).join("status"))?;
    let swapped = field(&status, "VmSwap")? << 10;
    (process != "self" && swapped > SWAPPED).then(|| {
        let what = format!("{} of the gateway are swapped out, so requests wait for the disk", Bytes(swapped));
        Finding::at_risk(what, format!("/proc/{process}/status: VmSwap"))
            .remedy("set `memory.swap.max` of its control group to 0 (`MemorySwapMax=0` of systemd), and see that the machine has the memory")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;
    use std::fs;

    const MIB: u64 = 1 << 20;

    fn memory() -> Memory {
        Memory {
            budget: 256 * MIB,
            origin: "256 MiB: as `memory` says".into(),
            kernel: 32 * MIB,
            address_space: 1 << 40,
            is_configured: true,
        }
    }

    fn own() -> MemoryOwner {
        MemoryOwner { process: "self".into(), limit: None }
    }

    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (file, text) in files {
            let file = root.path().join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        }
        root
    }

    /// Findings in a system of these files, without those that are fine.
    fn found(files: &[(&str, &str)]) -> Vec<(Severity, String)> {
        let findings = check(&memory(), root(files).path(), &own());
        assert!(!findings.is_empty());
        findings.into_iter().filter(|f| f.severity > Severity::Fine).map(|f| (f.severity, f.what)).collect()
    }

    const GROUP: (&str, &str) = ("proc/self/cgroup", "0::/g\n");

    #[test]
    fn a_limit_below_the_budget_is_broken_and_one_without_room_for_the_kernel_at_risk() {
        for (mib, expected) in [(200, Some(Severity::Broken)), (270, Some(Severity::AtRisk)), (300, None)] {
            let found = found(&[GROUP, ("sys/fs/cgroup/g/memory.max", &(mib * MIB).to_string())]);
            assert_eq!(found.first().map(|(severity, _)| *severity), expected, "{mib} MiB: {found:?}");
        }
    }

    #[test]
    fn being_slowed_down_and_being_killed_are_told() {
        let found = found(&[
            GROUP,
            ("sys/fs/cgroup/g/memory.high", &(100 * MIB).to_string()),
            ("sys/fs/cgroup/g/memory.events", "oom 1\noom_kill 2\n"),
        ]);
        assert!(found.iter().any(|(_, what)| what.contains("slows")), "{found:?}");
        let killed = found.iter().find(|(_, what)| what.contains("killed") && what.ends_with('2'));
        assert_eq!(killed.unwrap().0, Severity::Note, "the counter does not say when");
    }

    /// The doctor may run in another group than the gateway, and a budget that is not set follows the group.
    #[test]
    fn the_group_of_the_gateway_counts_and_not_the_doctors() {
        let root = root(&[
            ("proc/self/cgroup", "0::/session\n"),
            ("proc/7/cgroup", "0::/unit\n"),
            ("sys/fs/cgroup/session/memory.max", &(100 * MIB).to_string()),
            ("sys/fs/cgroup/unit/memory.max", &(400 * MIB).to_string()),
        ]);
        let found = |memory: &Memory, process: &str, limit| {
            check(memory, root.path(), &MemoryOwner { process: process.into(), limit }).remove(0)
        };
        let doctors = found(&memory(), "self", None);
        assert_eq!(doctors.severity, Severity::Broken);
        assert!(doctors.evidence.contains("the doctor's own group"), "{doctors:?}");
        let gateways = found(&memory(), "7", None);
        assert_eq!(gateways.severity, Severity::Fine);
        assert!(gateways.evidence.contains("the group of the gateway, process 7"), "{gateways:?}");
        // As a doctor in a large group plans it.
        let planned = Memory { budget: 4096 * MIB, is_configured: false, ..memory() };
        assert_eq!(found(&planned, "7", None).severity, Severity::Fine, "its budget follows its group");
        assert_eq!(found(&planned, "7", Some(300 * MIB)).severity, Severity::Fine, "it says what it has");
        assert_eq!(found(&planned, "7", Some(399 * MIB)).severity, Severity::AtRisk);
        let elsewhere = found(&memory(), "self", Some(256 * MIB));
        assert_eq!(
            elsewhere.severity,
            Severity::Note,
            "the doctor's group says nothing of it: {elsewhere:?}"
        );
    }

    #[test]
    fn other_processes_may_have_the_memory() {
        let meminfo = |total: u64, available: u64| {
            format!("MemTotal: {} kB\nMemAvailable: {} kB\n", total << 10, available << 10)
        };
        let found = |total, available| found(&[("proc/meminfo", &meminfo(total, available))]);
        assert_eq!(found(100, 90)[0].0, Severity::Broken);
        assert_eq!(found(1000, 100)[0].0, Severity::AtRisk);
        assert_eq!(found(1000, 900), []);
    }

    #[test]
    fn address_space_that_cannot_be_reserved_is_broken() {
        let limits = |limit: &str| {
            format!("Limit  Soft  Hard  Units\nMax address space         {limit}   {limit}   bytes\n")
        };
        assert_eq!(found(&[("proc/self/limits", &limits("1048576"))])[0].0, Severity::Broken);
        assert_eq!(found(&[("proc/self/limits", &limits("unlimited"))]), []);
        let strict = [
            ("proc/sys/vm/overcommit_memory", "2\n"),
            ("proc/meminfo", "CommitLimit: 1000 kB\nCommitted_AS: 900 kB\n"),
        ];
        assert_eq!(found(&strict)[0].0, Severity::Broken);
        assert_eq!(found(&[("proc/sys/vm/overcommit_memory", "1\n")]), []);
    }
}
