//! The program's own pages: the executable and its libraries, which count as resident memory too.
//!
//! The kernel maps a page of code when it is first used, with its neighbours, and never takes it back. So a
//! process keeps the code of its start, of its help texts and of every rare path for as long as it lives.
//! Pages that were never written can be given back at any time: they are in the file, usually still in the
//! page cache, and come back when they are used.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::os::unix::fs::FileExt as _;

/// The mappings of the executable and its libraries whose pages are clean, and can be given back.
#[derive(Debug, Clone, Default)]
pub struct ProgramPages {
    clean: Vec<Range<usize>>,
}

/// The most lines of the kernel's listing that are read: far more than a process like this one has.
const MOST_LINES: usize = 100_000;

impl ProgramPages {
    /// Looks at what is mapped now. To be called once everything is loaded; what is mapped later is not
    /// known and never given back.
    ///
    /// # Errors
    /// When the kernel does not tell (`/proc` is not there).
    pub fn measure() -> io::Result<ProgramPages> {
        let listing = BufReader::new(File::open("/proc/self/smaps")?);
        let (mut clean, mut programs) = (Vec::new(), HashSet::new());
        let mut current: Option<Mapping> = None;
        for line in listing.lines().take(MOST_LINES) {
            let line = line?;
            if let Some(mapping) = Mapping::of(&line) {
                if mapping.executable {
                    programs.insert(mapping.file.clone());
                }
                current = Some(mapping);
            } else if let Some(pages) = line.strip_prefix("Anonymous:") {
                // Pages that were written (relocations, say) are anonymous: those are the only copy.
                let untouched = pages.split_whitespace().next() == Some("0");
                clean.extend(current.take().filter(|mapping| untouched && mapping.is_file()));
            }
        }
        // Other mappings, such as a file that somebody is reading, may go at any time, and other memory take their place.
        clean.retain(|mapping| programs.contains(&mapping.file));
        Ok(ProgramPages { clean: clean.into_iter().map(|mapping| mapping.range).collect() })
    }

    /// All clean pages of files, in bytes: what they can take at most.
    pub fn bytes(&self) -> u64 {
        self.clean.iter().map(|range| range.len() as u64).sum()
    }

    /// Gives all of these pages back. Those in use return at once, a fault for each 64 KiB.
    ///
    /// # Errors
    /// The last of the kernel's, when it keeps some of them; the others are given back all the same.
    pub fn trim(&self) -> io::Result<()> {
        let mut outcome = Ok(());
        for range in &self.clean {
            // SAFETY: the range is a read-only, private mapping of a file without a written page, so its
            // pages hold what the file holds and are read from there again. It stays mapped: it is the
            // running program or a library, and nothing here unloads libraries.
            let answer =
                unsafe { libc::madvise(range.start as *mut libc::c_void, range.len(), libc::MADV_DONTNEED) };
            if answer != 0 {
                outcome = Err(io::Error::last_os_error());
            }
        }
        outcome
    }
}

/// The kernel's count of resident pages of files. It stays open, since opening a file of `/proc` costs more than reading it.
#[derive(Debug)]
pub struct ResidentPages {
    statm: File,
}

impl ResidentPages {
    /// Opens the kernel's count for this process.
    ///
    /// # Errors
    /// When the kernel does not tell (`/proc` is not there).
    pub fn open() -> io::Result<ResidentPages> {
        Ok(ResidentPages { statm: File::open("/proc/self/statm")? })
    }

    /// The resident pages of files now, in bytes.
    ///
    /// # Errors
    /// When the kernel does not tell.
    pub fn of_files(&self) -> io::Result<u64> {
        let mut line = [0; 128];
        let len = self.statm.read_at(&mut line, 0)?;
        let text = line.get(..len).and_then(|line| str::from_utf8(line).ok());
        // Size, resident, shared, …: in pages.
        let shared = text.and_then(|text| text.split_whitespace().nth(2)?.parse::<u64>().ok());
        shared.map(|pages| pages * crate::page() as u64).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }
}

/// A line that begins a mapping: `from-to mode offset device inode path`.
struct Mapping {
    range: Range<usize>,
    writable: bool,
    executable: bool,
    /// Device and inode; no inode where it is no file.
    file: (String, Option<u64>),
}

impl Mapping {
    fn of(line: &str) -> Option<Mapping> {
        let mut parts = line.split_whitespace();
        let (from, to) = parts.next()?.split_once('-')?;
        let range = usize::from_str_radix(from, 16).ok()?..usize::from_str_radix(to, 16).ok()?;
        let (mode, device, inode) = (parts.next()?, parts.nth(1)?, parts.next()?.parse().ok()?);
        let file = (device.to_owned(), Some(inode).filter(|&inode| inode != 0));
        Some(Mapping { range, writable: mode.contains('w'), executable: mode.contains('x'), file })
    }

    fn is_file(&self) -> bool {
        self.file.1.is_some() && !self.writable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_given_back_and_comes_back() {
        let program = ProgramPages::measure().unwrap();
        assert!(program.bytes() > 1 << 20, "the code of this test is a file of megabytes");
        let resident = ResidentPages::open().unwrap();
        let before = resident.of_files().unwrap();
        program.trim().unwrap();
        let after = resident.of_files().unwrap();
        assert!(after < before, "{after} of {before} bytes");
        // Still running: the pages are back.
        assert_eq!((0..1000u64).map(|n| n * n).sum::<u64>(), 332_833_500);
    }

    #[test]
    fn only_files_without_written_pages_count() {
        let file = Mapping::of("7f1000-7f3000 r-xp 00001000 08:01 1234   /usr/lib/x.so").unwrap();
        assert_eq!((file.range.len(), file.is_file()), (0x2000, true));
        assert!(file.executable, "{:?}", file.file);
        assert!(!Mapping::of("7f1000-7f3000 rw-p 00001000 08:01 1234   /usr/lib/x.so").unwrap().is_file());
        assert!(!Mapping::of("7f1000-7f3000 r--p 00000000 00:00 0 ").unwrap().is_file());
        assert!(Mapping::of("Anonymous:             0 kB").is_none());
    }
}
