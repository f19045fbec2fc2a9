//! Makes documents from a body, as many at a time as there is room for: the translation resumes where it stopped, so
//! memory is bounded by the room and not by the body.
//!
//! | body | resumes at |
//! |---|---|
//! | `_bulk` | the offset of an item |
//! | OTLP, intake | a [`DocumentPosition`] of the translation |
//! | remote write | a part of about [`CHUNK`] bytes translated to OTLP, and a place in that |

use super::documents::{MAX_ID_BYTES, document_signal};
use super::settings::Settings;
use crate::batch::{BatchBody, DropReason};
use crate::egress_budget::{BudgetError, Charged, EgressBudget};
use std::fmt::Write as _;
use tidegate_arena::Window;
use tidegate_elastic::documents::{self, DocumentBuffer, DocumentOutput as _, DocumentPosition};
use tidegate_journal::Protocol;
use tidegate_wire::bulk::{Field, Kind, checked_items};
use tidegate_wire::otlp as wire;
use tidegate_wire::otlp::prometheus::{
    OtlpTranslation, RemoteWritePieces, RemoteWritePlace, pieces_of_remote_write,
};
use tidegate_wire::output::SliceOutput;
use tidegate_wire::remote_write::Request;

/// How many bytes of documents are made before other tasks run.
const TURN: usize = 128 << 10;
/// Documents of a long body are made in turns of this part of its length: each turn skips the items before it, so a fixed
/// length would make the time quadratic.
const TURNS: usize = 16;
/// The length of the parts in which remote write is translated to OTLP; a single point may be longer.
pub(super) const CHUNK: usize = 64 << 10;

/// A body's documents.
pub(super) struct DocumentSource<'a> {
    raw: &'a [u8],
    body: &'a BatchBody,
    /// The prefix of `_id`s.
    prefix: String,
    tenant: &'a str,
    settings: &'a Settings,
    room: &'a EgressBudget,
    request: Option<Request<'a>>,
    mark: SourcePosition,
    /// The current part of remote write, translated to OTLP.
    chunk: Option<Charged<Window>>,
    /// The series behind that part, or from the mark on where there is none.
    series: Option<Box<RemoteWritePieces<'a>>>,
    /// There is nothing more.
    ended: bool,
}

/// A position in a source. The documents behind it are the same whenever the source resumes there.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SourcePosition {
    /// In the body, or in the current part of remote write.
    place: DocumentPosition,
    /// The offset in a `_bulk`, and the number of items before it.
    offset: usize,
    number: u64,
    /// Where the current part of remote write begins, and the number of parts before it.
    cursor: RemoteWritePlace,
    chunks: u64,
}

/// The result of [`DocumentSource::fill`].
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FillResult {
    pub(super) documents: u64,
    /// Items in those.
    pub(super) items: u64,
    /// Items without a document, where the translation counts them.
    pub(super) left_out: u64,
    /// The body has no more documents.
    pub(super) ended: bool,
}

/// Why no document was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FillError {
    /// The next one does not fit.
    Full,
    /// There is no memory for an intermediate form.
    Room(BudgetError),
    /// The body is not what its record says.
    Damaged,
}

impl From<FillError> for DropReason {
    fn from(unfilled: FillError) -> DropReason {
        match unfilled {
            FillError::Full => DropReason::Room(BudgetError::WithoutTurn),
            FillError::Room(no_room) => DropReason::Room(no_room),
            FillError::Damaged => DropReason::Damaged,
        }
    }
}

impl<'a> DocumentSource<'a> {
    /// Heap bytes of one, besides the budget.
    pub(super) const BYTES: usize = size_of::<RemoteWritePieces<'_>>();

    /// Documents of the decoded body `raw`; of remote write, `request` is the view of it.
    pub(super) fn new(
        raw: &'a [u8],
        body: &'a BatchBody,
        (prefix, tenant): (String, &'a str),
        request: Option<Request<'a>>,
        (settings, room): (&'a Settings, &'a EgressBudget),
    ) -> DocumentSource<'a> {
        let (mark, series) = (SourcePosition::default(), request.map(pieces_of_remote_write).map(Box::new));
        DocumentSource {
            raw,
            body,
            prefix,
            tenant,
            settings,
            room,
            request,
            mark,
            chunk: None,
            series,
            ended: false,
        }
    }

    /// The decoded body.
    pub(super) fn raw(&self) -> &'a [u8] {
        self.raw
    }

    pub(super) fn mark(&self) -> SourcePosition {
        self.mark
    }

    /// Resumes at `mark`.
    pub(super) fn go_to(&mut self, mark: SourcePosition) {
        (self.mark, self.chunk) = (mark, None);
        self.series = self.request.map(pieces_of_remote_write).map(Box::new);
        if let Some(series) = &mut self.series {
            series.skip_to(mark.cursor);
        }
    }

    /// Whether items without a document are counted one by one; otherwise they are all that is in no document.
    pub(super) fn counts(&self) -> bool {
        matches!(self.body.protocol, Protocol::Otlp | Protocol::Intake)
    }

    /// Bytes of the room that it holds.
    pub(super) fn bytes(&self) -> usize {
        self.chunk.as_ref().map_or(0, Charged::bytes)
    }

    /// Appends documents to `out` as far as they fit, but at most one turn of them.
    pub(super) async fn fill(&mut self, out: &mut Window) -> Result<FillResult, FillError> {
        if self.ended {
            return Ok(FillResult { ended: true, ..FillResult::default() });
        }
        let filled = match (self.body.protocol, document_signal(self.body)) {
            (Protocol::Bulk, _) => self.items(out)?,
            (Protocol::RemoteWrite1 | Protocol::RemoteWrite2, Some(signal)) => {
                self.series(signal, out).await?
            }
            (Protocol::Intake, _) => self.translated(None, out)?,
            (_, Some(signal)) => self.translated(Some(signal), out)?,
            (_, None) => FillResult { left_out: self.body.items, ended: true, ..FillResult::default() },
        };
        self.ended = filled.ended;
        Ok(filled)
    }

    /// Makes the intermediate form of the next document, so that it has its memory before the document does.
    pub(super) async fn prepare(&mut self) -> Result<(), FillError> {
        if self.series.is_some() && self.chunk.is_none() && !self.ended {
            self.chunk = Some(self.chunk().await?);
        }
        Ok(())
    }

    /// Skips what is too large: the next document, or all that is left of its item.
    pub(super) fn skip(&mut self) {
        match (self.body.protocol, &mut self.series, &self.chunk) {
            (Protocol::Bulk, ..) => {
                let rest = self.raw.get(self.mark.offset..).unwrap_or_default();
                let Some(Ok(item)) = checked_items(rest).next() else { return };
                self.mark.offset = item.bytes.as_ptr().addr() + item.bytes.len() - self.raw.as_ptr().addr();
                self.mark.number += 1;
            }
            (_, Some(series), None) => {
                series.skip_value(&mut OtlpTranslation::default());
                self.mark.cursor = series.position();
            }
            (Protocol::Intake, ..) => {
                let kinds = self.body.taken.kinds();
                self.mark.place = documents::past_event(kinds, self.raw, self.mark.place);
            }
            _ => {
                self.mark.place = match document_signal(self.body) {
                    Some(wire::Signal::Metrics) => self.mark.place.past_document(),
                    _ => self.mark.place.past_item(),
                };
            }
        }
    }

    /// The next items of a `_bulk`, with an `_id` where they have none and shall have one.
    fn items(&mut self, out: &mut Window) -> Result<FillResult, FillError> {
        let rest = self.raw.get(self.mark.offset..).unwrap_or_default();
        let mut items = checked_items(rest);
        let mut filled = FillResult::default();
        let turn = out.len() + TURN;
        let mut id = String::with_capacity(MAX_ID_BYTES);
        while out.len() < turn {
            let Some(item) = items.next() else {
                filled.ended = true;
                break;
            };
            let item = item.map_err(|_| FillError::Damaged)?;
            id.clear();
            let creates = matches!(item.action.kind, Kind::Index | Kind::Create);
            if self.settings.ids && creates && !item.action.has(Field::Id) {
                // Writing to a string does not fail.
                let _ = write!(id, "\"_id\":\"{}-{:x}\"", self.prefix, self.mark.number);
            }
            if out.spare() < item.written_len(id.len() + 1) {
                if filled.documents == 0 {
                    return Err(FillError::Full);
                }
                break;
            }
            let mut output = SliceOutput::new(out.spare_mut());
            let fields: &[&[u8]] = if self.settings.ids { &[id.as_bytes()] } else { &[] };
            item.write(fields, &mut output).map_err(|_| FillError::Damaged)?;
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
    fn translated(
        &mut self,
        signal: Option<wire::Signal>,
        out: &mut Window,
    ) -> Result<FillResult, FillError> {
        let written = self.write(signal, self.raw, &self.prefix, out)?;
        self.mark.place = written.next.unwrap_or(self.mark.place);
        Ok(FillResult {
            documents: written.documents,
            items: written.items,
            left_out: written.untranslatable.items,
            ended: written.next.is_none(),
        })
    }

    /// The next documents of remote write.
    async fn series(&mut self, signal: wire::Signal, out: &mut Window) -> Result<FillResult, FillError> {
        let chunk = match self.chunk.take() {
            Some(chunk) => chunk,
            None => self.chunk().await?,
        };
        // The part counts its items from its beginning.
        let prefix = format!("{}-{:x}", self.prefix, self.mark.chunks);
        let written = self.write(Some(signal), &chunk, &prefix, out);
        self.chunk = Some(chunk);
        let written = written?;
        let mut filled =
            FillResult { documents: written.documents, items: written.items, ..FillResult::default() };
        let rest = self.series.as_mut().and_then(|series| (!series.is_done()).then_some(series));
        match (written.next, rest) {
            (Some(place), _) => self.mark.place = place,
            (None, Some(rest)) => {
                self.chunk = None;
                self.mark = SourcePosition {
                    cursor: rest.position(),
                    chunks: self.mark.chunks + 1,
                    ..SourcePosition::default()
                };
            }
            (None, None) => filled.ended = true,
        }
        Ok(filled)
    }

    /// Translates the next part of remote write to OTLP. Where it ends depends on the body alone.
    async fn chunk(&mut self) -> Result<Charged<Window>, FillError> {
        let series = self.series.as_mut().ok_or(FillError::Damaged)?;
        let mut len = 2 * CHUNK;
        loop {
            let mut window = self.room.window(len).await.map_err(FillError::Room)?;
            if let Ok(done) = series.write(window.spare_mut(), CHUNK) {
                window.advance(done.bytes);
                return Ok(window);
            }
            drop(window);
            // At last all that is left.
            let left = self.room.left();
            if len >= left {
                return Err(FillError::Room(BudgetError::WithoutTurn));
            }
            len = len.saturating_mul(2).min(left);
            tokio::task::yield_now().await;
        }
    }

    /// Writes documents from the place on: one turn of them, or a single longer one.
    fn write(
        &self,
        signal: Option<wire::Signal>,
        raw: &[u8],
        prefix: &str,
        out: &mut Window,
    ) -> Result<documents::WriteResult, FillError> {
        let settings = documents::DocumentSettings {
            mapping: self.settings.mapping,
            flavour: self.settings.flavour,
            dataset: &self.settings.dataset,
            namespace: &self.settings.namespace,
            metric_ids: self.settings.metric_ids,
            index: self.settings.index.as_ref(),
            tenant: self.tenant,
            received: self.body.received_at_ns,
        };
        let mut turn = TURN.max(raw.len() / TURNS);
        loop {
            let space = out.spare_mut();
            let end = turn.min(space.len());
            let is_all = end == space.len();
            let mut page = DocumentBuffer::new(space.get_mut(..end).unwrap_or_default());
            let place = self.mark.place;
            let written = match signal {
                None => {
                    let kinds = self.body.taken.kinds();
                    documents::from_intake_of(kinds, raw, place, prefix, &settings, &mut page)
                }
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
                Err(_) => return Err(FillError::Full),
            }
        }
    }
}
