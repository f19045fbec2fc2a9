//! The lines of one stream of a file: parts are joined, lines grouped, records given to the output.

use crate::checkpoint::Delivered;
use crate::container::{Entry, Stream};
use crate::counts::Counts;
use crate::decode;
use crate::lines::Stop;
use crate::pending::Pending;
use crate::record::{Output, Record, Taken};
use crate::settings::{Boundary, Multiline, OnLongLine, Settings};

/// The state of one stream.
///
/// Invariant: a call that returns an error has changed nothing but for records that the output took, so the same line can be
/// given again.
#[derive(Debug)]
pub(crate) struct StreamState {
    /// Lines that begin before this offset are delivered.
    delivered: u64,
    /// Whether parts are skipped, up to the last of their line.
    skips_parts: bool,
    unfinished: Option<Box<Unfinished>>,
}

/// A part that waits for its end.
#[derive(Debug, Default)]
struct Unfinished {
    deadline_ns: u64,
    /// The parts of a container's line.
    line: Pending,
    /// The lines of a record.
    group: Pending,
}

/// All that a line needs on its way to the output.
pub(crate) struct Context<'a> {
    pub(crate) settings: &'a Settings,
    pub(crate) counts: &'a mut Counts,
    pub(crate) repaired: &'a mut String,
    pub(crate) out: &'a mut dyn Output,
    pub(crate) now_ns: u64,
}

/// A whole line, or what is left of it.
#[derive(Clone, Copy)]
struct Line<'a> {
    text: &'a [u8],
    time_ns: u64,
    offset: u64,
    is_cut: bool,
}

impl StreamState {
    pub(crate) fn new(delivered: Delivered) -> StreamState {
        StreamState { delivered: delivered.before, skips_parts: delivered.skips_parts, unfinished: None }
    }

    /// The delivered part, when all lines before `position` were read.
    pub(crate) fn delivered(&self, position: u64) -> Delivered {
        let first = self.unfinished.as_ref().and_then(|unfinished| unfinished.first());
        match first {
            Some(before) => Delivered { before, skips_parts: false },
            None => Delivered { before: self.delivered.max(position), skips_parts: self.skips_parts },
        }
    }

    /// When [`flush`](Self::flush) is due.
    pub(crate) fn deadline_ns(&self) -> Option<u64> {
        let unfinished = self.unfinished.as_ref()?;
        unfinished.first().map(|_| unfinished.deadline_ns)
    }

    /// Bytes on the heap.
    pub(crate) fn held_bytes(&self) -> usize {
        self.unfinished.as_ref().map_or(0, |unfinished| {
            size_of::<Unfinished>() + unfinished.line.text.capacity() + unfinished.group.text.capacity()
        })
    }

    /// Whether the line at `offset` is delivered.
    #[inline]
    pub(crate) fn is_delivered(&self, offset: u64) -> bool {
        offset < self.delivered
    }

    /// Gives back memory that nothing waits in.
    #[inline]
    pub(crate) fn shrink(&mut self) {
        if let Some(unfinished) = &mut self.unfinished {
            unfinished.line.shrink();
            unfinished.group.shrink();
            if unfinished.first().is_none() {
                self.unfinished = None;
            }
        }
    }

    /// Takes the message of the line at `offset`. `is_whole`: its end was found.
    #[inline]
    pub(crate) fn take(
        &mut self,
        entry: &Entry<'_>,
        offset: u64,
        is_whole: bool,
        context: &mut Context<'_>,
    ) -> Result<(), Stop> {
        if self.skips_parts {
            self.skips_parts = entry.is_partial;
            return Ok(());
        }
        if entry.is_partial || self.unfinished.as_ref().is_some_and(|unfinished| unfinished.line.is_active) {
            return self.part(entry, offset, is_whole, context);
        }
        match fit(entry.text, is_whole, context.settings) {
            Some((text, is_cut)) => {
                let line = Line { text, time_ns: entry.time_ns, offset, is_cut };
                self.line(line, entry.stream, context)
            }
            None => {
                context.counts.dropped += 1;
                Ok(())
            }
        }
    }

    /// Joins the part of a line to those before.
    fn part(
        &mut self,
        entry: &Entry<'_>,
        offset: u64,
        is_whole: bool,
        context: &mut Context<'_>,
    ) -> Result<(), Stop> {
        let unfinished = self.unfinished.get_or_insert_default();
        let pending = &mut unfinished.line;
        let before = pending.text.len();
        // One byte more than the longest line may be a `\r`.
        let room = context.settings.longest_line.saturating_add(1).saturating_sub(before);
        let (text, is_long) = match entry.text.get(..room) {
            Some(text) => (text, entry.text.len() > room),
            None => (entry.text, false),
        };
        pending.append([text, b""], context.out)?;
        if !pending.is_active {
            pending.offset = offset;
            pending.time_ns = entry.time_ns;
        }
        if entry.is_partial && !is_long {
            pending.is_active = true;
            unfinished.deadline_ns = context.now_ns.saturating_add(context.settings.partial_timeout_ns);
            return Ok(());
        }
        self.joined(entry.stream, is_whole && !is_long, context).inspect_err(|_| {
            if let Some(unfinished) = &mut self.unfinished {
                unfinished.line.text.truncate(before);
            }
        })?;
        self.skips_parts = entry.is_partial;
        Ok(())
    }

    /// The parts that are joined have become a line.
    fn joined(&mut self, stream: Stream, is_whole: bool, context: &mut Context<'_>) -> Result<(), Stop> {
        let Some(unfinished) = &mut self.unfinished else { return Ok(()) };
        let pending = &mut unfinished.line;
        // Taken out while the group may change.
        let joined = std::mem::take(&mut pending.text);
        let (offset, time_ns) = (pending.offset, pending.time_ns);
        let taken = match fit(&joined, is_whole, context.settings) {
            Some((text, is_cut)) => self.line(Line { text, time_ns, offset, is_cut }, stream, context),
            None => {
                context.counts.dropped += 1;
                Ok(())
            }
        };
        if let Some(unfinished) = &mut self.unfinished {
            unfinished.line.text = joined;
            if taken.is_ok() {
                unfinished.line.clear();
            }
        }
        taken
    }

    /// A line becomes a record, or part of one.
    #[inline]
    fn line(&mut self, line: Line<'_>, stream: Stream, context: &mut Context<'_>) -> Result<(), Stop> {
        match &context.settings.multiline {
            None => emit(line, stream, context),
            Some(multiline) => self.unfinished.get_or_insert_default().add(line, stream, multiline, context),
        }
    }

    /// Ends what waits, if it is due at `context.now_ns` or `is_last`.
    pub(crate) fn flush(
        &mut self,
        stream: Stream,
        is_last: bool,
        context: &mut Context<'_>,
    ) -> Result<(), Stop> {
        let Some(unfinished) = &self.unfinished else { return Ok(()) };
        if !is_last && unfinished.deadline_ns > context.now_ns {
            return Ok(());
        }
        if unfinished.line.is_active {
            self.joined(stream, true, context)?;
            context.counts.timed_out += u64::from(!is_last);
        }
        if let Some(unfinished) = &mut self.unfinished {
            unfinished.end_group(stream, context)?;
        }
        self.unfinished = None;
        Ok(())
    }
}

impl Unfinished {
    /// The offset of the first line that waits.
    fn first(&self) -> Option<u64> {
        let first = if self.group.is_active { &self.group } else { &self.line };
        first.is_active.then_some(first.offset)
    }

    /// Adds a line to the group, or begins another with it.
    fn add(
        &mut self,
        line: Line<'_>,
        stream: Stream,
        multiline: &Multiline,
        context: &mut Context<'_>,
    ) -> Result<(), Stop> {
        let (is_start, is_end) = match &multiline.boundary {
            Boundary::Start(pattern) => (pattern.is_match(line.text), false),
            Boundary::End(pattern) => (false, pattern.is_match(line.text)),
        };
        if self.group.is_active {
            let is_long = self.group.text.len() + 1 + line.text.len() > multiline.longest;
            if is_start || is_long {
                self.end_group(stream, context)?;
                context.counts.split += u64::from(!is_start);
            }
        }
        if is_end && !self.group.is_active {
            return emit(line, stream, context);
        }
        let group = &mut self.group;
        let (before, was_cut) = (group.text.len(), group.is_cut);
        group.append([if group.is_active { b"\n" } else { b"" }, line.text], context.out)?;
        group.is_cut |= line.is_cut;
        if !group.is_active {
            group.is_active = true;
            group.offset = line.offset;
            group.time_ns = line.time_ns;
        }
        self.deadline_ns = context.now_ns.saturating_add(multiline.timeout_ns);
        if is_end {
            self.end_group(stream, context).inspect_err(|_| {
                self.group.text.truncate(before);
                self.group.is_cut = was_cut;
            })?;
        }
        Ok(())
    }

    /// Gives the group to the output, if there is one.
    fn end_group(&mut self, stream: Stream, context: &mut Context<'_>) -> Result<(), Stop> {
        let group = &mut self.group;
        if group.is_active {
            let line = Line {
                text: &group.text,
                time_ns: group.time_ns,
                offset: group.offset,
                is_cut: group.is_cut,
            };
            emit(line, stream, context)?;
            group.clear();
        }
        Ok(())
    }
}

/// The rest of a line, and whether it was cut; `None`: it is dropped. `is_whole`: its end was found.
#[inline]
fn fit<'a>(text: &'a [u8], is_whole: bool, settings: &Settings) -> Option<(&'a [u8], bool)> {
    let text = if is_whole { text.strip_suffix(b"\r").unwrap_or(text) } else { text };
    if is_whole && text.len() <= settings.longest_line {
        return Some((text, false));
    }
    match settings.on_long_line {
        OnLongLine::Cut => Some((decode::cut(text, settings.longest_line), true)),
        OnLongLine::Drop => None,
    }
}

/// Gives a record to the output.
#[inline]
fn emit(line: Line<'_>, stream: Stream, context: &mut Context<'_>) -> Result<(), Stop> {
    let (text, was_text) = decode::text_of(line.text, context.repaired);
    let Line { time_ns, offset, is_cut, .. } = line;
    match context.out.record(&Record { text, time_ns, stream, offset, is_cut }) {
        Taken::Full => Err(Stop::Full),
        Taken::Yes => {
            context.counts.cut += u64::from(is_cut);
            context.counts.invalid_text += u64::from(!was_text);
            Ok(())
        }
    }
}
