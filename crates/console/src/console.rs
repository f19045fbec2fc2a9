//! The service behind the admin port: which path leads where, and the answers.

use crate::admin_routes::{AdminRequest, AdminRoutes, MountedRoute};
use crate::app_routes::{AppRoute, PageToken};
use crate::files::FilesQuery;
use crate::gateway::{ForgetError, Gateway};
use crate::history::History;
use crate::live::{FRAMES, LONGEST_FRAME, LiveStatus, MOST_VIEWERS, VIEWER};
use crate::page::Page;
use crate::page_buffer::{FIRST, PageBuffer, PageError};
use crate::search::{SearchRoute, SearchTurns};
use crate::status::Status;
use crate::status_format::StatusFormat;
use crate::trial::{LONGEST_ITEMS, LONGEST_STEPS};
use crate::trial_response::{FormClaim, TrialRoute, TrialTurns};
use crate::{html, tap_response, text};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tidegate_arena::{Arena, Floors, PAGE, Reservation, Share, Window};
use tidegate_http1::{Admitted, Body, Head, Refusal, RefusalContext, Reply, Service, Settings};
use tidegate_tap::TapFilter;

/// The pages.
pub struct Console {
    gateway: Arc<dyn Gateway>,
    arena: Arena,
    /// Held while an answer is made, so that there is one snapshot at a time however many threads ask.
    making: Arc<Mutex<()>>,
    /// The status once a second, for open pages.
    live: Arc<LiveStatus>,
    /// Allows changes to a page that can read it.
    token: PageToken,
    /// Only those with credentials get this far.
    has_credentials: bool,
    /// There is one trial at a time.
    trials: TrialTurns,
    /// There is one search at a time.
    searches: SearchTurns,
    /// Held while files are collected and shown, so that there is one such answer at a time.
    listing_files: tokio::sync::Mutex<()>,
    /// Of other parts of the gateway.
    routes: Vec<Arc<dyn AdminRoutes>>,
}

/// The most bytes of an answer.
pub const LONGEST_ANSWER: usize = 512 << 10;

/// The page that a request addresses.
pub const PATHS: [&str; 10] = [
    "/",
    "/status",
    "/status.json",
    "/metrics",
    "/health",
    "/ready",
    "/tap",
    "/pipelines",
    "/files",
    "/files.json",
];

/// Memory for answers on their way: one of the longest, the longest form of a trial, and the frames of open pages always fit together. Of usual
/// answers there can be many more.
pub(crate) const ANSWERS_BYTES: usize = LONGEST_ANSWER + LONGEST_FORM + FRAMES * LONGEST_FRAME;
/// So many heads can be received at a time.
const HEADS: usize = 16;
const LONGEST_HEAD: usize = 8 << 10;
/// The longest form of a trial: its texts, with line ends that take two bytes on the way, and what is around them.
pub(crate) const LONGEST_FORM: usize = LONGEST_STEPS + LONGEST_ITEMS + (32 << 10);
/// A [`Status`] with every sink and source that there can be, and the page made of it.
const SNAPSHOT: usize = 596 << 10;

pub(crate) const DATA_HEADERS: [(&str, &str); 3] =
    [("Cache-Control", "no-store"), ("Vary", "Accept"), ("X-Content-Type-Options", "nosniff")];
/// As [`PAGE_HEADERS`], for a page with a form. Browsers name their own page as the `Origin` of a form only under this policy.
pub(crate) const FORM_HEADERS: [(&str, &str); 5] = [
    ("Cache-Control", "no-store"),
    ("Vary", "Accept"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "same-origin"),
    (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'self'; \
         frame-ancestors 'none'",
    ),
];
/// The page is one file that fetches nothing and runs nothing.
const PAGE_HEADERS: [(&str, &str); 5] = [
    ("Cache-Control", "no-store"),
    ("Vary", "Accept"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
    (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'",
    ),
];
const NOT_FOUND: &str = "unknown path; valid ones are:\n\
    /             the console, for browsers\n\
    /status       how the gateway is doing: a page without JavaScript, text or JSON\n\
    /status.json  the same as JSON\n\
    /metrics      all metrics, in the OpenMetrics format\n\
    /health       200 while the process lives, and which sinks failed\n\
    /ready        200 while it takes data, else 503 and the reason\n\
    /tap          passing items, one line of JSON each; ?wait=2s waits for some\n\
    /files        the files that sources follow: a page, text or JSON\n\
    /files.json   the same as JSON\n\
    /pipelines    pipelines, and a form in which steps are tried on pasted items\n\
    and `tidegate journal forget NAME` asks for DELETE /journal/cursors/NAME\n";
/// The cursors of sinks: `DELETE` forgets one.
const CURSORS: &str = "/journal/cursors/";
const FROM_A_PAGE: &str = "this is for programs: no page in a browser may ask for it\n";
const TOO_LONG: &str = "the answer would be longer than the 512 KiB that the console may use; \
    ask for /status as text or HTML, which may be cut\n";
const METRICS_TOO_LONG: &str = "the metrics would be longer than the 512 KiB that the console may use; \
    none are given rather than some of them\n";

impl Console {
    /// Pages about `gateway`, written on the memory of `arena`, which [`reserve`](Self::reserve) gave.
    pub fn new(gateway: Arc<dyn Gateway>, arena: Arena) -> Console {
        let making = Arc::default();
        Console {
            live: Arc::new(LiveStatus::new(Arc::clone(&gateway), arena.clone(), Arc::clone(&making))),
            gateway,
            arena,
            making,
            token: PageToken::new(),
            has_credentials: false,
            trials: TrialTurns::default(),
            searches: SearchTurns::default(),
            listing_files: tokio::sync::Mutex::new(()),
            routes: Vec::new(),
        }
    }

    /// With the routes of other parts of the gateway.
    #[must_use]
    pub fn with_routes(self, routes: Vec<Arc<dyn AdminRoutes>>) -> Console {
        Console { routes, ..self }
    }

    /// Behind a check of credentials, which all that ask have passed, if `has_credentials`.
    #[must_use]
    pub fn with_credentials(self, has_credentials: bool) -> Console {
        Console { has_credentials, ..self }
    }

    /// Where no more than `most` pages can be open at a time.
    #[must_use]
    pub fn with_most_viewers(self, most: usize) -> Console {
        self.live.limit_viewers(most);
        self
    }

    /// Whether who sends a request with this head may change something: whoever is on this machine, or has credentials.
    pub fn is_operator(&self, head: &Head<'_>) -> bool {
        self.has_credentials || head.peer().ip().to_canonical().is_loopback()
    }

    /// Whether a request is for operators alone: it changes something, reads what is stored, or is for the routes of another part.
    pub fn is_for_operators(&self, head: &Head<'_>) -> bool {
        let changes = head.method() == "DELETE" && head.path() != "/tap";
        changes
            || AppRoute::changes(head)
            || SearchRoute::is_at(head.path())
            || self.mounted(head.path()).is_some()
    }

    /// The routes that a path is below, and the rest of it.
    fn mounted<'a>(&self, path: &'a str) -> Option<(&Arc<dyn AdminRoutes>, &'a str)> {
        self.routes.iter().find_map(|routes| Some((routes, path.strip_prefix(routes.prefix())?)))
    }

    /// Admits a request for the routes of another part.
    fn admit_mounted(
        &self,
        head: &Head<'_>,
        routes: &Arc<dyn AdminRoutes>,
        path: &str,
    ) -> Result<Admitted<Ticket>, Reply> {
        // Browsers say for which page they ask. Our own shows by the token that it is ours, and may read some of it.
        let may_read = || routes.is_for_pages(path) && AppRoute::check_token(self, head).is_ok();
        if is_of_page(head) && !(head.method() == "GET" && may_read()) {
            return Err(Reply::new(403).text(FROM_A_PAGE));
        }
        let request = AdminRequest::of(head, path)?;
        let claim = request.has_body().then(|| self.trials.claim(head)).transpose()?;
        let max_body = claim.as_ref().map_or(0, FormClaim::bytes);
        let route = MountedRoute { routes: Arc::clone(routes), request, claim };
        Ok(Admitted { max_body, ticket: Ticket(Route::Mounted(Box::new(route))) })
    }

    /// Reserves the console's own memory, for answers and for the heads of requests: it has to answer just
    /// when all other memory is in use. The server is given it too, and the owner calls
    /// [`Arena::tick`] on it as on the other.
    ///
    /// # Errors
    /// When the kernel refuses the address space.
    pub fn reserve() -> io::Result<Arena> {
        let (answers, heads) = (ANSWERS_BYTES, HEADS * LONGEST_HEAD);
        // Heads cannot take the memory of answers, nor the reverse, but for that of a form: its memory is that of answers.
        let floors = Floors::NONE
            .with(Share::Egress, (answers - LONGEST_FORM) as u64)
            .with(Share::Ingest, heads as u64);
        // As many windows as there can be heads of one page and answers.
        let windows = heads / PAGE + answers / FIRST + FRAMES;
        Arena::new((answers + heads) as u64, floors, LONGEST_ANSWER, windows, HEADS)
    }

    /// The lines of the memory plan: the arena of [`reserve`](Self::reserve), the heap of one snapshot, of open pages, and of the
    /// history.
    pub fn declared() -> [Reservation; 5] {
        let line = |what, count: usize, each: usize| Reservation {
            owner: "console",
            what,
            count: count as u64,
            each: each as u64,
            setting: None,
        };
        [
            line("responses in flight, frames of open pages, the form of a trial", 1, ANSWERS_BYTES),
            line("heads of requests", HEADS, LONGEST_HEAD),
            line("snapshot being shown", 1, SNAPSHOT),
            line("open pages", MOST_VIEWERS, VIEWER),
            line("the history of 15 minutes", 1, History::BYTES),
        ]
    }

    /// The codec's limits for the admin port, sized for [`reserve`](Self::reserve).
    pub fn settings() -> Settings {
        Settings {
            share: Share::Ingest,
            max_head: LONGEST_HEAD,
            idle: Duration::from_secs(60),
            head: Duration::from_secs(5),
            ..Settings::default()
        }
    }

    fn status(&self, form: StatusFormat) -> Reply {
        let made = self.make(|mut sheet| {
            let status = self.gateway.status();
            match form {
                StatusFormat::Json => {
                    let written = status.write_json(&mut sheet);
                    sheet.whole(written)
                }
                StatusFormat::Html => {
                    let written = html::write(&Page::of(&status), &mut sheet);
                    sheet.cut(written, html::CUT)
                }
                StatusFormat::Text => {
                    let written = text::write(&Page::of(&status), &mut sheet);
                    sheet.cut(written, text::CUT)
                }
            }
        });
        let headers: &[_] = if form == StatusFormat::Html { &PAGE_HEADERS } else { &DATA_HEADERS };
        match made {
            Ok(window) => Reply::new(200).content_type(form.content_type()).headers(headers).content(window),
            Err(failure) => failed(failure, TOO_LONG),
        }
    }

    fn metrics(&self) -> Reply {
        let made = self.make(|mut sheet| {
            let written = self.gateway.metrics(&mut sheet);
            sheet.whole(written)
        });
        match made {
            Ok(window) => Reply::new(200)
                .content_type(tidegate_meters::CONTENT_TYPE)
                .headers(&DATA_HEADERS)
                .content(window),
            Err(failure) => failed(failure, METRICS_TOO_LONG),
        }
    }

    /// Alive whatever the sinks do: they are started again here, and ending the process would stop the intake
    /// and the other sinks too. But it is said.
    fn health(&self) -> Reply {
        let broken = self.gateway.broken_sinks();
        let reply = Reply::new(200).headers(&DATA_HEADERS);
        if broken.is_empty() {
            return reply.text("ok\n");
        }
        reply.content(format!("alive, but these sinks failed and are started again: {}\n", broken.join(", ")))
    }

    fn ready(&self) -> Reply {
        match self.gateway.ready() {
            Ok(()) => Reply::new(200).text("ready\n"),
            Err(reason) => Reply::new(503).retry_after(5).content(format!("not ready: {reason}\n")),
        }
        .headers(&DATA_HEADERS)
    }

    /// A look goes on between its records: other answers are made meanwhile.
    async fn tap(&self, look: TapFilter) -> Reply {
        let sinks = self.gateway.sink_names();
        tap_response::answer(self.gateway.tap(), &sinks, &self.arena, look).await
    }

    fn forget(&self, sink: &str) -> Reply {
        let reply = |status| Reply::new(status).headers(&DATA_HEADERS);
        match self.gateway.forget(sink) {
            Ok(items) => reply(200).content(format!("{items}\n")),
            Err(ForgetError::Unknown(words)) => reply(404).content(format!("{words}\n")),
            Err(ForgetError::InUse(words)) => reply(409).content(format!("{words}\n")),
            Err(ForgetError::Later(words)) => reply(503).retry_after(1).content(format!("{words}\n")),
        }
    }

    pub(crate) fn live(&self) -> &Arc<LiveStatus> {
        &self.live
    }

    pub(crate) fn token(&self) -> &PageToken {
        &self.token
    }

    /// Serialises trials.
    pub(crate) fn trials(&self) -> &TrialTurns {
        &self.trials
    }

    /// Serialises searches.
    pub(crate) fn searches(&self) -> &SearchTurns {
        &self.searches
    }

    /// Serialises lists of files.
    pub(crate) async fn listing_files(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.listing_files.lock().await
    }

    /// The gateway behind the pages.
    pub(crate) fn gateway(&self) -> &dyn Gateway {
        &*self.gateway
    }

    pub(crate) fn arena(&self) -> &Arena {
        &self.arena
    }

    /// The snapshot of the moment, while `show` shows it.
    pub(crate) fn showing<T>(&self, show: impl FnOnce(&Status) -> T) -> T {
        let _one_at_a_time = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        show(&self.gateway.status())
    }

    fn make(&self, make: impl FnOnce(PageBuffer) -> Result<Window, PageError>) -> Result<Window, PageError> {
        let _one_at_a_time = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        make(PageBuffer::take(&self.arena)?)
    }
}

/// The access granted to a request.
#[derive(Debug, Clone)]
pub struct Ticket(Route);

#[derive(Debug, Clone)]
enum Route {
    Status(StatusFormat),
    Metrics,
    Health,
    Ready,
    Tap(Box<TapFilter>),
    /// A look is over.
    Untap(String),
    /// A sink's cursor goes.
    Forget(String),
    /// The files that sources follow.
    Files(Box<FilesQuery>, StatusFormat),
    /// The page of pipelines, perhaps with the steps of one of them.
    Pipelines(Option<String>),
    /// Steps are tried, of a form that has a claim to its memory.
    Try(Box<TrialRoute>, FormClaim),
    /// A search in the journal and the lake.
    Search(SearchRoute),
    /// It is another part's.
    Mounted(Box<MountedRoute>),
    /// It is of the pages for browsers.
    App(AppRoute),
}

impl Service for Console {
    type RequestState = Ticket;

    fn admit(&self, head: &Head<'_>) -> Result<Admitted<Ticket>, Reply> {
        if let Some((routes, path)) = self.mounted(head.path()) {
            return self.admit_mounted(head, routes, path);
        }
        if SearchRoute::is_at(head.path()) {
            let route = SearchRoute::of(self, head)?;
            return Ok(Admitted { max_body: route.claim.bytes(), ticket: Ticket(Route::Search(route)) });
        }
        if let Some(route) = AppRoute::of(self, head) {
            return Ok(Admitted { max_body: 0, ticket: Ticket(Route::App(route?)) });
        }
        let route = match head.path() {
            "/status" => StatusFormat::wanted(head).map(Route::Status).ok_or_else(unknown_format),
            "/status.json" => Ok(Route::Status(StatusFormat::Json)),
            "/metrics" => Ok(Route::Metrics),
            "/health" => Ok(Route::Health),
            "/ready" => Ok(Route::Ready),
            "/files" | "/files.json" => {
                let form = match head.path() {
                    "/files.json" => Some(StatusFormat::Json),
                    _ => StatusFormat::wanted(head),
                };
                FilesQuery::parse(head.query().unwrap_or_default())
                    .map_err(|words| Reply::new(400).content(format!("{words}\n")))
                    .and_then(|query| Ok(Route::Files(Box::new(query), form.ok_or_else(unknown_format)?)))
            }
            "/tap" => match TapFilter::from_query(head.query().unwrap_or_default()) {
                Ok(look) if head.method() == "DELETE" => Ok(Route::Untap(look.id)),
                Ok(look) => Ok(Route::Tap(Box::new(look.seen_by(head.peer())))),
                Err(bad) => Err(Reply::new(400).content(format!("{bad}\n"))),
            },
            "/pipelines" if head.method() == "POST" => TrialRoute::of(head).and_then(|route| {
                let claim = self.trials.claim(head)?;
                Ok(Route::Try(Box::new(route), claim))
            }),
            "/pipelines" => TrialRoute::load_of(head).map(Route::Pipelines),
            path => match path.strip_prefix(CURSORS) {
                Some(name) if is_name(name) => Ok(Route::Forget(name.to_owned())),
                _ => Err(Reply::new(404).text(NOT_FOUND)),
            },
        };
        // The path first: who asks for nothing should not be told to ask for it in another way.
        let found = !matches!(&route, Err(reply) if reply.status() == 404);
        match (&route, head.method()) {
            _ if !found => {}
            (Ok(Route::Forget(_) | Route::Untap(_)), "DELETE") => {
                // Other origins cannot send it unasked, but a name that was made to lead here is no other origin.
                if is_of_page(head) {
                    return Err(Reply::new(403).text(FROM_A_PAGE));
                }
                if head.query().is_some_and(is_of_another) {
                    return Err(Reply::new(409).text("this is another gateway than the one that was meant\n"));
                }
            }
            (Ok(Route::Forget(_)), _) => {
                return Err(Reply::new(405).headers(&[("Allow", "DELETE")]).text("use DELETE\n"));
            }
            (Ok(Route::Try(..)) | Err(_), "POST") if head.path() == "/pipelines" => {
                let max_body = if let Ok(Route::Try(_, claim)) = &route { claim.bytes() } else { 0 };
                return Ok(Admitted { max_body, ticket: Ticket(route?) });
            }
            (Ok(Route::Pipelines(_)), "GET" | "HEAD") => {}
            (Ok(Route::Pipelines(_)), _) => {
                let reply = Reply::new(405).headers(&[("Allow", "GET, HEAD, POST")]);
                return Err(reply.text("use GET to see the page, and POST to try steps\n"));
            }
            (_, "GET" | "HEAD") => {}
            _ => {
                let reply = Reply::new(405).headers(&[("Allow", "GET, HEAD")]);
                return Err(reply.text("use GET or HEAD\n"));
            }
        }
        Ok(Admitted { max_body: 0, ticket: Ticket(route?) })
    }

    async fn answer(&self, ticket: Ticket, body: Body) -> Reply {
        if let Route::Try(route, _claim) = ticket.0 {
            return Box::pin(self.try_out(*route, body)).await;
        }
        if let Route::Mounted(route) = ticket.0 {
            let MountedRoute { routes, request, claim: _claim } = *route;
            return routes.answer(request, body).await;
        }
        if let Route::Search(route) = ticket.0 {
            return Box::pin(self.search(&route, body)).await;
        }
        drop(body);
        match ticket.0 {
            Route::App(route) => Box::pin(self.app(route)).await,
            Route::Try(..) | Route::Search(_) | Route::Mounted(_) => Reply::new(500),
            Route::Pipelines(load) => self.pipelines(load.as_deref()),
            Route::Status(form) => self.status(form),
            Route::Metrics => self.metrics(),
            Route::Health => self.health(),
            Route::Ready => self.ready(),
            Route::Files(query, form) => Box::pin(self.files(*query, form)).await,
            // Apart, so that other requests need no room for it.
            Route::Tap(look) => Box::pin(self.tap(*look)).await,
            Route::Untap(id) => {
                self.gateway.tap().end(&id);
                Reply::new(200).headers(&DATA_HEADERS).text("the look is over\n")
            }
            Route::Forget(sink) => self.forget(&sink),
        }
    }

    fn is_withdrawn_by_leaving(&self, ticket: &Ticket) -> bool {
        matches!(ticket.0, Route::Try(..) | Route::Search(_) | Route::App(AppRoute::Order(_)))
    }

    fn refuse(&self, refusal: Refusal, _: RefusalContext<'_, Ticket>) -> Reply {
        match refusal {
            Refusal::Memory => refusal.reply().retry_after(1),
            other => other.reply(),
        }
    }
}

/// Whether a browser sends it for a page.
fn is_of_page(head: &Head<'_>) -> bool {
    ["origin", "sec-fetch-site"].iter().any(|name| head.values(name).next().is_some())
}

/// Whether a text can be the name of a sink.
pub(crate) fn is_name(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    (1..=64).contains(&name.len()) && name.bytes().all(legal)
}

/// Whether a query names another process than this one: `pid=42`, as the journal's lock has it.
fn is_of_another(query: &str) -> bool {
    let mut meant = query.split('&').filter_map(|pair| pair.strip_prefix("pid="));
    let this = std::process::id().to_string();
    meant.any(|pid| pid != this)
}

fn unknown_format() -> Reply {
    Reply::new(400).text("the format is one of html, json and text, as in /status?format=json\n")
}

pub(crate) fn failed(failure: PageError, too_long: &'static str) -> Reply {
    match failure {
        PageError::TooLong => Reply::new(500).text(too_long),
        PageError::Busy => Reply::new(503)
            .retry_after(1)
            .text("the console's memory for concurrent responses is used up; try again\n"),
        PageError::Broken => Reply::new(500).text("the answer could not be written; please report this\n"),
    }
}
