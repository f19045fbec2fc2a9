//! Downloads: a file, or a part of it, a piece at a time.

use super::thread::FileThread;
use super::{Client, DOWNLOAD_BYTES, FileError, FileName, FleetFiles};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use std::time::Duration;
use tidegate_http1::{ContentPiece, ContentRange, ContentStream};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

/// A part of a file, as a client asks for it (RFC 9110, section 14.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ByteRange {
    /// From the first byte to the last, or to the end.
    From(u64, Option<u64>),
    /// So many bytes at the end.
    Last(u64),
}

/// A file that is there, and what of it is to be sent.
pub(crate) enum OpenedFile {
    Whole(Box<dyn ContentStream>),
    Part(Box<dyn ContentStream>),
    /// There is nothing of it in the range. The length of the file.
    Unsatisfiable(u64),
}

/// The least bytes that an agent takes in each [`RATE_PERIOD`]: 16 KiB a second. The turn of one that takes less is for others.
const LEAST_OF_PERIOD: u64 = 60 * (16 << 10);
const RATE_PERIOD: Duration = Duration::from_secs(60);

/// How fast a client takes what it downloads.
struct DownloadRate {
    /// When the period began, and what the client has taken since.
    since: Instant,
    taken: u64,
}

/// The content of a file. Only [`DOWNLOAD_BYTES`] of it are in memory.
struct FileContent {
    thread: FileThread,
    file: Arc<File>,
    at: u64,
    left: u64,
    range: Option<ContentRange>,
    buffer: Vec<u8>,
    /// Of an agent: operators have turns of their own.
    rate: Option<DownloadRate>,
    _turn: OwnedSemaphorePermit,
}

impl ByteRange {
    /// The range in a header. None where there are several or it cannot be read: then the whole is sent, as the RFC allows.
    pub(crate) fn parse(header: &[u8]) -> Option<ByteRange> {
        let text = str::from_utf8(header).ok()?.trim();
        let (unit, range) = text.split_once('=')?;
        let (first, last) = range.split_once('-')?;
        let (first, last) = (first.trim(), last.trim());
        let number =
            |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?;
        if !unit.trim().eq_ignore_ascii_case("bytes") {
            return None;
        }
        match (first, last) {
            ("", last) => Some(ByteRange::Last(number(last)?)),
            (first, "") => Some(ByteRange::From(number(first)?, None)),
            (first, last) => {
                let (first, last) = (number(first)?, number(last)?);
                (first <= last).then_some(ByteRange::From(first, Some(last)))
            }
        }
    }

    /// The first and the last byte of it in a file of so many; none when there are none.
    fn within(self, total: u64) -> Option<(u64, u64)> {
        let end = total.checked_sub(1)?;
        match self {
            ByteRange::From(first, last) => (first <= end).then(|| (first, last.unwrap_or(end).min(end))),
            ByteRange::Last(0) => None,
            ByteRange::Last(len) => Some((total.saturating_sub(len), end)),
        }
    }
}

impl FleetFiles {
    /// Opens a file to send it.
    ///
    /// # Errors
    /// When there are too many downloads, there is no such file, or its bytes are on another gateway.
    pub(crate) async fn download(
        &self,
        file: &FileName,
        range: Option<ByteRange>,
        client: Client,
    ) -> Result<OpenedFile, FileError> {
        let turns = match client {
            Client::Agent(_) => &self.downloads,
            Client::Operator => &self.operator_downloads,
        };
        let turn = Arc::clone(turns).try_acquire_owned().map_err(|_| FileError::TooMany("downloads"))?;
        let total = self.record(file).await?.size;
        let path = self.path(file);
        let opened = self.thread.run(move || {
            let opened = tidegate_files::read(&path)?;
            match opened.metadata()?.len() == total {
                true => Ok(Arc::new(opened)),
                false => Err(FileError::Disk("its length is not what the state says".to_owned())),
            }
        });
        let opened = opened.await?;
        let content = |at: u64, left: u64, range: Option<ContentRange>| FileContent {
            thread: self.thread.clone(),
            file: Arc::clone(&opened),
            at,
            left,
            range,
            buffer: Vec::new(),
            rate: matches!(client, Client::Agent(_)).then(|| DownloadRate::starting(Instant::now())),
            _turn: turn,
        };
        Ok(match range.map(|range| range.within(total)) {
            None => OpenedFile::Whole(Box::new(content(0, total, None))),
            Some(None) => OpenedFile::Unsatisfiable(total),
            Some(Some((first, last))) => {
                let range = ContentRange::Part { first, last, total };
                OpenedFile::Part(Box::new(content(first, last - first + 1, Some(range))))
            }
        })
    }
}

impl DownloadRate {
    fn starting(now: Instant) -> DownloadRate {
        DownloadRate { since: now, taken: 0 }
    }

    /// Adds what the client has taken until now; false at the end of a period in which that was too little.
    fn is_enough(&mut self, taken: u64, now: Instant) -> bool {
        self.taken = self.taken.saturating_add(taken);
        if now.saturating_duration_since(self.since) < RATE_PERIOD {
            return true;
        }
        let is_enough = self.taken >= LEAST_OF_PERIOD;
        *self = DownloadRate::starting(now);
        is_enough
    }

    /// Does not count a time in which the client had nothing to take.
    fn pause(&mut self, time: Duration) {
        self.since += time;
    }
}

impl ContentStream for FileContent {
    fn total_bytes(&self) -> Option<u64> {
        Some(self.left)
    }

    fn range(&self) -> Option<ContentRange> {
        self.range
    }

    fn next_piece(&mut self) -> ContentPiece<'_> {
        Box::pin(async move {
            let asked = Instant::now();
            let taken = self.buffer.len() as u64;
            if self.rate.as_mut().is_some_and(|rate| !rate.is_enough(taken, asked)) {
                return Err(io::Error::new(
                    io::ErrorKind::TimedOut,
                    "the client takes a download too slowly",
                ));
            }
            let len = self.left.min(DOWNLOAD_BYTES as u64);
            let (file, at, mut buffer) = (Arc::clone(&self.file), self.at, std::mem::take(&mut self.buffer));
            let read = self.thread.run(move || {
                buffer.resize(usize::try_from(len).unwrap_or(DOWNLOAD_BYTES), 0);
                file.read_exact_at(&mut buffer, at)?;
                Ok(buffer)
            });
            self.buffer = read.await.map_err(io::Error::other)?;
            if let Some(rate) = &mut self.rate {
                rate.pause(asked.elapsed());
            }
            (self.at, self.left) = (self.at + len, self.left - len);
            Ok(self.buffer.as_slice())
        })
    }
}

/// The length and the words of an answer to a range that a file does not have.
pub(crate) struct NoSuchRange {
    pub(crate) total: u64,
    pub(crate) text: Box<str>,
}

impl ContentStream for NoSuchRange {
    fn total_bytes(&self) -> Option<u64> {
        Some(self.text.len() as u64)
    }

    fn range(&self) -> Option<ContentRange> {
        Some(ContentRange::Unsatisfiable { total: self.total })
    }

    fn next_piece(&mut self) -> ContentPiece<'_> {
        Box::pin(std::future::ready(Ok(self.text.as_bytes())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client may be slow for a moment, and not for a whole period; waiting for the disk is not its fault.
    #[test]
    fn a_client_that_takes_too_little_is_given_up() {
        let begun = Instant::now();
        let at = |seconds| begun + Duration::from_secs(seconds);
        let mut rate = DownloadRate::starting(begun);
        assert!(rate.is_enough(0, at(59)) && rate.is_enough(LEAST_OF_PERIOD, at(60)));
        assert!(rate.is_enough(LEAST_OF_PERIOD - 1, at(119)), "the period is not over");
        assert!(rate.is_enough(1, at(120)));
        rate.pause(Duration::from_secs(30));
        assert!(rate.is_enough(LEAST_OF_PERIOD - 1, at(209)));
        assert!(!rate.is_enough(0, at(210)));
    }

    #[test]
    fn ranges_are_read_as_the_rfc_says() {
        for (header, total, expected) in [
            ("bytes=0-0", 10, Some(Some((0, 0)))),
            ("bytes=2-5", 10, Some(Some((2, 5)))),
            ("Bytes=2-500", 10, Some(Some((2, 9)))),
            ("bytes=9-", 10, Some(Some((9, 9)))),
            ("bytes=10-", 10, Some(None)),
            ("bytes=-3", 10, Some(Some((7, 9)))),
            ("bytes=-30", 10, Some(Some((0, 9)))),
            ("bytes=-0", 10, Some(None)),
            ("bytes=5-2", 10, None),
            ("bytes=0-1,3-4", 10, None),
            ("bytes=+1-2", 10, None),
            ("bytes=-", 10, None),
            ("items=0-1", 10, None),
            ("bytes=99999999999999999999-", 10, None),
        ] {
            let range = ByteRange::parse(header.as_bytes());
            assert_eq!(range.map(|range| range.within(total)), expected, "{header}");
        }
    }
}
