//! The routes of the pages for browsers: their files, the live status, the history, the configuration, and orders about dead
//! letters.
//!
//! Changes are made by `POST` with the token that `/console/session` gives to the page: a page of another origin cannot read that, nor
//! send the header.

use crate::assets::AssetRequest;
use crate::configuration::ConfigurationOrder;
use crate::connect::ConnectQuery;
use crate::console::{Console, DATA_HEADERS, failed};
use crate::dead_letters::{DeadLetterAction, DeadLetterOrder};
use crate::page_buffer::PageBuffer;
use crate::rejects;
use serde::Serialize;
use std::fmt;
use tidegate_arena::Window;
use tidegate_http1::{Head, Reply};

/// A request of the pages.
#[derive(Debug, Clone)]
pub(crate) enum AppRoute {
    Asset(AssetRequest),
    Events,
    History,
    Session { is_operator: bool, may_search: bool },
    Configuration,
    Connect(ConnectQuery),
    Rejects,
    Order(ConfigurationOrder),
    DeadLetters(Box<DeadLetterOrder>),
}

/// A path at which something is changed.
#[derive(Clone, Copy)]
enum ChangePath {
    Configuration(ConfigurationOrder),
    DeadLetters(DeadLetterAction),
}

/// The header with the token of the page.
const TOKEN: &str = "x-tidegate-token";
const NO_TOKEN: &str =
    "the header X-Tidegate-Token is missing or is not that of this gateway's session; load the page again\n";
const JSON: &str = "application/json";
const TOO_LONG: &str = "the answer would be longer than the 512 KiB that the console may use\n";

/// The token that allows changes and searches: the same for all pages, from the start of the process to its end.
pub(crate) struct PageToken(String);

impl PageToken {
    pub(crate) fn new() -> PageToken {
        PageToken(format!("{:032x}", rand::random::<u128>()))
    }

    /// Compares in the same time wherever they differ.
    fn is(&self, shown: &[u8]) -> bool {
        let own = self.0.as_bytes();
        own.len() == shown.len()
            && own.iter().zip(shown).fold(0, |all, (own, shown)| all | (own ^ shown)) == 0
    }
}

impl fmt::Debug for PageToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PageToken")
    }
}

impl AppRoute {
    /// Whether the path of `head` belongs to the pages and its method changes something.
    pub(crate) fn changes(head: &Head<'_>) -> bool {
        ChangePath::of(head.path()).is_some() && head.method() == "POST"
    }

    /// Whether a request has the token of the page.
    pub(crate) fn check_token(console: &Console, head: &Head<'_>) -> Result<(), Reply> {
        match head.sole_header(TOKEN) {
            Ok(Some(shown)) if console.token().is(shown) => Ok(()),
            _ => Err(Reply::new(403).headers(&DATA_HEADERS).text(NO_TOKEN)),
        }
    }

    /// The route of `head`, if its path belongs to the pages.
    pub(crate) fn of(console: &Console, head: &Head<'_>) -> Option<Result<AppRoute, Reply>> {
        if let Some(change) = ChangePath::of(head.path()) {
            return Some(console.admit_change(head, change));
        }
        let route = match head.path() {
            "/console/events" => AppRoute::Events,
            "/console/history" => AppRoute::History,
            "/console/session" => AppRoute::Session {
                is_operator: console.is_operator(head),
                may_search: console.may_search(head),
            },
            "/console/configuration" => AppRoute::Configuration,
            "/console/connect" => match ConnectQuery::of(head) {
                Ok(query) => AppRoute::Connect(query),
                Err(refused) => return Some(Err(refused)),
            },
            "/console/rejects" => AppRoute::Rejects,
            _ => AppRoute::Asset(AssetRequest::of(head)?),
        };
        Some(match head.method() {
            "GET" | "HEAD" => Ok(route),
            _ => Err(Reply::new(405).headers(&[("Allow", "GET, HEAD")]).text("use GET or HEAD\n")),
        })
    }
}

impl ChangePath {
    fn of(path: &str) -> Option<ChangePath> {
        match path {
            "/console/check" => Some(ChangePath::Configuration(ConfigurationOrder::Check)),
            "/console/reload" => Some(ChangePath::Configuration(ConfigurationOrder::Reload)),
            _ => DeadLetterAction::at(path).map(ChangePath::DeadLetters),
        }
    }
}

impl Console {
    fn admit_change(&self, head: &Head<'_>, change: ChangePath) -> Result<AppRoute, Reply> {
        if head.method() != "POST" {
            return Err(Reply::new(405).headers(&[("Allow", "POST")]).text("use POST\n"));
        }
        AppRoute::check_token(self, head)?;
        Ok(match change {
            ChangePath::Configuration(order) => AppRoute::Order(order),
            ChangePath::DeadLetters(action) => {
                AppRoute::DeadLetters(Box::new(DeadLetterOrder::of(head, action)?))
            }
        })
    }

    /// Answers a request of the pages.
    pub(crate) async fn app(&self, route: AppRoute) -> Reply {
        match route {
            AppRoute::Asset(asset) => asset.answer(),
            AppRoute::Events => self.live().answer(),
            AppRoute::History => self.json(|out| self.gateway().history().write_json(out)),
            AppRoute::Session { is_operator, may_search } => {
                let session = Session { token: &self.token().0, operator: is_operator, search: may_search };
                self.json(|out| serde_json::to_writer(out, &session))
            }
            AppRoute::Configuration => {
                let running = self.gateway().configuration();
                self.json(|out| serde_json::to_writer(out, &running))
            }
            AppRoute::Connect(query) => match self.gateway().connect(&query) {
                Ok(answer) => self.json(|out| serde_json::to_writer(out, &answer)),
                Err(error) => error.reply(),
            },
            AppRoute::Rejects => self
                .json(|out| self.showing(|status| rejects::write_json(self.gateway(), &status.books, out))),
            AppRoute::Order(order) => match self.gateway().order(order).await {
                Ok(report) => self.json(|out| serde_json::to_writer(out, &report.limited())),
                Err(reason) => {
                    Reply::new(503).retry_after(1).headers(&DATA_HEADERS).content(format!("{reason}\n"))
                }
            },
            AppRoute::DeadLetters(order) => match self.gateway().dead_letters(*order).await {
                Ok(report) => self.json(|out| serde_json::to_writer(out, &report)),
                Err(error) => error.reply(),
            },
        }
    }

    fn json(&self, write: impl FnOnce(&mut PageBuffer) -> serde_json::Result<()>) -> Reply {
        let made = PageBuffer::take(self.arena()).and_then(|mut buffer| {
            let written = write(&mut buffer);
            buffer.whole(written)
        });
        match made {
            Ok(window) => json_reply(window),
            Err(failure) => failed(failure, TOO_LONG),
        }
    }
}

fn json_reply(window: Window) -> Reply {
    Reply::new(200).content_type(JSON).headers(&DATA_HEADERS).content(window)
}

/// The data with which a page starts.
#[derive(Serialize)]
struct Session<'a> {
    /// For the header of changes.
    token: &'a str,
    /// Whether changes are allowed from where the page was loaded.
    operator: bool,
    /// Whether what is stored may be searched from there.
    search: bool,
}
