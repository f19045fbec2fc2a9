//! Elastic APM: the intake of its agents, version 2, their configuration, and what they ask first.
//!
//! Specification: <https://www.elastic.co/docs/solutions/observability/apm/apm-server/api>, and where that says less
//! than the server does, its source. A line is taken or refused by itself; what is taken of a request is journalled
//! as it came, or without the lines that were refused.

mod agents;
mod answer;
mod browser;
mod inspect;
mod refused_lines;
mod request_head;
mod rum;

pub use agents::{AgentSettings, BadSettings};

use crate::body::Received;
use crate::clock::now_ns;
use crate::http::{Answering, Destination, Exchange, HttpSource, Policy, Route};
use agents::Agents;
use answer::SHARED;
use browser::BrowserClient;
use inspect::{BodyVerdict, Content};
use request_head::{ApmEndpoint, BodyFormat, endpoint_of};
use rum::Rum;
use std::sync::Arc;
use tidegate_admission::{AnswerFormat, Gate, Permit, Rejection};
use tidegate_arena::Arena;
use tidegate_http1::{Body, Head, Reply};
use tidegate_journal::{Batch, Checkpoints, Meta, Protocol as Layout, Tenant};
use tidegate_ledger::{ItemRefusal, OpenRequest, Refusal, Signal as Booked, Source};
use tidegate_pool::Pool;

/// The source `elastic_apm`. Clones are the same source.
#[derive(Clone)]
pub struct ElasticApm {
    books: Source,
    arena: Arena,
    /// Where large bodies are checked.
    pool: Pool,
    limits: ApmLimits,
    agents: Agents,
    /// Limits for browsers, where they are heard.
    rum: Option<Arc<Rum>>,
    /// The agents accepted without credentials, if credentials are required.
    strangers: Option<AnonymousAgents>,
    /// The answer to those who ask who is there.
    root: &'static str,
}

/// The limits of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApmLimits {
    /// The most bytes of a body, as sent and when decompressed.
    pub max_body: usize,
    /// The longest line, in bytes.
    pub max_event: usize,
    /// Events a second that one address may send whose agent is in a browser; nothing where those are not heard.
    pub rum: Option<u32>,
}

/// Agents in browsers that are heard without credentials where others need them: by the names they give themselves.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AnonymousAgents(Arc<[String]>);

impl AnonymousAgents {
    /// Those of these names.
    pub fn new(agents: impl IntoIterator<Item = String>) -> AnonymousAgents {
        AnonymousAgents(agents.into_iter().collect())
    }
}

impl ElasticApm {
    /// A source that takes bodies within `limits`; large ones are checked by `pool`. Agents are told that this is APM
    /// Server of `version`, and what `settings` says for their service.
    ///
    /// # Errors
    /// When `settings` are more than can be told.
    pub fn new(
        books: Source,
        arena: Arena,
        pool: Pool,
        limits: ApmLimits,
        version: &str,
        settings: Vec<AgentSettings>,
    ) -> Result<ElasticApm, BadSettings> {
        let agents = Agents::new(settings)?;
        let rum = limits.rum.map(|rate| Arc::new(Rum::new(rate)));
        Ok(ElasticApm {
            books,
            arena,
            pool,
            limits,
            agents,
            rum,
            strangers: None,
            root: answer::root(version),
        })
    }

    /// Hears these agents in browsers without credentials, where browsers are heard at all.
    #[must_use]
    pub fn with_strangers(self, strangers: AnonymousAgents) -> ElasticApm {
        ElasticApm { strangers: Some(strangers).filter(|_| self.rum.is_some()), ..self }
    }

    /// The longest body that is received at `place`.
    fn max_received(&self, place: ApmEndpoint) -> usize {
        match place {
            ApmEndpoint::Intake | ApmEndpoint::RumIntake => self.limits.max_body,
            _ => agents::LONGEST_QUESTION,
        }
    }

    /// The answer to a request that is answered on its head alone.
    fn at_once(&self, form: &BodyFormat, head: &Head<'_>) -> Option<Reply> {
        match *form {
            BodyFormat::Root { json } => Some(answer::found(200, json, self.root)),
            BodyFormat::Preflight => Some(answer::preflight()),
            BodyFormat::Agent { json, known, is_asked_in_body: false, is_shared } => {
                Some(self.agents.told(agents::by_query(head.query()), known, json, is_shared))
            }
            _ => None,
        }
    }

    /// Answers a request whose body is complete.
    async fn receive(
        &self,
        gate: &Gate,
        passage: &Permit,
        open: OpenRequest,
        form: BodyFormat,
        body: Body,
    ) -> Reply {
        match form {
            BodyFormat::Events(events, browser) => {
                self.take((gate, passage), open, (events, browser), body.into()).await
            }
            BodyFormat::Agent { json, known, is_shared, .. } => {
                open.accept_empty(Booked::Events);
                self.agents.told(agents::by_body(&body), known, json, is_shared)
            }
            BodyFormat::Root { .. } | BodyFormat::Preflight => Reply::new(500),
        }
    }

    /// Checks a body and gives what can be used of it to the journal; answers when that is durable.
    async fn take(
        &self,
        (gate, passage): (&Gate, &Permit),
        open: OpenRequest,
        (form, browser): (request_head::Events, Option<BrowserClient>),
        body: Received,
    ) -> Reply {
        let protocol = form.protocol();
        match self.inspect((gate, passage), (form, browser), body).await {
            Ok(BodyVerdict::Useful(body, content)) => {
                self.keep((gate, passage), open, form, content, body).await
            }
            Ok(BodyVerdict::Useless(report)) => {
                Rejection::new(Refusal::Malformed, "none of its events can be taken").close(open);
                answer::reported(form, &report)
            }
            Err(refused) => {
                refused.close(open);
                form.marked(tidegate_admission::answer(refused, protocol))
            }
        }
    }

    async fn keep(
        &self,
        (gate, passage): (&Gate, &Permit),
        mut open: OpenRequest,
        form: request_head::Events,
        content: Content,
        body: Received,
    ) -> Reply {
        let Content { items, refused, raw_len, as_sent, encoding, report } = content;
        open.refuse_items(ItemRefusal::Malformed, refused);
        if let (Some(rum), Some(seat)) = (&self.rum, form.seat) {
            rum.count(seat, u64::from(items.all()));
        }
        if items.all() == 0 {
            open.accept_empty(Booked::Events);
        } else {
            let Received { window, range } = body;
            let counts = items.counts(as_sent as u64);
            let meta = Meta {
                tenant: Tenant::NONE,
                signal: items.signal(),
                protocol: Layout::Intake,
                encoding,
                items: items.all(),
                raw_len,
                received_at_ns: now_ns(),
            };
            let batch = Batch {
                meta,
                window,
                from: range.start,
                len: range.len(),
                checkpoints: Checkpoints::default(),
            };
            if let Err(refused) = gate.append(passage, open, counts, batch).await {
                return form.marked(tidegate_admission::answer(refused, form.protocol()));
            }
        }
        match report {
            None => answer::accepted(form, items.all()),
            Some(report) => answer::reported(form, &report),
        }
    }
}

impl HttpSource for Arc<ElasticApm> {
    fn books(&self) -> &Source {
        &self.books
    }

    fn destination(&self, head: &Head<'_>) -> Option<Destination> {
        let place = endpoint_of(head)?;
        let from_pages = place.is_of_browsers();
        let policy = Policy {
            from_pages,
            hears_strangers: from_pages && self.strangers.is_some(),
            // Agents ask before they show who they are, and are content to hear that somebody is there.
            greets_strangers: place == ApmEndpoint::Root,
            // A page is to see why it was refused.
            marks: from_pages.then_some(SHARED),
            ..Policy::POST
        };
        let route = request_head::form(place, head, self.rum.as_deref(), &self.arena)
            .map(|form| Route::Boxed(Box::new(Sent { source: Arc::clone(self), form })));
        Some(Destination { max_body: self.max_received(place), policy, route })
    }
}

/// A request.
struct Sent {
    source: Arc<ElasticApm>,
    form: BodyFormat,
}

impl Exchange for Sent {
    fn protocol(&self) -> AnswerFormat {
        self.form.protocol()
    }

    fn is_patient(&self) -> bool {
        self.form.is_patient()
    }

    fn of_stranger(&mut self) {
        self.form.mark_stranger();
    }

    fn at_once(&self, head: &Head<'_>) -> Option<Reply> {
        self.source.at_once(&self.form, head)
    }

    fn answer<'a>(
        self: Box<Self>,
        gate: &'a Gate,
        passage: &'a Permit,
        open: OpenRequest,
        body: Body,
    ) -> Answering<'a> {
        let Sent { source, form } = *self;
        Box::pin(async move { source.receive(gate, passage, open, form, body).await })
    }
}
