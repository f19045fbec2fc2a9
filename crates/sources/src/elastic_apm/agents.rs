//! Agents' central configuration: settings by service and environment, and an ETag.

use super::answer::found;
use std::num::NonZeroU32;
use std::sync::Arc;
use tidegate_http1::Reply;
use tidegate_wire::intake::{Text, Value};
use tidegate_wire::json::append_string;
use tidegate_wire::percent;

/// The longest question.
pub(super) const LONGEST_QUESTION: usize = 4 << 10;
/// The longest name of a service or an environment.
const LONGEST_NAME: usize = 1024;
/// The most services, and the most bytes that are told to one.
const MOST: usize = 10_000;
const LONGEST_ANSWER: usize = 64 << 10;

/// The configuration of a service's agents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AgentSettings {
    /// Of which service; of every one that is not named when this is empty.
    pub service: String,
    /// In which environment; in every one that is not named when this is empty.
    pub environment: String,
    /// The agent's settings by their names, as the agent's documentation has them.
    pub settings: Vec<(String, String)>,
}

/// Settings that cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadSettings {
    /// There are too many of them.
    #[error("at most {MOST} services and environments may have agent settings, but {0} have; remove some")]
    TooMany(usize),
    /// They are too long.
    #[error("the settings for the agents of {0:?} have {1} bytes; at most {LONGEST_ANSWER} can be sent")]
    TooLong(String, usize),
}

/// All that is told to agents. Clones are the same.
#[derive(Debug, Clone)]
pub(super) struct Agents(Arc<[AgentConfigResponse]>);

#[derive(Debug)]
struct AgentConfigResponse {
    service: String,
    environment: String,
    tag: NonZeroU32,
    headers: Headers,
    /// For an answer that a page may read.
    shared: Headers,
    text: &'static str,
}

/// For whom settings are asked.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ServiceQuery {
    service: String,
    environment: String,
}

const KEPT: (&str, &str) = ("Cache-Control", "max-age=30, must-revalidate");
type Headers = &'static [(&'static str, &'static str)];

const NO_TAG: (&str, &str) = ("Etag", "\"-\"");
const NOTHING: Headers = &[KEPT, NO_TAG];
const NOTHING_SHARED: Headers = &[KEPT, NO_TAG, EXPOSED, ALLOWED];
const EXPOSED: (&str, &str) = ("Access-Control-Expose-Headers", "Etag");
/// Of whatever origin the page is: nothing is told that needs credentials.
const ALLOWED: (&str, &str) = ("Access-Control-Allow-Origin", "*");
const NOT_KEPT: (&str, &str) = ("Cache-Control", "max-age=300, must-revalidate");
const WRONG: Headers = &[NOT_KEPT];
const WRONG_SHARED: Headers = &[NOT_KEPT, ALLOWED];

impl Agents {
    /// The responses. They are built once for the life of the process, as fixed texts.
    pub(super) fn new(settings: Vec<AgentSettings>) -> Result<Agents, BadSettings> {
        if settings.len() > MOST {
            return Err(BadSettings::TooMany(settings.len()));
        }
        let told: Result<Vec<_>, _> = settings.into_iter().map(AgentConfigResponse::new).collect();
        Ok(Agents(told?.into()))
    }

    /// The answer to a question: nothing new for an agent that has this already. `shared` with the page that asks.
    pub(super) fn told(
        &self,
        asked: Option<ServiceQuery>,
        known: Option<NonZeroU32>,
        json: bool,
        shared: bool,
    ) -> Reply {
        let Some(asked) = asked.filter(|asked| !asked.service.is_empty()) else {
            let text = "{\n  \"error\": \"service.name is required\"\n}\n";
            return found(400, json, text).headers(if shared { WRONG_SHARED } else { WRONG });
        };
        match self.of(&asked) {
            None => found(200, json, "{}\n").headers(if shared { NOTHING_SHARED } else { NOTHING }),
            Some(told) if known == Some(told.tag) => Reply::new(304).headers(told.headers(shared)),
            Some(told) => found(200, json, told.text).headers(told.headers(shared)),
        }
    }

    /// Selects the most specific entry; the service takes precedence over the environment.
    fn of(&self, asked: &ServiceQuery) -> Option<&AgentConfigResponse> {
        let fit = |is: &str, asked: &str| match is {
            "" => Some(0),
            is if is == asked => Some(1),
            _ => None,
        };
        let fits = self.0.iter().filter_map(|told| {
            let service: u8 = fit(&told.service, &asked.service)?;
            let environment: u8 = fit(&told.environment, &asked.environment)?;
            Some((service * 2 + environment, told))
        });
        fits.max_by_key(|(fit, _)| *fit).map(|(_, told)| told)
    }
}

impl AgentConfigResponse {
    fn new(settings: AgentSettings) -> Result<AgentConfigResponse, BadSettings> {
        let AgentSettings { service, environment, settings } = settings;
        let mut text = b"{".to_vec();
        for (at, (name, value)) in settings.iter().enumerate() {
            text.extend_from_slice(if at == 0 { b"\n  " } else { b",\n  " });
            append_string(&mut text, name.as_bytes());
            text.extend_from_slice(b": ");
            append_string(&mut text, value.as_bytes());
        }
        text.extend_from_slice(if settings.is_empty() { b"}\n" } else { b"\n}\n" });
        // Made of texts.
        let text = String::from_utf8(text).unwrap_or_default();
        if text.len() > LONGEST_ANSWER {
            return Err(BadSettings::TooLong(service, text.len()));
        }
        let tag = tag_of(text.as_bytes());
        let quoted: &'static str = Box::leak(format!("\"{tag:08x}\"").into_boxed_str());
        let headers = Box::leak(Box::new([KEPT, ("Etag", quoted)]));
        let shared = Box::leak(Box::new([KEPT, ("Etag", quoted), EXPOSED, ALLOWED]));
        Ok(AgentConfigResponse {
            service,
            environment,
            tag,
            headers,
            shared,
            text: Box::leak(text.into_boxed_str()),
        })
    }

    fn headers(&self, shared: bool) -> Headers {
        if shared { self.shared } else { self.headers }
    }
}

/// A number that other settings are unlikely to have (FNV-1a).
fn tag_of(text: &[u8]) -> NonZeroU32 {
    let hash =
        text.iter().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193));
    NonZeroU32::new(hash).unwrap_or(NonZeroU32::MIN)
}

/// The tag that an agent says that it has.
pub(super) fn known(value: &[u8]) -> Option<NonZeroU32> {
    let digits = str::from_utf8(value).ok()?.trim().trim_start_matches("W/").trim_matches('"');
    u32::from_str_radix(digits, 16).ok().and_then(NonZeroU32::new)
}

/// The same, said in the query, as agents in browsers do: `ifnonematch`.
pub(super) fn known_by_query(query: Option<&str>) -> Option<NonZeroU32> {
    let pairs = query?.split('&').filter_map(|pair| pair.split_once('='));
    let value = pairs.filter(|(name, _)| *name == "ifnonematch").map(|(_, value)| value).next()?;
    known(decoded(value)?.as_bytes())
}

/// Reads the service from the query: `service.name` and `service.environment`.
pub(super) fn by_query(query: Option<&str>) -> Option<ServiceQuery> {
    let mut asked = ServiceQuery::default();
    for pair in query?.split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        match name {
            "service.name" => asked.service = decoded(value)?,
            "service.environment" => asked.environment = decoded(value)?,
            _ => {}
        }
    }
    Some(asked)
}

/// A value of a query, without its escapes.
fn decoded(value: &str) -> Option<String> {
    if value.len() > 3 * LONGEST_NAME {
        return None;
    }
    let value = value.replace('+', " ");
    let text = percent::decode(value.as_bytes()).decode_utf8().ok()?;
    percent::is_valid(value.as_bytes()).then(|| text.into_owned())
}

/// Reads the service from the body: `{"service": {"name", "environment"}}`.
pub(super) fn by_body(body: &[u8]) -> Option<ServiceQuery> {
    let service = Value::of(body).object()?.find(b"service")?.object()?;
    let text = |name: &[u8]| service.find(name).and_then(Value::text).and_then(short);
    Some(ServiceQuery { service: text(b"name")?, environment: text(b"environment").unwrap_or_default() })
}

/// The name of the agent that a body of events is of: `{"metadata": {"service": {"agent": {"name"}}}}`.
pub(super) fn name_of(events: &[u8]) -> Option<Vec<u8>> {
    let line = events.split(|byte| *byte == b'\n').find(|line| !line.trim_ascii().is_empty())?;
    let metadata = Value::of(line).object()?.find(b"metadata")?.object()?;
    let agent = metadata.find(b"service")?.object()?.find(b"agent")?.object()?;
    agent.find(b"name").and_then(Value::text).and_then(short).map(String::into_bytes)
}

fn short(text: Text<'_>) -> Option<String> {
    let mut bytes = Vec::new();
    text.pieces(|piece| bytes.extend_from_slice(piece.get(..LONGEST_NAME).unwrap_or(piece)));
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(service: &str, environment: &str, rate: &str) -> AgentSettings {
        AgentSettings {
            service: service.to_owned(),
            environment: environment.to_owned(),
            settings: vec![("transaction_sample_rate".to_owned(), rate.to_owned())],
        }
    }

    fn asked(service: &str, environment: &str) -> ServiceQuery {
        ServiceQuery { service: service.to_owned(), environment: environment.to_owned() }
    }

    /// The service counts before the environment, and what names neither is for all others.
    #[test]
    fn agents_get_the_most_specific_settings() {
        let all = vec![
            settings("", "", "0.1"),
            settings("", "test", "0.2"),
            settings("shop", "", "0.3"),
            settings("shop", "test", "0.4"),
        ];
        let agents = Agents::new(all).unwrap();
        let rate = |service, environment| {
            let told = agents.of(&asked(service, environment)).unwrap();
            serde_json::from_str::<serde_json::Value>(told.text).unwrap()["transaction_sample_rate"].clone()
        };
        assert_eq!(rate("other", ""), "0.1");
        assert_eq!(rate("other", "test"), "0.2");
        assert_eq!(rate("shop", "production"), "0.3");
        assert_eq!(rate("shop", "test"), "0.4");
        assert!(Agents::new(vec![settings("shop", "", "1")]).unwrap().of(&asked("other", "")).is_none());
    }

    /// An agent that has what it is told is told that it has.
    #[test]
    fn tags_are_recognised() {
        let agents = Agents::new(vec![settings("shop", "", "1")]).unwrap();
        let told = agents.of(&asked("shop", "")).unwrap();
        let (_, tag) = told.headers.iter().find(|(name, _)| *name == "Etag").unwrap();
        assert_eq!(known(tag.as_bytes()), Some(told.tag));
        assert_eq!(agents.told(Some(asked("shop", "")), known(tag.as_bytes()), true, false).status(), 304);
        assert_eq!(agents.told(Some(asked("shop", "")), known(b"\"-\""), true, false).status(), 200);
        assert_eq!(agents.told(Some(asked("", "")), None, true, false).status(), 400);
        assert_eq!(agents.told(None, None, true, false).status(), 400);
        assert_eq!(agents.told(Some(asked("other", "")), None, true, false).status(), 200);
    }

    /// The name is where agents say it and nowhere else.
    #[test]
    fn the_agent_of_a_body_is_the_one_of_its_metadata() {
        let name = |body: &str| name_of(body.as_bytes()).map(|name| String::from_utf8(name).unwrap());
        let said = r#"{"metadata":{"service":{"name":"shop","agent":{"name":"rum-js","version":"5"}}}}"#;
        assert_eq!(name(said).as_deref(), Some("rum-js"));
        assert_eq!(name(&format!("\n\r\n{said}\n{{\"transaction\":{{}}}}")).as_deref(), Some("rum-js"));
        for none in [
            "",
            "{}",
            "[]",
            r#"{"metadata":{"service":{"agent":"rum-js"}}}"#,
            r#"{"metadata":{"agent":{"name":"rum-js"}}}"#,
            r#"{"transaction":{"service":{"agent":{"name":"rum-js"}}}}"#,
            r#"{"metadata":{"service":{"agent":{"name":null}}}}"#,
            &format!("{{\"metadata\":{{}}}}\n{said}"),
        ] {
            assert_eq!(name(none), None, "{none}");
        }
        let another = r#"{"metadata":{"service":{"agent":{"name":"rum-js\u0000"}}}}"#;
        assert_ne!(name(another).as_deref(), Some("rum-js"));
    }

    #[test]
    fn questions_are_read_in_both_forms() {
        let query = by_query(Some("service.name=a%20b%2fc&x=y&service.environment=t+u"));
        assert_eq!(query, Some(asked("a b/c", "t u")));
        assert_eq!(by_query(Some("service.name=%zz")), None);
        assert_eq!(by_query(Some("x")), Some(asked("", "")));
        assert_eq!(
            by_body(br#"{"service": {"name": "a\u0062", "environment": null}}"#),
            Some(asked("ab", ""))
        );
        for bad in [&b""[..], b"{}", b"[]", b"{\"service\":1}", b"{\"service\":{\"name\":"] {
            assert_eq!(by_body(bad), None);
        }
    }
}
