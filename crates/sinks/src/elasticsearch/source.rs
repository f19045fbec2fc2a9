//! A body's documents, as many at a time as there is room for: the translation goes on where it was, so the room bounds
//! the memory and not the body.
//!
//! | body | what it goes by |
//! |---|---|
//! | `_bulk` | its items |
//! | OTLP, intake | the [`Place`] of the translation |
//! | remote write | pieces of about [`CHUNK`] bytes said in OTLP, and the place in that |

use super::documents::{ID, spoken};
use super::settings::Settings;
use crate::batch::{Body, Why};
use crate::room::{Held, NoRoom, Room};
use std::fmt::Write as _;
use tidegate_arena::Window;
use tidegate_elastic::documents::{self, Page, Place, Sheet as _};
use tidegate_journal::Protocol;
use tidegate_wire::bulk::{Field, Kind, checked};
use tidegate_wire::otlp as wire;
use tidegate_wire::otlp::prometheus::{RemoteWritePlace, Reversed, pieces_of_remote_write};
use tidegate_wire::output::{Full, SliceOutput};
use tidegate_wire::remote_write::Request;

/// How much is made before others get their turn.
const TURN: usize = 128 << 10;
/// How much remote write is said in OTLP at a time, beside a point that is longer.
pub(super) const CHUNK: usize = 64 << 10;

/// A body's documents.
pub(super) struct Source<'a> {
    raw: &'a [u8],
    body: &'a Body,
    /// What `_id`s begin with.
    prefix: String,
    tenant: &'a str,
    settings: &'a Settings,
    room: &'a Room,
    request: Option<Request<'a>>,
    mark: Mark,
    chunk: Option<Chunk>,
    /// There is nothing more.
    ended: bool,
}

/// How far a source has come. The documents behind it are the same whenever it goes on there.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mark {
    /// In the body, and in a part of it that is said in OTLP.
    place: Place,
    /// Bytes and items of a `_bulk` that are done.
    offset: usize,
    number: u64,
    /// The part of remote write at hand, and how many are before it.
    cursor: RemoteWritePlace,
    chunks: u64,
}

/// A part of remote write, said in OTLP.
struct Chunk {
    window: Held<Window>,
    /// Where the next one begins, if there is one.
    next: Option<RemoteWritePlace>,
}

/// What was made.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Filled {
    pub(super) documents: u64,
    /// Items that those say.
    pub(super) items: u64,
    /// Items that no document says, as far as the translation counts them.
    pub(super) left_out: u64,
    /// That was all.
    pub(super) ended: bool,
}

/// Why no document was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unfilled {
    /// The next one is longer than what is spare.
    Full,
    /// There is no room for what is needed on the way to it.
    Room(NoRoom),
    /// The body is not what its record says.
    Damaged,
}

impl From<Unfilled> for Why {
    fn from(unfilled: Unfilled) -> Why {
        match unfilled {
            Unfilled::Full => Why::Room(NoRoom::WithoutTurn),
            Unfilled::Room(no_room) => Why::Room(no_room),
            Unfilled::Damaged => Why::Damaged,
        }
    }
}

impl<'a> Source<'a> {
    /// Of the decoded body `raw`, which is seen through `request` where it is remote write.
    pub(super) fn new(
        raw: &'a [u8],
        body: &'a Body,
        (prefix, tenant): (String, &'a str),
        request: Option<Request<'a>>,
        (settings, room): (&'a Settings, &'a Room),
    ) -> Source<'a> {
        let mark = Mark::default();
        Source { raw, body, prefix, tenant, settings, room, request, mark, chunk: None, ended: false }
    }

    pub(super) fn mark(&self) -> Mark {
        self.mark
    }

    /// Goes on there.
    pub(super) fn go_to(&mut self, mark: Mark) {
        (self.mark, self.chunk) = (mark, None);
    }

    /// Whether items without documents are counted on the way; otherwise they are what is not said.
    pub(super) fn counts(&self) -> bool {
        matches!(self.body.protocol, Protocol::Otlp | Protocol::Intake)
    }

    /// Bytes of the room that it keeps.
    pub(super) fn bytes(&self) -> usize {
        self.chunk.as_ref().map_or(0, |chunk| chunk.window.bytes())
    }

    /// Appends documents to `out`, as far as there is room for them, but no more than others can wait for.
    pub(super) async fn fill(&mut self, out: &mut Window) -> Result<Filled, Unfilled> {
        if self.ended {
            return Ok(Filled { ended: true, ..Filled::default() });
        }
        let filled = match (self.body.protocol, spoken(self.body)) {
            (Protocol::Bulk, _) => self.items(out)?,
            (Protocol::RemoteWrite1 | Protocol::RemoteWrite2, Some(signal)) => {
                self.series(signal, out).await?
            }
            (Protocol::Intake, _) => self.translated(None, out)?,
            (_, Some(signal)) => self.translated(Some(signal), out)?,
            (_, None) => Filled { left_out: self.body.items, ended: true, ..Filled::default() },
        };
        self.ended = filled.ended;
        Ok(filled)
    }

    /// Makes what it needs on the way to the next document, so that there is room for that at least.
    pub(super) async fn prepare(&mut self) -> Result<(), Unfilled> {
        if self.request.is_some() && self.chunk.is_none() && !self.ended {
            self.chunk = Some(self.chunk().await?);
        }
        Ok(())
    }

    /// Passes over what fits nowhere: a document, or all that is left of the item that it is of.
    pub(super) fn skip(&mut self) {
        match (self.body.protocol, self.request, &self.chunk) {
            (Protocol::Bulk, _, _) => {
                let rest = self.raw.get(self.mark.offset..).unwrap_or_default();
                let Some(Ok(item)) = checked(rest).next() else { return };
                self.mark.offset = item.bytes.as_ptr().addr() + item.bytes.len() - self.raw.as_ptr().addr();
                self.mark.number += 1;
            }
            (_, Some(request), None) => {
                let mut pieces = pieces_of_remote_write(request);
                pieces.skip_to(self.mark.cursor);
                pieces.pass_over(&mut Reversed::default());
                self.mark.cursor = pieces.place();
            }
            (Protocol::Intake, _, _) => self.mark.place = self.mark.place.past_item(),
            _ => {
                self.mark.place = match spoken(self.body) {
                    Some(wire::Signal::Metrics) => self.mark.place.past_document(),
                    _ => self.mark.place.past_item(),
                };
            }
        }
    }

    /// The next items of a `_bulk`, with an `_id` where they have none and shall have one.
    fn items(&mut self, out: &mut Window) -> Result<Filled, Unfilled> {
        let rest = self.raw.get(self.mark.offset..).unwrap_or_default();
        let mut items = checked(rest);
        let mut filled = Filled::default();
        let turn = out.len() + TURN;
        let mut id = String::with_capacity(ID);
        while out.len() < turn {
            let Some(item) = items.next() else {
                filled.ended = true;
                break;
            };
            let item = item.map_err(|_| Unfilled::Damaged)?;
            id.clear();
            let creates = matches!(item.action.kind, Kind::Index | Kind::Create);
            if self.settings.ids && creates && !item.action.has(Field::Id) {
                // Writing to a string does not fail.
                let _ = write!(id, "\"_id\":\"{}-{:x}\"", self.prefix, self.mark.number);
            }
            if out.spare() < item.written_len(id.len() + 1) {
                if filled.documents == 0 {
                    return Err(Unfilled::Full);
                }
                break;
            }
            let mut output = SliceOutput::new(out.spare_mut());
            let fields: &[&[u8]] = if self.settings.ids { &[id.as_bytes()] } else { &[] };
            item.write(fields, &mut output).map_err(|_| Unfilled::Damaged)?;
            let len = output.len();
            out.advance(len);
            filled.documents += 1;
            self.mark.number += 1;
            self.mark.offset = item.bytes.as_ptr().addr() + item.bytes.len() - self.raw.as_ptr().addr();
        }
        filled.items = filled.documents;
        Ok(filled)
    }

    /// The next documents of a body of OTLP or of intake events.
    fn translated(&mut self, signal: Option<wire::Signal>, out: &mut Window) -> Result<Filled, Unfilled> {
        let written = self.write(signal, self.raw, &self.prefix, out)?;
        self.mark.place = written.next.unwrap_or(self.mark.place);
        Ok(Filled {
            documents: written.documents,
            items: written.items,
            left_out: written.untranslatable.items,
            ended: written.next.is_none(),
        })
    }

    /// The next documents of remote write.
    async fn series(&mut self, signal: wire::Signal, out: &mut Window) -> Result<Filled, Unfilled> {
        let chunk = match self.chunk.take() {
            Some(chunk) => chunk,
            None => self.chunk().await?,
        };
        // The part counts its items from its beginning.
        let prefix = format!("{}-{:x}", self.prefix, self.mark.chunks);
        let written = self.write(Some(signal), &chunk.window, &prefix, out);
        let next = chunk.next;
        self.chunk = Some(chunk);
        let written = written?;
        let mut filled = Filled { documents: written.documents, items: written.items, ..Filled::default() };
        match (written.next, next) {
            (Some(place), _) => self.mark.place = place,
            (None, Some(cursor)) => {
                self.chunk = None;
                self.mark = Mark { cursor, chunks: self.mark.chunks + 1, ..Mark::default() };
            }
            (None, None) => filled.ended = true,
        }
        Ok(filled)
    }

    /// Says the next part of remote write in OTLP.
    async fn chunk(&self) -> Result<Chunk, Unfilled> {
        let request = self.request.ok_or(Unfilled::Damaged)?;
        let mut len = 2 * CHUNK;
        loop {
            let mut window = self.room.window(len).await.map_err(Unfilled::Room)?;
            match piece_of(request, self.mark.cursor, window.spare_mut()) {
                Ok((bytes, next)) => {
                    window.advance(bytes);
                    return Ok(Chunk { window, next });
                }
                Err(_) => {
                    drop(window);
                    // As much as there is, at last.
                    let left = self.room.left();
                    if len >= left {
                        return Err(Unfilled::Room(NoRoom::WithoutTurn));
                    }
                    len = len.saturating_mul(2).min(left);
                }
            }
            tokio::task::yield_now().await;
        }
    }

    /// Writes documents from the place on: what others can wait for, or one that is longer.
    fn write(
        &self,
        signal: Option<wire::Signal>,
        raw: &[u8],
        prefix: &str,
        out: &mut Window,
    ) -> Result<documents::Written, Unfilled> {
        let settings = documents::Settings {
            mapping: self.settings.mapping,
            flavour: self.settings.flavour,
            dataset: &self.settings.dataset,
            namespace: &self.settings.namespace,
            metric_ids: self.settings.metric_ids,
            index: self.settings.index.as_ref(),
            tenant: self.tenant,
            received: self.body.received_at_ns,
        };
        let mut turn = TURN;
        loop {
            let space = out.spare_mut();
            let end = turn.min(space.len());
            let is_all = end == space.len();
            let mut page = Page::new(space.get_mut(..end).unwrap_or_default());
            let place = self.mark.place;
            let written = match signal {
                None => documents::from_intake(raw, place, prefix, &settings, &mut page),
                Some(signal) => documents::from_otlp(signal, raw, place, prefix, &settings, &mut page),
            };
            let len = page.len();
            match written {
                Ok(written) => {
                    out.advance(len);
                    return Ok(written);
                }
                // The next document is longer than that.
                Err(_) if !is_all => turn = turn.saturating_mul(2),
                Err(_) => return Err(Unfilled::Full),
            }
        }
    }
}

/// Says a part of remote write in OTLP: how long that is, and where the next begins. Its end depends on the body alone.
fn piece_of(
    request: Request<'_>,
    from: RemoteWritePlace,
    space: &mut [u8],
) -> Result<(usize, Option<RemoteWritePlace>), Full> {
    let mut pieces = pieces_of_remote_write(request);
    pieces.skip_to(from);
    let done = pieces.write(space, CHUNK)?;
    let next = if pieces.is_done() { None } else { Some(pieces.place()) };
    if done.bytes == 0 && next == Some(from) { Err(Full) } else { Ok((done.bytes, next)) }
}
