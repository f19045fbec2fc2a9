//! From OTLP's views to rows.

mod metrics;

use crate::json::Stack;
use crate::run::{NotTaken, Origins, texts::Texts};
use crate::{Commit, Error, Hour, Position, Pushed, Writer};
use tidegate_wire::otlp::{LogRecord, LogsRequest, Resource, Scope, Signal, Span, TracesRequest};

impl Writer {
    /// Takes all rows of a checked OTLP request, `raw` once decompressed. A sequence that is in the lake
    /// already is passed over. Profiles have no table: nothing of them is taken.
    ///
    /// `now_ns` is the time in nanoseconds since the Unix epoch, from which files are given their age.
    pub fn push_otlp(
        &mut self,
        position: &Position,
        signal: Signal,
        raw: &[u8],
        now_ns: u64,
    ) -> Result<Pushed, Error> {
        self.push_otlp_parts(position, &[(signal, raw)], now_ns)
    }

    /// The same of a batch that is said in several requests, each with its signal: all of it is in one commit.
    pub fn push_otlp_parts(
        &mut self,
        position: &Position,
        parts: &[(Signal, &[u8])],
        now_ns: u64,
    ) -> Result<Pushed, Error> {
        if self.is_failed() {
            return Err(Error::Failed);
        }
        if self.durable().is_some_and(|durable| position.sequence <= durable) {
            return Ok(Pushed::default());
        }
        let pushed = self.push_requests(position, parts, now_ns);
        self.fail(pushed)
    }

    fn push_requests(
        &mut self,
        position: &Position,
        parts: &[(Signal, &[u8])],
        now_ns: u64,
    ) -> Result<Pushed, Error> {
        let hour = Hour::of_ns(position.received_at_ns);
        let mut pushed = Pushed { commit: self.begin(position.sequence, hour, now_ns)?, ..Pushed::default() };
        for (signal, raw) in parts {
            match signal {
                Signal::Traces => self.push_traces(position, raw, &mut pushed)?,
                Signal::Logs => self.push_logs(position, raw, &mut pushed)?,
                Signal::Metrics => self.push_metrics(raw, &mut pushed)?,
                Signal::Profiles => {}
            }
        }
        pushed.commit = Commit::join(pushed.commit, self.end()?);
        Ok(pushed)
    }

    fn push_traces(&mut self, position: &Position, raw: &[u8], pushed: &mut Pushed) -> Result<(), Error> {
        let id = self.batch_id(position.sequence);
        let mut stack = Stack::new();
        for resource in TracesRequest::new(raw).resources() {
            for scope in resource.scopes() {
                let mut origin =
                    Origin::new(&resource.resource, resource.schema_url, &scope.scope, scope.schema_url);
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
        origin: &mut Origin<'_, 'a>,
        stack: &mut Stack<'a>,
        pushed: &mut Pushed,
    ) -> Result<(), Error> {
        self.take(pushed, |writer| {
            let run = &mut writer.spans;
            let scope = origin.scope(writer.emptied, &mut run.origins, &mut run.texts, stack)?;
            let batch = run.batch(id)?;
            run.add(span, scope, batch, stack).map(|()| 1)
        })
    }

    fn push_logs(&mut self, position: &Position, raw: &[u8], pushed: &mut Pushed) -> Result<(), Error> {
        let mut stack = Stack::new();
        for resource in LogsRequest::new(raw).resources() {
            for scope in resource.scopes() {
                let mut origin =
                    Origin::new(&resource.resource, resource.schema_url, &scope.scope, scope.schema_url);
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
        position: &Position,
        origin: &mut Origin<'_, 'a>,
        stack: &mut Stack<'a>,
        pushed: &mut Pushed,
    ) -> Result<(), Error> {
        let id = self.batch_id(position.sequence);
        self.take(pushed, |writer| {
            let run = &mut writer.logs;
            let scope = origin.scope(writer.emptied, &mut run.origins, &mut run.texts, stack)?;
            let batch = run.batch(id)?;
            run.add(record, position.received_at_ns, scope, batch, stack).map(|()| 1)
        })
    }
}

/// Where items come from, and the place that this has in the run.
struct Origin<'r, 'a> {
    resource: &'r Resource<'a>,
    resource_schema_url: &'a [u8],
    scope: &'r Scope<'a>,
    scope_schema_url: &'a [u8],
    /// How often runs had been emptied when it had that place.
    place: Option<(u64, u32)>,
}

impl<'r, 'a> Origin<'r, 'a> {
    fn new(
        resource: &'r Resource<'a>,
        resource_schema_url: &'a [u8],
        scope: &'r Scope<'a>,
        scope_schema_url: &'a [u8],
    ) -> Self {
        Origin { resource, resource_schema_url, scope, scope_schema_url, place: None }
    }

    /// Its place.
    fn scope(
        &mut self,
        emptied: u64,
        origins: &mut Origins,
        texts: &mut Texts,
        stack: &mut Stack<'a>,
    ) -> Result<u32, NotTaken> {
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
