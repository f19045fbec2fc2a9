//! Files with secrets that others can read.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

const GROUP: u32 = 0o070;
const OTHERS: u32 = 0o007;

/// Describes who beside its owner can read or write the file at `path`, which holds a secret; `None` if nobody.
///
/// A file of root that this process, which is not root, can only read as a member of its group is as it should be.
pub fn loose(path: &Path) -> Option<String> {
    let about = std::fs::metadata(path).ok()?;
    let me = rustix::process::geteuid().as_raw();
    judge(about.mode(), about.uid(), me)
}

fn judge(mode: u32, owner: u32, me: u32) -> Option<String> {
    let by_group_only = owner == 0 && me != 0 && mode & 0o020 == 0;
    let who = match (mode & GROUP != 0 && !by_group_only, mode & OTHERS != 0) {
        (_, true) => "everybody on this machine",
        (true, false) => "its group",
        (false, false) => return None,
    };
    let does = if mode & 0o022 != 0 { "write" } else { "read" };
    Some(format!("{who} may {does} it (mode {:04o}): `chmod 600`", mode & 0o7777))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_readers_of_a_secret() {
        assert_eq!(judge(0o100_600, 1000, 1000), None);
        assert_eq!(judge(0o100_400, 0, 1000), None);
        assert_eq!(judge(0o100_640, 0, 1000), None, "root's, for the group of this process");
        assert!(judge(0o100_640, 0, 0).unwrap().contains("its group may read"));
        assert!(judge(0o100_640, 1000, 1000).unwrap().contains("its group may read"));
        assert!(judge(0o100_660, 0, 1000).unwrap().contains("its group may write"));
        assert!(
            judge(0o100_644, 0, 1000).unwrap().contains("everybody on this machine may read it (mode 0644)")
        );
        assert!(judge(0o100_606, 0, 1000).unwrap().contains("everybody on this machine may write"));
    }
}
