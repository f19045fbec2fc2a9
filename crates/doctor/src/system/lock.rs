//! Who holds the lock of a folder, without taking it.

use super::read;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The process that holds the lock file `file`, by the kernel's list (`/proc/locks`). Processes in other containers are not
/// in it.
pub(crate) fn holder(root: &Path, file: &Path) -> Option<u32> {
    let metadata = std::fs::metadata(file).ok()?;
    let written = read(file).and_then(|text| text.trim().parse::<u32>().ok());
    let device = metadata.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let locks = read(&root.join("proc/locks"))?;
    locks.lines().find_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        if words.next()? != "FLOCK" {
            return None;
        }
        let (pid, place) = (words.nth(2)?.parse::<u32>().ok()?, words.next()?);
        let mut place = place.split(':');
        let (on_major, on_minor) = (hex(place.next()?)?, hex(place.next()?)?);
        let inode: u64 = place.next()?.parse().ok()?;
        // Some file systems have another device there than a file says of itself.
        let is_here = (on_major, on_minor) == (major, minor) || written == Some(pid);
        (inode == metadata.ino() && is_here && pid > 0).then_some(pid)
    })
}

fn hex(text: &str) -> Option<u32> {
    u32::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::FlockOperation;

    #[test]
    fn a_held_lock_has_its_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("lock");
        std::fs::write(&path, format!("{}\n", std::process::id())).unwrap();
        assert_eq!(holder(Path::new("/"), &path), None);
        let file = std::fs::File::open(&path).unwrap();
        rustix::fs::flock(&file, FlockOperation::LockExclusive).unwrap();
        assert_eq!(holder(Path::new("/"), &path), Some(std::process::id()));
        drop(file);
        assert_eq!(holder(Path::new("/"), &path), None, "a file that says so is no lock");
    }
}
