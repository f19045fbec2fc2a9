//! Converts OTLP views to rows.

mod metrics;

use crate::gatherer::{Gatherer, Overflow};
use crate::json::Stack;
use crate::run::{Origins, RowRejection, texts::Texts};
use crate::{BatchPosition, BatchResult, Commit, Error, Hour, Writer};
use tidegate_wire::otlp::{LogRecord, LogsRequest, Resource, Scope, Signal, Span, TracesRequest};

impl Writer {
    /// Takes all rows of a checked OTLP request, `raw` once decompressed. A sequence that is in the lake
    /// already is passed over. Profiles have no table: nothing of them is taken.
    ///
    /// `now_ns` is the time in nanoseconds since the Unix epoch, from which files are given their age.
    pub fn push_otlp(
        &mut self,
        position: &BatchPosition,
        signal: Signal,
        raw: &[u8],
        now_ns: u64,
    ) -> Result<BatchResult, Error> {
        self.push_otlp_parts(position, &[(signal, raw)], now_ns)
    }

    /// The same of a batch that is said in several requests, each with its signal: all of it is in one commit.
    pub fn push_otlp_parts(
        &mut self,
        position: &BatchPosition,
        parts: &[(Signal, &[u8])],
        now_ns: u64,
    ) -> Result<BatchResult, Error> {
        let mut batch = self.batch(position, now_ns)?;
        for (signal, raw) in parts {
            batch.push_otlp(*signal, raw)?;
        }
        batch.end()
    }

    /// Begins a batch that comes piece by piece, so that no more than one of them need be held: all of them are in one
    /// commit. A sequence that is in the lake already is passed over.
    ///
    /// # Errors
    /// When the writer has failed.
    pub fn batch(&mut self, position: &BatchPosition, now_ns: u64) -> Result<BatchInParts<'_>, Error> {
        if self.is_failed() {
            return Err(Error::Failed);
        }
        let is_known = self.durable().is_some_and(|durable| position.sequence <= durable);
        let state = if is_known { BatchState::Known } else { BatchState::New };
        Ok(BatchInParts { writer: self, position: *position, now_ns, pushed: BatchResult::default(), state })
    }
}

impl<O: Overflow> Gatherer<O> {
    /// Adds the rows of a checked request. Profiles have no table.
    pub(crate) fn push_otlp(
        &mut self,
        signal: Signal,
        position: &BatchPosition,
        raw: &[u8],
        pushed: &mut BatchResult,
    ) -> Result<(), Error> {
        match signal {
            Signal::Traces => self.push_traces(position, raw, pushed),
            Signal::Logs => self.push_logs(position, raw, pushed),
            Signal::Metrics => self.push_metrics(raw, pushed),
            Signal::Profiles => Ok(()),
        }
    }

    fn push_traces(
        &mut self,
        position: &BatchPosition,
        raw: &[u8],
        pushed: &mut BatchResult,
    ) -> Result<(), Error> {
        let id = self.batch_id(position.sequence);
        let mut stack = Stack::new();
        for resource in TracesRequest::new(raw).resources() {
            for scope in resource.scopes() {
                let mut origin =
                    ItemOrigin::new(&resource.resource, resource.schema_url, &scope.scope, scope.schema_url);
                for span in scope.items() {
                    self.push_span(&span, id, &mut origin, &mut stack, pushed)?;
                }
            }
        }
        Ok(())
    }

    fn push_span<'a>(
        &mut self,
        span: &Span<'a>,
        id: [u8; 16],
        origin: &mut ItemOrigin<'_, 'a>,
        stack: &mut Stack<'a>,
        pushed: &mut BatchResult,
    ) -> Result<(), Error> {
        self.take(pushed, |rows| {
            let run = &mut rows.spans;
            let scope = origin.scope(rows.emptied, &mut run.origins, &mut run.texts, stack)?;
            let batch = run.batch(id)?;
            run.add(span, scope, batch, stack).map(|()| 1)
        })
    }

    fn push_logs(
        &mut self,
        position: &BatchPosition,
        raw: &[u8],
        pushed: &mut BatchResult,
    ) -> Result<(), Error> {
        let mut stack = Stack::new();
        for resource in LogsRequest::new(raw).resources() {
            for scope in resource.scopes() {
                let mut origin =
                    ItemOrigin::new(&resource.resource, resource.schema_url, &scope.scope, scope.schema_url);
                for record in scope.items() {
                    self.push_record(&record, position, &mut origin, &mut stack, pushed)?;
                }
            }
        }
        Ok(())
    }

    fn push_record<'a>(
        &mut self,
        record: &LogRecord<'a>,
        position: &BatchPosition,
        origin: &mut ItemOrigin<'_, 'a>,
        stack: &mut Stack<'a>,
        pushed: &mut BatchResult,
    ) -> Result<(), Error> {
        let id = self.batch_id(position.sequence);
        self.take(pushed, |rows| {
            let run = &mut rows.logs;
            let scope = origin.scope(rows.emptied, &mut run.origins, &mut run.texts, stack)?;
            let batch = run.batch(id)?;
            run.add(record, position.received_at_ns, scope, batch, stack).map(|()| 1)
        })
    }
}

/// A batch that is pushed piece by piece.
///
/// Unless it is [ended](Self::end), nothing of it becomes part of the lake: the writer counts as failed then, since what
/// was pushed cannot be told from the rest any more.
#[derive(Debug)]
pub struct BatchInParts<'w> {
    writer: &'w mut Writer,
    position: BatchPosition,
    now_ns: u64,
    pushed: BatchResult,
    state: BatchState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BatchState {
    /// It is in the lake.
    Known,
    /// Nothing of it was pushed yet.
    New,
    Begun,
    Ended,
}

impl BatchInParts<'_> {
    /// Takes all rows of a piece: a checked OTLP request, `raw` once decompressed. Profiles have no table: nothing of
    /// them is taken.
    ///
    /// # Errors
    /// When it cannot be written; the writer has failed then.
    pub fn push_otlp(&mut self, signal: Signal, raw: &[u8]) -> Result<(), Error> {
        if self.state == BatchState::Known {
            return Ok(());
        }
        let outcome = self.push_rows(signal, raw);
        self.writer.fail(outcome)
    }

    fn push_rows(&mut self, signal: Signal, raw: &[u8]) -> Result<(), Error> {
        let BatchInParts { writer, position, now_ns, pushed, state } = self;
        if *state == BatchState::New {
            let hour = Hour::of_ns(position.received_at_ns);
            pushed.commit = writer.begin(position.sequence, hour, *now_ns)?;
            *state = BatchState::Begun;
        }
        writer.rows.push_otlp(signal, position, raw, pushed)
    }

    /// Ends the batch, of which nothing more comes: what became of all of it.
    ///
    /// # Errors
    /// When it cannot be written; the writer has failed then.
    pub fn end(mut self) -> Result<BatchResult, Error> {
        let was = std::mem::replace(&mut self.state, BatchState::Ended);
        if was == BatchState::Begun {
            let commit = self.writer.end();
            let commit = self.writer.fail(commit)?;
            self.pushed.commit = Commit::join(self.pushed.commit.take(), commit);
        }
        Ok(std::mem::take(&mut self.pushed))
    }
}

impl Drop for BatchInParts<'_> {
    fn drop(&mut self) {
        if self.state == BatchState::Begun {
            drop(self.writer.fail::<()>(Err(Error::Failed)));
        }
    }
}

/// Where items come from, and the place that this has in the run.
struct ItemOrigin<'r, 'a> {
    resource: &'r Resource<'a>,
    resource_schema_url: &'a [u8],
    scope: &'r Scope<'a>,
    scope_schema_url: &'a [u8],
    /// How often runs had been emptied when it had that place.
    place: Option<(u64, u32)>,
}

impl<'r, 'a> ItemOrigin<'r, 'a> {
    fn new(
        resource: &'r Resource<'a>,
        resource_schema_url: &'a [u8],
        scope: &'r Scope<'a>,
        scope_schema_url: &'a [u8],
    ) -> Self {
        ItemOrigin { resource, resource_schema_url, scope, scope_schema_url, place: None }
    }

    /// Its place.
    fn scope(
        &mut self,
        emptied: u64,
        origins: &mut Origins,
        texts: &mut Texts,
        stack: &mut Stack<'a>,
    ) -> Result<u32, RowRejection> {
        if let Some((at, place)) = self.place
            && at == emptied
        {
            return Ok(place);
        }
        let resource = origins.resource(texts, self.resource, self.resource_schema_url, stack)?;
        let place = origins.scope(texts, resource, self.scope, self.scope_schema_url, stack)?;
        self.place = Some((emptied, place));
        Ok(place)
    }
}
