//! The state of one file between its bytes and its records.

use crate::checkpoint::Checkpoint;
use crate::container::{self, Entry, Stream};
use crate::decode::{self, ByteOrderMark};
use crate::framing::{self, Frame};
use crate::record::Output;
use crate::settings::{Encoding, Format, LineFormat, Settings};
use crate::stream::{Context, StreamState};
use crate::workspace::Workspace;
use std::sync::Arc;

/// The state of one file between its bytes and its records.
#[derive(Debug)]
pub struct Lines {
    settings: Arc<Settings>,
    /// The offset of the next byte that is fed.
    position: u64,
    /// How many bytes from there on are known to have no line end.
    searched: usize,
    /// `None` until the first line.
    format: Option<LineFormat>,
    /// `None` until the first bytes.
    encoding: Option<Encoding>,
    /// Whether the rest of a line is skipped.
    skips_line: bool,
    streams: [StreamState; Stream::COUNT],
}

/// The outcome of a feed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fed {
    /// How many of them need not be fed again.
    pub consumed: usize,
    /// Why it was not more.
    pub stop: Stop,
}

/// Why a feed or flush ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// No whole line is left. If nothing was consumed, the next feed needs more bytes.
    End,
    /// The output has no room for the next record.
    Full,
    /// The output did not grant memory for an unfinished record. [`Lines::resume`] from [`Lines::checkpoint`] gives back what
    /// the file holds, and reads it from the file again.
    Memory,
}

impl Lines {
    /// Reads a file from `checkpoint` on: [`Checkpoint::at`] for one of which nothing is known.
    #[must_use]
    pub fn resume(settings: Arc<Settings>, checkpoint: &Checkpoint) -> Lines {
        let format = match settings.format {
            Format::Only(format) => Some(format),
            Format::Auto => checkpoint.format,
        };
        Lines {
            settings,
            position: checkpoint.offset,
            searched: 0,
            format,
            encoding: checkpoint.encoding,
            skips_line: checkpoint.skips_line,
            streams: checkpoint.streams.map(StreamState::new),
        }
    }

    /// The offset in the file of the next byte to feed.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.position
    }

    /// From where the file is read again when all records that the output took are durable.
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        let streams = self.streams.each_ref().map(|stream| stream.delivered(self.position));
        let offset = streams.iter().fold(self.position, |offset, stream| offset.min(stream.before));
        Checkpoint {
            offset,
            format: self.format,
            encoding: self.encoding,
            // A reader that begins before the line finds out by itself.
            skips_line: self.skips_line && offset == self.position,
            streams,
        }
    }

    /// When [`flush`](Self::flush) is due, in the time that feeds are told.
    #[must_use]
    pub fn deadline_ns(&self) -> Option<u64> {
        self.streams.iter().filter_map(StreamState::deadline_ns).min()
    }

    /// The bytes on the heap that unfinished records take.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.streams.iter().map(StreamState::held_bytes).sum()
    }

    /// Reads whole lines from `buffer`, whose first byte is at [`position`](Self::position). `now_ns` is the time of any clock
    /// that does not go back.
    pub fn feed(
        &mut self,
        workspace: &mut Workspace,
        buffer: &[u8],
        now_ns: u64,
        out: &mut dyn Output,
    ) -> Fed {
        let consumed_before = self.position;
        let stop = self.advance(workspace, buffer, false, now_ns, out);
        self.fed(workspace, consumed_before, stop)
    }

    /// Reads the last bytes of a file that will not grow: its last line needs no end, and unfinished records end. With
    /// [`Stop::End`], nothing is left.
    pub fn finish(
        &mut self,
        workspace: &mut Workspace,
        buffer: &[u8],
        now_ns: u64,
        out: &mut dyn Output,
    ) -> Fed {
        let consumed_before = self.position;
        let mut stop = self.advance(workspace, buffer, true, now_ns, out);
        if stop == Stop::End {
            stop = self.end_records(workspace, true, now_ns, out);
        }
        self.fed(workspace, consumed_before, stop)
    }

    /// Ends unfinished records of which the rest did not come in time.
    pub fn flush(&mut self, workspace: &mut Workspace, now_ns: u64, out: &mut dyn Output) -> Stop {
        self.end_records(workspace, false, now_ns, out)
    }

    fn fed(&mut self, workspace: &mut Workspace, consumed_before: u64, stop: Stop) -> Fed {
        for stream in &mut self.streams {
            stream.shrink();
        }
        workspace.shrink();
        let consumed = self.position.saturating_sub(consumed_before);
        Fed { consumed: usize::try_from(consumed).unwrap_or(usize::MAX), stop }
    }

    fn end_records(
        &mut self,
        workspace: &mut Workspace,
        is_last: bool,
        now_ns: u64,
        out: &mut dyn Output,
    ) -> Stop {
        let Workspace { counts, repaired, .. } = workspace;
        let mut context = Context { settings: &self.settings, counts, repaired, out, now_ns };
        for (state, stream) in self.streams.iter_mut().zip(Stream::ALL) {
            if let Err(stop) = state.flush(stream, is_last, &mut context) {
                return stop;
            }
        }
        Stop::End
    }

    fn advance(
        &mut self,
        workspace: &mut Workspace,
        buffer: &[u8],
        is_last: bool,
        now_ns: u64,
        out: &mut dyn Output,
    ) -> Stop {
        let Some((mut rest, encoding)) = self.behind_mark(buffer, is_last) else { return Stop::End };
        while !rest.is_empty() {
            if self.skips_line {
                let (len, is_end) = framing::rest_of_line(rest, encoding);
                let len = if is_last && !is_end { rest.len() } else { len };
                self.skips_line = !is_end;
                self.pass(&mut rest, len);
                if !is_end {
                    break;
                }
                continue;
            }
            let limit = self.settings.frame_limit(self.format, encoding);
            let (line_len, len, is_long) = match framing::first_frame(rest, encoding, self.searched, limit) {
                Frame::Line { len, end_len } => (len - end_len, len, false),
                Frame::Long => (limit, limit, true),
                Frame::Partial if is_last => (rest.len(), rest.len(), false),
                Frame::Partial => {
                    self.searched = rest.len();
                    break;
                }
            };
            let line = rest.get(..line_len).unwrap_or_default();
            if let Err(stop) = self.line(workspace, line, encoding, !is_long, now_ns, out) {
                return stop;
            }
            self.skips_line = is_long;
            self.pass(&mut rest, len);
        }
        Stop::End
    }

    #[inline]
    fn pass(&mut self, rest: &mut &[u8], len: usize) {
        *rest = rest.get(len..).unwrap_or_default();
        self.position += len as u64;
        self.searched = 0;
    }

    /// The text behind a byte order mark, and the encoding; `None`: more bytes are needed to tell.
    #[inline]
    fn behind_mark<'a>(&mut self, buffer: &'a [u8], is_last: bool) -> Option<(&'a [u8], Encoding)> {
        if let Some(encoding) = self.encoding {
            return Some((buffer, encoding));
        }
        let mut rest = buffer;
        let mut encoding = self.settings.encoding;
        if self.position == 0 {
            match decode::byte_order_mark(buffer, encoding) {
                ByteOrderMark::Absent => {}
                ByteOrderMark::Unknown if is_last => {}
                ByteOrderMark::Unknown => return None,
                ByteOrderMark::Present(len, meant) => {
                    encoding = meant;
                    self.pass(&mut rest, len);
                }
            }
        }
        self.encoding = Some(encoding);
        Some((rest, encoding))
    }

    /// Takes the line at [`position`](Self::position). `is_whole`: its end was found.
    #[inline]
    fn line(
        &mut self,
        workspace: &mut Workspace,
        line: &[u8],
        encoding: Encoding,
        is_whole: bool,
        now_ns: u64,
        out: &mut dyn Output,
    ) -> Result<(), Stop> {
        let Workspace { counts, decoded, unescaped, repaired } = workspace;
        let (line, is_text) = decode::to_utf8(line, encoding, decoded);
        let format = match self.format {
            Some(format) => format,
            None => *self.format.insert(container::format_of(line, unescaped)),
        };
        let parsed = container::parse(line, format, unescaped);
        let is_malformed = parsed.is_none();
        let entry = parsed.unwrap_or(Entry::plain(line));
        let [none, stdout, stderr] = &mut self.streams;
        let state = match entry.stream {
            Stream::None => none,
            Stream::Stdout => stdout,
            Stream::Stderr => stderr,
        };
        if state.is_delivered(self.position) {
            return Ok(());
        }
        let mut context = Context { settings: &self.settings, counts, repaired, out, now_ns };
        state.take(&entry, self.position, is_whole, &mut context)?;
        counts.malformed += u64::from(is_malformed);
        counts.invalid_text += u64::from(!is_text && is_whole);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
