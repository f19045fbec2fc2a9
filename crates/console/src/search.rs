//! `/console/search/KIND`: searches in what is stored, asked by `POST` with a query in JSON, and answered with JSON.
//!
//! Rows are the data itself, so only those may ask who may operate the gateway, and pages only with the token of the session. One search
//! runs at a time; a few wait for their turn.

use crate::app_routes::AppRoute;
use crate::console::{Console, DATA_HEADERS, LONGEST_ANSWER, failed};
use crate::page_buffer::{PageBuffer, PageError};
use crate::process::{ProcessError, status_of};
use crate::trial_response::FormClaim;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tidegate_arena::Bytes;
use tidegate_http1::{Body, Head, Reply};
use tokio::sync::{Semaphore, SemaphorePermit};

/// The kinds of searches, as `tidegate-search` names them.
pub const SEARCHES: [&str; 8] =
    ["logs", "traces", "trace", "services", "metrics", "plot", "dead-letters", "dead-letter"];
/// The longest answer to a search, in bytes.
pub const LONGEST_SEARCH_ANSWER: usize = LONGEST_ANSWER - (16 << 10);

const PREFIX: &str = "/console/search/";
/// The longest query, in bytes.
const LONGEST_QUERY: usize = 16 << 10;
/// So many wait for their turn.
const MOST_WAITING: usize = 8;
const OFF: &str = "search is off: `console.search` turns it on; and only those may search who are on this machine or have credentials\n";
const WAITING: &str = "as many searches as may be are waiting for their turn; try again\n";

/// A search that is asked for.
#[derive(Debug, Clone)]
pub(crate) struct SearchRoute {
    kind: &'static str,
    pub(crate) claim: FormClaim,
}

/// Lets one search run at a time, and a few wait.
pub(crate) struct SearchTurns {
    turn: Semaphore,
    /// Those that wait, and the one whose turn it is.
    waiting: AtomicUsize,
}

/// A search that waits or runs.
struct Waiting<'t>(&'t AtomicUsize);

impl Default for SearchTurns {
    fn default() -> Self {
        SearchTurns { turn: Semaphore::new(1), waiting: AtomicUsize::new(0) }
    }
}

impl SearchTurns {
    /// The turn, once others are done; `None` if too many wait.
    async fn take(&self) -> Option<(SemaphorePermit<'_>, Waiting<'_>)> {
        let waiting = Waiting(&self.waiting);
        if self.waiting.fetch_add(1, Relaxed) > MOST_WAITING {
            return None;
        }
        Some((self.turn.acquire().await.ok()?, waiting))
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

impl SearchRoute {
    /// Whether a path belongs to searches.
    pub(crate) fn is_at(path: &str) -> bool {
        path.starts_with(PREFIX)
    }

    /// The search of `head`, whose path belongs to searches.
    pub(crate) fn of(console: &Console, head: &Head<'_>) -> Result<SearchRoute, Reply> {
        let name = head.path().strip_prefix(PREFIX);
        let Some(kind) = SEARCHES.into_iter().find(|kind| Some(*kind) == name) else {
            let known = SEARCHES.join(", ");
            return Err(Reply::new(404).content(format!("there is no such search; there are: {known}\n")));
        };
        if head.method() != "POST" {
            return Err(Reply::new(405).headers(&[("Allow", "POST")]).text("use POST\n"));
        }
        if !console.may_search(head) {
            return Err(Reply::new(403).headers(&DATA_HEADERS).text(OFF));
        }
        AppRoute::check_token(console, head)?;
        let length =
            head.header("content-length").and_then(|value| str::from_utf8(value).ok()?.parse::<usize>().ok());
        if length.is_none_or(|length| length > LONGEST_QUERY) {
            return Err(Reply::new(413).text("a query has at most 16 KiB, and a Content-Length\n"));
        }
        Ok(SearchRoute { kind, claim: console.trials().claim(head)? })
    }
}

impl Console {
    /// Whether who sends a request with this head may search what is stored.
    pub(crate) fn may_search(&self, head: &Head<'_>) -> bool {
        self.is_operator(head) && self.gateway().is_searchable()
    }

    /// Answers a search.
    pub(crate) async fn search(&self, route: &SearchRoute, query: Body) -> Reply {
        let Some(_turn) = self.searches().take().await else {
            return Reply::new(503).retry_after(2).headers(&DATA_HEADERS).text(WAITING);
        };
        let mut answer = SearchAnswer { console: self, status: None, page: None, failure: None };
        let ended = self.gateway().search(route.kind, Arc::new(query), &mut |bytes| answer.push(bytes)).await;
        answer.end(ended)
    }
}

/// The answer as it comes in. It takes memory when it begins: none is held while the search runs.
struct SearchAnswer<'c> {
    console: &'c Console,
    status: Option<u16>,
    page: Option<PageBuffer>,
    failure: Option<PageError>,
}

impl SearchAnswer<'_> {
    fn push(&mut self, bytes: &[u8]) -> bool {
        if self.status.is_none() {
            self.status = Some(status_of(bytes));
            match PageBuffer::take(self.console.arena()) {
                Ok(page) => self.page = Some(page),
                Err(failure) => self.failure = Some(failure),
            }
        } else if self.page.as_mut().is_some_and(|page| !page.bytes(bytes)) {
            self.failure = Some(PageError::TooLong);
        }
        self.failure.is_none()
    }

    fn end(self, ended: Result<(), ProcessError>) -> Reply {
        if let Some(failure) = self.failure {
            return failed(failure, "the answer would be longer than the 512 KiB that the console may use\n");
        }
        let reply = |status| Reply::new(status).headers(&DATA_HEADERS);
        match (ended, self.status, self.page) {
            (Ok(()), Some(status), Some(page)) => match page.whole(Ok::<(), ()>(())) {
                Ok(window) if status == 200 => reply(200).content_type("application/json").content(window),
                Ok(window) => reply(status).content(window),
                Err(failure) => failed(failure, ""),
            },
            (Ok(()), ..) => reply(500).text("the search gave no answer; please report this\n"),
            (Err(ProcessError::Memory), ..) => reply(503)
                .retry_after(5)
                .text(
                    "requests and sinks have the memory that a search needs; try again later, or raise `memory`: `tidegate check` says \
                     where it is too little for any search\n",
                ),
            (Err(ProcessError::Late), ..) => {
                reply(422).text("the search took too long and was ended: try a shorter range of time\n")
            }
            (Err(ProcessError::Ended(bytes)), ..) => reply(422).content(format!(
                "the search ended without an answer, most likely because it needed more than the {} of memory that it had: try a \
                 shorter range of time or fewer rows, or raise `memory`\n",
                Bytes(bytes)
            )),
            (Err(ProcessError::Start(why)), ..) => {
                reply(500).content(format!("the search could not be started: {why}\n"))
            }
        }
    }
}
