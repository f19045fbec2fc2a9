//! The kernel's count of this process's memory.

use serde::Serialize;
use std::fs::File;
use std::io::{self, Read as _};

/// The process's resident memory, in bytes, as `/proc/self/status` tells it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Resident {
    /// Resident now (`VmRSS`).
    pub now: u64,
    /// The most that was ever resident (`VmHWM`): what the promise about memory is measured by.
    pub peak: u64,
    /// Of what is resident now, private memory (`RssAnon`).
    pub anonymous: u64,
    /// Of what is resident now, pages of files: the program itself (`RssFile`).
    pub file: u64,
}

/// The most that is read. The file has some 1.5 KiB, and more with many groups.
const LONGEST: usize = 1 << 20;
/// Longer lines are not those that are looked for.
const LINE: usize = 64;

impl Resident {
    /// The kernel's current count. Allocates nothing.
    ///
    /// # Errors
    /// When the file cannot be read, as on systems without `/proc`.
    pub fn read() -> io::Result<Resident> {
        let mut file = File::open("/proc/self/status")?;
        let (mut reading, mut piece, mut left) = (Reading::default(), [0; 4 << 10], LONGEST);
        while left > 0 {
            let read = file.read(&mut piece)?;
            if read == 0 {
                break;
            }
            left = left.saturating_sub(read);
            reading.feed(piece.get(..read).unwrap_or_default());
        }
        Ok(reading.found)
    }
}

/// The lines, put together from pieces without keeping more than the beginning of one.
struct Reading {
    line: [u8; LINE],
    len: usize,
    found: Resident,
}

impl Default for Reading {
    fn default() -> Self {
        Reading { line: [0; LINE], len: 0, found: Resident::default() }
    }
}

impl Reading {
    fn feed(&mut self, piece: &[u8]) {
        for byte in piece {
            if *byte == b'\n' {
                self.end_line();
            } else if let Some(place) = self.line.get_mut(self.len) {
                *place = *byte;
                self.len += 1;
            }
        }
    }

    fn end_line(&mut self) {
        let line = self.line.get(..self.len).and_then(|line| str::from_utf8(line).ok());
        self.len = 0;
        let Some((name, value)) = line.and_then(|line| line.split_once(':')) else { return };
        let place = match name {
            "VmRSS" => &mut self.found.now,
            "VmHWM" => &mut self.found.peak,
            "RssAnon" => &mut self.found.anonymous,
            "RssFile" => &mut self.found.file,
            _ => return,
        };
        let kib = value.trim().strip_suffix("kB").and_then(|number| number.trim().parse::<u64>().ok());
        *place = kib.unwrap_or(0).saturating_mul(1 << 10);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines are found wherever the pieces end, and a line of any length costs nothing.
    #[test]
    fn lines_are_found_across_pieces() {
        let groups = format!("Groups:\t{}\n", "1000 ".repeat(10_000));
        let text = format!(
            "Name:\tx\n{groups}VmHWM:\t  2048 kB\nVmRSS:\t 1024 kB\nRssAnon:\t 512 kB\nRssFile:\t 4 kB\n"
        );
        let expected = Resident { now: 1 << 20, peak: 2 << 20, anonymous: 512 << 10, file: 4 << 10 };
        for size in [1, 7, 64, 4096, text.len()] {
            let mut reading = Reading::default();
            text.as_bytes().chunks(size).for_each(|piece| reading.feed(piece));
            assert_eq!(reading.found, expected, "in pieces of {size}");
        }
    }

    #[test]
    fn nonsense_counts_as_nothing() {
        let mut reading = Reading::default();
        reading.feed(b"VmRSS:\t99999999999999999999 kB\nVmHWM\nVmHWM:\t12 pages\n\xff\n");
        assert_eq!(reading.found, Resident::default());
    }

    #[test]
    fn this_process_has_memory() {
        let resident = Resident::read().unwrap();
        assert!(resident.now > 0 && resident.peak >= resident.now / 2, "{resident:?}");
    }
}
