//! Files of log lines, made by the bench itself on disk.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Bytes of a line, its end included.
pub(super) const LINE_BYTES: usize = 256;

/// The lines to write. Every line has a number of its own, so that no file is a copy of another.
pub(super) struct LogLines {
    container: bool,
    next: u64,
}

impl LogLines {
    /// Lines as a program writes them.
    pub(super) fn plain() -> LogLines {
        LogLines { container: false, next: 0 }
    }

    /// Lines as the container runtime interface of Kubernetes has them.
    pub(super) fn container() -> LogLines {
        LogLines { container: true, next: 0 }
    }

    /// A new file with so many lines.
    pub(super) fn write(&mut self, path: &Path, lines: usize) -> io::Result<()> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create_new(path)?);
        for _ in 0..lines {
            self.line(&mut file)?;
        }
        file.flush()
    }

    /// One more line.
    pub(super) fn line(&mut self, out: &mut impl Write) -> io::Result<()> {
        let number = self.next;
        self.next += 1;
        let time = format!("2026-01-01T00:00:{:02}.{:09}Z", number % 60, number % 1_000_000_000);
        let (head, width) = if self.container {
            (format!("{time} stdout F "), LINE_BYTES - time.len() - 11)
        } else {
            (format!("{time} "), LINE_BYTES - time.len() - 2)
        };
        let text = format!(
            "INFO shop.orders [worker-{}] order {number} of customer {} was accepted in {} ms: \
             GET /api/v1/orders/{number} HTTP/1.1 200 \"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36\"",
            number % 16,
            number % 9_973,
            number % 97,
        );
        writeln!(out, "{head}{text:.<width$.width$}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_the_same_length_and_a_number_of_its_own() {
        for mut lines in [LogLines::plain(), LogLines::container()] {
            let mut text = Vec::new();
            (0..100).for_each(|_| lines.line(&mut text).unwrap());
            let mut found: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
            assert!(found.iter().all(|line| line.len() == LINE_BYTES));
            found.sort_unstable();
            found.dedup();
            assert_eq!(found.len(), 100);
        }
    }
}
