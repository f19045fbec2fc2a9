//! A folder of the operating system.

use super::{File, Files};
use rustix::fd::OwnedFd;
use rustix::fs::{Advice, FallocateFlags, Mode, OFlags};
use rustix::io::Errno;
use std::io::{self, IoSlice};
use std::path::PathBuf;
use std::sync::Arc;

/// The folder at a path.
pub struct RealFiles {
    folder: PathBuf,
}

impl RealFiles {
    /// The folder at `folder`, which exists or is made by the caller.
    pub fn new(folder: PathBuf) -> RealFiles {
        RealFiles { folder }
    }
}

impl Files for RealFiles {
    fn list(&self) -> io::Result<Vec<(String, u64)>> {
        let mut all = Vec::new();
        for entry in std::fs::read_dir(&self.folder)? {
            let entry = entry?;
            // A file may vanish between the two calls when another process has the folder.
            if let (Ok(name), Ok(about)) = (entry.file_name().into_string(), entry.metadata())
                && about.is_file()
            {
                all.push((name, about.len()));
            }
        }
        Ok(all)
    }

    fn open(&self, name: &str, write: bool) -> io::Result<Arc<dyn File>> {
        let access = if write { OFlags::RDWR } else { OFlags::RDONLY };
        let flags = access | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(self.folder.join(name), flags, Mode::empty())?;
        Ok(Arc::new(RealFile { fd }))
    }

    fn create(&self, name: &str) -> io::Result<Arc<dyn File>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = rustix::fs::open(self.folder.join(name), flags, Mode::from_raw_mode(0o600))?;
        Ok(Arc::new(RealFile { fd }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::rename(self.folder.join(from), self.folder.join(to))?)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        Ok(rustix::fs::unlink(self.folder.join(name))?)
    }

    fn sync_names(&self) -> io::Result<()> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(rustix::fs::fsync(rustix::fs::open(&self.folder, flags, Mode::empty())?)?)
    }
}

struct RealFile {
    fd: OwnedFd,
}

impl File for RealFile {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            match rustix::io::pread(&self.fd, rest, offset + done as u64) {
                Ok(0) => break,
                Ok(read) => done += read,
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(done)
    }

    fn write_at(&self, parts: &[IoSlice<'_>], offset: u64) -> io::Result<usize> {
        Ok(rustix::io::pwritev(&self.fd, parts, offset)?)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(u64::try_from(rustix::fs::fstat(&self.fd)?.st_size).unwrap_or(0))
    }

    fn allocate(&self, len: u64) -> io::Result<()> {
        loop {
            match rustix::fs::fallocate(&self.fd, FallocateFlags::empty(), 0, len) {
                Err(Errno::INTR) => {}
                // The file system cannot reserve: then the writes themselves find out.
                Err(Errno::OPNOTSUPP | Errno::NOSYS) => return self.set_len(len),
                other => return Ok(other?),
            }
        }
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        Ok(rustix::fs::ftruncate(&self.fd, len)?)
    }

    fn begin_sync(&self, offset: u64) {
        // The kernel begins to write dirty pages so that it can drop them later.
        let _ = rustix::fs::fadvise(&self.fd, offset, None, Advice::DontNeed);
    }

    fn sync(&self) -> io::Result<()> {
        Ok(rustix::fs::fdatasync(&self.fd)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// Files belong to their owner alone, and a symbolic link in their place is not followed.
    #[test]
    fn files_are_the_owners_and_links_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let files = RealFiles::new(dir.path().to_owned());
        files.create("segment").unwrap();
        let about = std::fs::metadata(dir.path().join("segment")).unwrap();
        assert_eq!(about.permissions().mode() & 0o7777, 0o600);

        let outside = tempfile::tempdir().unwrap();
        symlink(outside.path().join("theirs"), dir.path().join("link")).unwrap();
        std::fs::write(outside.path().join("theirs"), "precious").unwrap();
        assert!(files.open("link", true).is_err());
        assert!(files.open("link", false).is_err());
        assert!(files.create("link").is_err());
        assert_eq!(std::fs::read(outside.path().join("theirs")).unwrap(), b"precious");
    }
}
