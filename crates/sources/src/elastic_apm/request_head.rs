//! The request head: its route, and the encoding of its body.

use super::browser::BrowserClient;
use super::rum::{RateSlot, Rum};
use crate::http::without_slash;
use std::num::NonZeroU32;
use tidegate_admission::{AnswerFormat, Rejection};
use tidegate_arena::Arena;
use tidegate_http1::{Head, Reply};
use tidegate_journal::Encoding;
use tidegate_ledger::Refusal;

/// The routes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ApmEndpoint {
    /// Server information.
    Root,
    /// Events of services.
    Intake,
    /// Events of browsers.
    RumIntake,
    /// Events of browsers with short names, which are not taken.
    RumIntake3,
    /// The configuration of services' agents.
    Agents,
    /// That of browsers' agents.
    RumAgents,
}

impl ApmEndpoint {
    /// Whether agents in browsers come here.
    pub(crate) fn is_of_browsers(self) -> bool {
        matches!(self, ApmEndpoint::RumIntake | ApmEndpoint::RumIntake3 | ApmEndpoint::RumAgents)
    }
}

/// Where `head` leads. The root is shared with others: it is this source's for those who say that they are agents.
pub(crate) fn endpoint_of(head: &Head<'_>) -> Option<ApmEndpoint> {
    Some(match without_slash(head.path()) {
        "/intake/v2/events" => ApmEndpoint::Intake,
        "/intake/v2/rum/events" => ApmEndpoint::RumIntake,
        "/intake/v3/rum/events" => ApmEndpoint::RumIntake3,
        "/config/v1/agents" => ApmEndpoint::Agents,
        "/config/v1/rum/agents" => ApmEndpoint::RumAgents,
        "/" if is_agent(head.header("user-agent").unwrap_or_default()) => ApmEndpoint::Root,
        _ => return None,
    })
}

/// Whether this is what agents call themselves, today and before they agreed on it.
fn is_agent(user_agent: &[u8]) -> bool {
    [&b"apm-agent-"[..], b"elasticapm-", b"elastic-apm-"].iter().any(|name| user_agent.starts_with(name))
}

/// How a request is to be read.
pub(crate) enum BodyFormat {
    /// With events, and where they are a browser's, who sends them.
    Events(Events, Option<BrowserClient>),
    /// With a question for an agent's configuration.
    Agent {
        /// Whether the client takes JSON.
        json: bool,
        /// The client's current version.
        known: Option<NonZeroU32>,
        /// Whether the body says for whom.
        is_asked_in_body: bool,
        /// Whether a page in a browser is to read the answer.
        is_shared: bool,
    },
    /// With the question who is there.
    Root {
        /// Whether the client takes JSON.
        json: bool,
    },
    /// A browser asks what it may send.
    Preflight,
}

/// How events are to be read, and answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Events {
    /// As the head has it; nothing when that is for the body to show.
    pub(super) encoding: Option<Encoding>,
    /// Whether the client takes JSON.
    pub(super) json: bool,
    /// Whether the client wants to know how many events were taken.
    pub(super) verbose: bool,
    /// The place of its address, where it is a browser.
    pub(super) seat: Option<RateSlot>,
    /// Whether it came without the credentials that others need.
    pub(super) stranger: bool,
}

impl BodyFormat {
    /// How its refusals are written.
    pub(crate) fn protocol(&self) -> AnswerFormat {
        match *self {
            BodyFormat::Events(events, _) => events.protocol(),
            BodyFormat::Agent { json, .. } | BodyFormat::Root { json } => AnswerFormat::Intake { json },
            BodyFormat::Preflight => AnswerFormat::Intake { json: true },
        }
    }

    /// Notes that somebody has sent it who has shown no credentials.
    pub(crate) fn mark_stranger(&mut self) {
        if let BodyFormat::Events(events, _) = self {
            events.stranger = true;
        }
    }

    /// Whether its body may come as slowly as things happen.
    pub(crate) fn is_patient(&self) -> bool {
        matches!(self, BodyFormat::Events(..))
    }
}

impl Events {
    pub(super) fn protocol(self) -> AnswerFormat {
        AnswerFormat::Intake { json: self.json }
    }

    /// An answer that a browser lets its page read.
    pub(super) fn marked(self, reply: Reply) -> Reply {
        if self.seat.is_some() { reply.headers(super::answer::SHARED) } else { reply }
    }
}

/// The form of a request at `place`, or why it is refused and how that is written. Browsers are heard within `rum`.
pub(super) fn form(
    place: ApmEndpoint,
    head: &Head<'_>,
    rum: Option<&Rum>,
    arena: &Arena,
) -> Result<BodyFormat, (Rejection, AnswerFormat)> {
    let json = takes_json(head.header("accept"));
    let refused = |reason, words| Err((Rejection::new(reason, words), AnswerFormat::Intake { json }));
    let is_rum = place.is_of_browsers();
    if is_rum && rum.is_none() {
        let words = "RUM endpoint is disabled; set `sources.elastic_apm.rum.enabled` to accept events from browsers\n";
        return refused(Refusal::Forbidden, words);
    }
    if is_rum && head.method() == "OPTIONS" {
        return Ok(BodyFormat::Preflight);
    }
    match (place, head.method()) {
        (ApmEndpoint::Root, "GET" | "HEAD") => Ok(BodyFormat::Root { json }),
        (ApmEndpoint::Agents | ApmEndpoint::RumAgents, method @ ("GET" | "POST")) => {
            // A page would have to ask whether it may send that header, so its agent has it in the query.
            let known = head.header("if-none-match").and_then(super::agents::known);
            let known = known.or_else(|| super::agents::known_by_query(head.query()));
            Ok(BodyFormat::Agent { json, known, is_asked_in_body: method == "POST", is_shared: is_rum })
        }
        (ApmEndpoint::RumIntake3, _) => refused(
            Refusal::NotFound,
            "version 3 of the intake for browsers is not served; set `apiVersion: 2` in the agent\n",
        ),
        (ApmEndpoint::Intake | ApmEndpoint::RumIntake, "POST") => match encoding(head) {
            Err((reason, words)) => refused(reason, words),
            Ok(encoding) => {
                let verbose = has_flag(head.query(), "verbose");
                let seat = rum.filter(|_| is_rum).map(|rum| rum.enter(head.peer().ip())).transpose();
                let seat = seat.map_err(|wait| {
                    let words = "this address has sent more events than it may; send less\n";
                    let seconds = u32::try_from(wait.as_secs() + 1).unwrap_or(u32::MAX);
                    let refused = Rejection::new(Refusal::RateLimited, words).retry_after(seconds);
                    (refused, AnswerFormat::Intake { json })
                })?;
                let browser = seat.and_then(|_| BrowserClient::of(head, arena));
                Ok(BodyFormat::Events(Events { encoding, json, verbose, seat, stranger: false }, browser))
            }
        },
        (ApmEndpoint::Intake | ApmEndpoint::RumIntake, _) => {
            refused(Refusal::Method, "only POST requests are supported\n")
        }
        (ApmEndpoint::Agents | ApmEndpoint::RumAgents, _) => {
            refused(Refusal::Method, "only GET and POST requests are supported\n")
        }
        (ApmEndpoint::Root, _) => refused(Refusal::Method, "only GET and HEAD requests are supported\n"),
    }
}

/// How a body of events is compressed; nothing when its first bytes are to show it.
fn encoding(head: &Head<'_>) -> Result<Option<Encoding>, (Refusal, &'static str)> {
    let (Ok(content_type), Ok(encoding)) =
        (head.sole_header("content-type"), head.sole_header("content-encoding"))
    else {
        return Err((Refusal::Headers, "Content-Type and Content-Encoding may be given once\n"));
    };
    if content_type.is_some_and(|value| !contains(value, b"application/x-ndjson")) {
        return Err((Refusal::Unsupported, "invalid content-type: send application/x-ndjson\n"));
    }
    match encoding.unwrap_or_default() {
        name if name.eq_ignore_ascii_case(b"gzip") => Ok(Some(Encoding::Gzip)),
        name if name.eq_ignore_ascii_case(b"deflate") => Ok(Some(Encoding::Deflate)),
        name if name.is_empty() || name.eq_ignore_ascii_case(b"identity") => Ok(None),
        _ => Err((Refusal::Unsupported, "the Content-Encoding must be gzip or deflate, or none at all\n")),
    }
}

/// How a body is compressed whose head does not say it.
pub(super) fn sniffed(body: &[u8]) -> Encoding {
    match body {
        [0x1f, 0x8b, ..] => Encoding::Gzip,
        // Method 8, and a check that makes both bytes a multiple of 31 (RFC 1950).
        [method, flags, ..] if method & 15 == 8 && u16::from_be_bytes([*method, *flags]) % 31 == 0 => {
            Encoding::Deflate
        }
        _ => Encoding::Identity,
    }
}

/// Whether the client takes `application/json`.
fn takes_json(accept: Option<&[u8]>) -> bool {
    accept.is_none_or(|accept| contains(accept, b"*/*") || contains(accept, b"application/json"))
}

fn contains(value: &[u8], part: &[u8]) -> bool {
    value.windows(part.len()).any(|window| window.eq_ignore_ascii_case(part))
}

/// Whether a query has this flag, with any value.
fn has_flag(query: Option<&str>, flag: &str) -> bool {
    query.is_some_and(|query| query.split('&').any(|pair| pair.split('=').next() == Some(flag)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_are_known_by_their_names() {
        for agent in ["apm-agent-java/1.52.0 (shop 1.2.3)", "elasticapm-python/5.1", "elastic-apm-node/3.0"] {
            assert!(is_agent(agent.as_bytes()), "{agent}");
        }
        for other in ["", "Elastic-Heartbeat/8", "elasticsearch-py/8.0", "curl/8.0"] {
            assert!(!is_agent(other.as_bytes()), "{other}");
        }
    }

    #[test]
    fn first_bytes_show_how_a_body_is_compressed() {
        assert_eq!(sniffed(&[0x1f, 0x8b, 8]), Encoding::Gzip);
        for flags in [0x01, 0x5e, 0x9c, 0xda] {
            assert_eq!(sniffed(&[0x78, flags, 1]), Encoding::Deflate);
        }
        for body in [&b"{\"metadata\""[..], b"", b"\n{", b" {", b"x", b"\x78\x79"] {
            assert_eq!(sniffed(body), Encoding::Identity, "{body:?}");
        }
    }

    #[test]
    fn flags_have_any_value() {
        for query in ["verbose", "verbose=true", "flushed=true&verbose=", "verbose&flushed=true"] {
            assert!(has_flag(Some(query), "verbose"), "{query}");
        }
        for query in ["", "flushed=true", "xverbose=1", "a=verbose"] {
            assert!(!has_flag(Some(query), "verbose"), "{query}");
        }
        assert!(takes_json(Some(b"text/html, image/gif, */*; q=0.2")) && takes_json(None));
        assert!(!takes_json(Some(b"text/plain")));
    }
}
