//! How long the disk takes to make a record durable: measured with a file that has no name and is gone afterwards.

use crate::finding::Finding;
use rustix::fs::{Mode, OFlags};
use std::path::Path;
use std::time::{Duration, Instant};

/// Writes that are measured, at most.
const WRITES: usize = 20;
/// Bytes of each.
const LENGTH: usize = 4096;
/// How long measuring may take.
const LIMIT: Duration = Duration::from_secs(2);
/// Slower disks make clients wait.
const SLOW: Duration = Duration::from_millis(50);

/// Measures in `folder`, or where it would be made. `is_waited_for`: each request waits for the disk.
pub(super) fn check(folder: &Path, is_waited_for: bool) -> Option<Finding> {
    let folder = super::nearest(folder)?;
    let times = match measure(&folder) {
        Ok(times) => times,
        // File systems without files that have no name.
        Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::ISDIR | rustix::io::Errno::NOENT) => {
            let what = "how fast the disk is was not measured: its file system has no files without a name";
            return Some(Finding::note(what, format!("O_TMPFILE in {}", folder.display())));
        }
        Err(error) => {
            let what = format!("a file cannot be written in {}", folder.display());
            let evidence = format!("writing {LENGTH} bytes and `fdatasync`: {error}");
            let remedy = "look at the free room and the health of the disk (`df`, `dmesg`)";
            return Some(Finding::broken(what, evidence).remedy(remedy));
        }
    };
    judge(times, &folder, is_waited_for)
}

fn judge(mut times: Vec<Duration>, folder: &Path, is_waited_for: bool) -> Option<Finding> {
    times.sort_unstable();
    let (median, longest) = (*times.get(times.len() / 2)?, *times.last()?);
    let evidence = format!(
        "{} writes of {LENGTH} bytes, each with `fdatasync`, to a file without a name in {}: median {}, longest {}",
        times.len(),
        folder.display(),
        shown(median),
        shown(longest)
    );
    Some(if median >= SLOW && is_waited_for {
        let what = format!(
            "the disk takes {} to make a write durable, and every request waits for one",
            shown(median)
        );
        let remedy = "use a faster disk, or one with a cache that survives a loss of power; `journal.durability: page_cache` \
                      does not wait, and a crash of the machine then loses the last moments";
        Finding::at_risk(what, evidence).remedy(remedy)
    } else {
        Finding::fine(format!("the disk makes a write durable in {}", shown(median)), evidence)
    })
}

fn measure(folder: &Path) -> rustix::io::Result<Vec<Duration>> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::open(folder, flags, Mode::from_raw_mode(0o600))?;
    let (begun, mut times) = (Instant::now(), Vec::new());
    while times.len() < WRITES && begun.elapsed() < LIMIT {
        let before = Instant::now();
        rustix::io::pwrite(&file, &[0x5a; LENGTH], (times.len() * LENGTH) as u64)?;
        rustix::fs::fdatasync(&file)?;
        times.push(before.elapsed());
    }
    Ok(times)
}

fn shown(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Severity;

    #[test]
    fn leaves_nothing_behind() {
        let dir = tempfile::tempdir().unwrap();
        let found = check(dir.path(), false).unwrap();
        assert!(found.what.contains("durable") || found.what.contains("not measured"), "{found:?}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_slow_disk_matters_where_requests_wait_for_it() {
        let times = || [1, 80, 90].map(Duration::from_millis).to_vec();
        let severity =
            |is_waited_for| judge(times(), Path::new("/d"), is_waited_for).map(|found| found.severity);
        assert_eq!((severity(true), severity(false)), (Some(Severity::AtRisk), Some(Severity::Fine)));
    }
}
