//! Downloads: a file, or a part of it, a piece at a time.

use super::thread::FileThread;
use super::{Client, DOWNLOAD_BYTES, FileError, FileName, FleetFiles};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;
use tidegate_http1::{ContentPiece, ContentRange, ContentStream};
use tokio::sync::OwnedSemaphorePermit;

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

/// The content of a file. Only [`DOWNLOAD_BYTES`] of it are in memory.
struct FileContent {
    thread: FileThread,
    file: Arc<File>,
    at: u64,
    left: u64,
    range: Option<ContentRange>,
    buffer: Vec<u8>,
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

impl ContentStream for FileContent {
    fn total_bytes(&self) -> u64 {
        self.left
    }

    fn range(&self) -> Option<ContentRange> {
        self.range
    }

    fn next_piece(&mut self) -> ContentPiece<'_> {
        Box::pin(async move {
            let len = self.left.min(DOWNLOAD_BYTES as u64);
            let (file, at, mut buffer) = (Arc::clone(&self.file), self.at, std::mem::take(&mut self.buffer));
            let read = self.thread.run(move || {
                buffer.resize(usize::try_from(len).unwrap_or(DOWNLOAD_BYTES), 0);
                file.read_exact_at(&mut buffer, at)?;
                Ok(buffer)
            });
            self.buffer = read.await.map_err(io::Error::other)?;
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
    fn total_bytes(&self) -> u64 {
        self.text.len() as u64
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
