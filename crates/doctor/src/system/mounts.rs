//! The file system that a folder is on (`/proc/self/mountinfo`, proc(5)).

use super::read;
use std::path::{Path, PathBuf};

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) point: PathBuf,
    pub(crate) kind: String,
    /// The device, or whatever stands for it.
    pub(crate) source: String,
    pub(crate) is_read_only: bool,
}

/// The mount that has `path`, which is absolute and without links.
pub(crate) fn of(root: &Path, path: &Path) -> Option<Mount> {
    let list = read(&root.join("proc/self/mountinfo"))?;
    let mounts = list.lines().filter_map(mount).filter(|mount| path.starts_with(&mount.point));
    // The last of those at one point hides the others.
    mounts
        .enumerate()
        .max_by_key(|(number, mount)| (mount.point.components().count(), *number))
        .map(|(_, mount)| mount)
}

fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut before = before.split(' ').skip(4);
    let (point, options) = (before.next()?, before.next()?);
    let mut after = after.split(' ');
    let (kind, source, more) = (after.next()?, after.next()?, after.next().unwrap_or_default());
    let is_read_only = [options, more].iter().any(|options| options.split(',').any(|option| option == "ro"));
    Some(Mount {
        point: PathBuf::from(unescaped(point)),
        kind: kind.to_owned(),
        source: unescaped(source),
        is_read_only,
    })
}

/// Blanks are written as `\040`.
fn unescaped(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_innermost_mount_counts() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/self")).unwrap();
        let list = "1 0 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n\
                    2 1 0:5 / /srv/my\\040data ro,nosuid - nfs4 host:/x rw,vers=4\n\
                    3 1 0:6 / /srv rw - tmpfs tmpfs rw\n\
                    broken line\n";
        std::fs::write(root.path().join("proc/self/mountinfo"), list).unwrap();
        let kind =
            |path: &str| of(root.path(), Path::new(path)).map(|mount| (mount.kind, mount.is_read_only));
        assert_eq!(kind("/var"), Some(("ext4".to_owned(), false)));
        assert_eq!(kind("/srv/other"), Some(("tmpfs".to_owned(), false)));
        assert_eq!(kind("/srv/my data/journal"), Some(("nfs4".to_owned(), true)));
        assert_eq!(kind("/srvx"), Some(("ext4".to_owned(), false)));
    }
}
