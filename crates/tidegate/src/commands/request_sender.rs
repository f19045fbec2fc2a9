//! Sends stored bodies to a gateway again, as the requests that they came in.

mod link;

use self::link::{GatewayStream, Link};
use super::admin::reachable;
use super::check::config;
use super::token::authorization;
use crate::cli::{ConfigArgs, ReceiverArgs};
use crate::{Failure, output};
use std::fmt::Display;
use std::time::{Duration, Instant};
use tidegate_admission::{RESEND_HEADER, SINK_HEADER};
use tidegate_config::Listener;
use tidegate_journal::{Meta, Protocol, Signal};
use tidegate_load::remote_write::Version;
use tidegate_load::{Connection, RequestError, Response, Target};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a body is tried again while the gateway answers that it should be.
const BUSY: Duration = Duration::from_secs(3600);
/// Where a gateway takes documents, unless it was told otherwise.
const BULK: &str = "/elasticsearch/_bulk";

/// A gateway, and a connection to it that is used again and again.
pub(super) struct RequestSender {
    link: Link,
    authorization: String,
    connection: Option<Connection<GatewayStream>>,
}

/// One body to be sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct StoredRequest<'a> {
    /// Its metadata.
    pub(super) meta: &'a Meta,
    /// The body, as its metadata says.
    pub(super) body: &'a [u8],
    /// The only sink that it is for; `None` for all.
    pub(super) to: Option<&'a str>,
    /// Its name in messages: `record 12`.
    pub(super) label: &'a str,
}

/// Why a body was not sent.
#[derive(Debug)]
pub(super) enum Unsent {
    /// It was refused for good; others may not be.
    Refused(String),
    /// The gateway has no such sink, or does not serve its protocol.
    Unknown(String),
    /// Nothing can be sent now.
    Failed(String),
}

impl RequestSender {
    /// The gateway at `url`, or the one that the configuration describes. The path of a URL, if any, is the one of remote write, or
    /// comes before those of the other protocols.
    ///
    /// # Errors
    /// When there is no such gateway, or a certificate or the token cannot be read.
    pub(super) fn new(receiver: &ReceiverArgs, by_config: &ConfigArgs) -> Result<RequestSender, Failure> {
        let ReceiverArgs { url, ca_file, token, token_file } = receiver;
        let link = match url {
            Some(url) => Link::to_url(url, ca_file.as_deref())?,
            None => {
                let config = config(by_config)?;
                let authority = reachable(config.listen.http).to_string();
                let target = Target { authority, path: "/".to_owned() };
                match config.listen.tls.effective(Listener::Http) {
                    Some(tls) => Link::to_own(target, tls.cert_file)?,
                    None => Link::plain(target),
                }
            }
        };
        let authorization = authorization(token_file.as_deref(), token.as_deref())?;
        Ok(RequestSender { link, authorization, connection: None })
    }

    /// Its URL without the query, which may hold a key.
    pub(super) fn target(&self) -> String {
        self.link.shown()
    }

    /// Sends a body until it is accepted.
    ///
    /// # Errors
    /// [`Unsent`].
    pub(super) async fn send(&mut self, request: StoredRequest<'_>) -> Result<(), Unsent> {
        let StoredRequest { meta, body, to, label } = request;
        let target = self.target();
        let unsent =
            |what: &dyn Display| format!("sending {label} with {} items to {target}: {what}", meta.items);
        let failed = |what: &dyn Display| Unsent::Failed(unsent(what) + "; it and what follows is kept");
        let Some(form) = RequestFormat::of(meta) else {
            let name = meta.protocol.name();
            return Err(Unsent::Refused(unsent(&format!("there is no request for the protocol `{name}`"))));
        };
        let head = form.head(&self.link.target, &self.authorization, (meta.tenant.as_str(), to), body.len());
        let (began, mut last) = (Instant::now(), None);
        while began.elapsed() < BUSY {
            let (mut open, is_used) = match self.connection.take().filter(Connection::is_reusable) {
                Some(open) => (open, true),
                None => {
                    let opened = self.link.open(PATIENCE).await;
                    (opened.map_err(|error| failed(&error))?, false)
                }
            };
            let response = match open.send(head.as_bytes(), body, PATIENCE).await {
                Ok(response) => response,
                // The gateway closes connections on which nothing comes for a while.
                Err(RequestError::Connection(_)) if is_used => continue,
                Err(error) => return Err(failed(&error)),
            };
            self.connection = Some(open);
            match response {
                // A `_bulk` is answered item by item; what it took of the body it would take again.
                Response { status: 200..300, body, .. } if form.path == BULK && has_errors(&body) => {
                    let words = format!("some of its items were refused: {}", plain(&body));
                    return Err(Unsent::Refused(unsent(&words)));
                }
                Response { status: 200..300, .. } => return Ok(()),
                Response { status: status @ (429 | 503), retry_after: Some(seconds), body, .. } => {
                    let answer = format!("{status}: {}", plain(&body));
                    if last.as_ref() != Some(&answer) {
                        output::note(&format!("waiting, since {target} answers {answer}"));
                        last = Some(answer);
                    }
                    tokio::time::sleep(Duration::from_secs(seconds).min(PATIENCE)).await;
                }
                Response { status, body, .. } => {
                    let answer = format!("{status}: {}", plain(&body));
                    return Err(match status {
                        // That says something about the gateway and nothing about the body.
                        404 => Unsent::Unknown(unsent(&answer)),
                        // And that about the sender.
                        401 | 403 => failed(&format!(
                            "{answer}; name the file with an admin's token (`access.admin_credentials_file`) in --token-file"
                        )),
                        400..500 if status != 408 && status != 429 => Unsent::Refused(unsent(&answer)),
                        _ => failed(&answer),
                    });
                }
            }
        }
        Err(failed(&format!("for {BUSY:?} it answered {}", last.unwrap_or_default())))
    }
}

/// How a body is sent.
#[derive(Debug, Clone, Copy)]
struct RequestFormat {
    /// Where its protocol is usually served.
    path: &'static str,
    content_type: &'static str,
    encoding: &'static str,
    /// Additional headers for remote write.
    version: Option<&'static str>,
}

impl RequestFormat {
    /// Nothing for what is not sent over HTTP by anybody.
    fn of(meta: &Meta) -> Option<RequestFormat> {
        let encoding = meta.encoding.name();
        let remote_write = |version: Version| RequestFormat {
            path: "/api/v1/write",
            content_type: version.content_type(),
            encoding,
            version: Some(version.header()),
        };
        let lines =
            |path| RequestFormat { path, content_type: "application/x-ndjson", encoding, version: None };
        let otlp = |content_type| {
            let path = match meta.signal {
                Signal::Traces => "/v1/traces",
                Signal::Metrics => "/v1/metrics",
                Signal::Logs => "/v1/logs",
                Signal::Profiles => "/v1development/profiles",
                Signal::Events => return None,
            };
            Some(RequestFormat { path, content_type, encoding, version: None })
        };
        match meta.protocol {
            Protocol::RemoteWrite1 => Some(remote_write(Version::V1)),
            Protocol::RemoteWrite2 => Some(remote_write(Version::V2)),
            Protocol::Otlp => otlp("application/x-protobuf"),
            Protocol::OtlpJson => otlp("application/json"),
            Protocol::Bulk => Some(lines(BULK)),
            Protocol::Intake => Some(lines("/intake/v2/events")),
            Protocol::Cri => None,
        }
    }

    /// The head of the request that carries it, for the tenant whose it is, of whom nobody's has an empty name, and for the only sink
    /// that it is for.
    fn head(
        &self,
        target: &Target,
        authorization: &str,
        (tenant, to): (&str, Option<&str>),
        len: usize,
    ) -> String {
        let RequestFormat { path, content_type, encoding, version } = self;
        let given = target.path.trim_end_matches('/');
        let path = match version {
            Some(_) if !given.is_empty() => given.to_owned(),
            Some(_) => (*path).to_owned(),
            // A path that was given stands for the gateway's own.
            None if *path == BULK && !given.is_empty() => format!("{given}/_bulk"),
            None => format!("{given}{path}"),
        };
        let version = version.map(|version| format!("X-Prometheus-Remote-Write-Version: {version}\r\n"));
        let to = to.map(|sink| format!("{SINK_HEADER}: {sink}\r\n"));
        format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: tidegate\r\nContent-Type: {content_type}\r\n\
             Content-Encoding: {encoding}\r\n{authorization}{RESEND_HEADER}: {tenant}\r\n{}{}Content-Length: {len}\r\n\r\n",
            target.authority,
            to.unwrap_or_default(),
            version.unwrap_or_default(),
        )
    }
}

/// Whether the answer to a `_bulk`, or its beginning, says that items were refused.
fn has_errors(answer: &str) -> bool {
    let (_, said) = answer.split_once("\"errors\":").unwrap_or_default();
    said.trim_start().starts_with("true")
}

/// On one line, and with nothing that a terminal obeys: it was said by a peer.
fn plain(text: &str) -> String {
    tidegate_plain::line(text.trim()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strips the path of remote write from the given URL, so that the paths of OTLP can be appended.
    #[test]
    fn bodies_go_to_the_path_of_their_protocol() {
        let form = |version| RequestFormat { path: "/v1/logs", content_type: "t", encoding: "gzip", version };
        let start = |form: RequestFormat, url: &str| {
            let head = form.head(&url.parse().unwrap(), "", ("shop", Some("loki")), 7);
            assert!(head.contains("\r\nTidegate-Tenant: shop\r\nTidegate-Sink: loki\r\n"), "{head}");
            head.split(" HTTP").next().unwrap_or_default().to_owned()
        };
        assert_eq!(start(form(None), "http://a"), "POST /v1/logs");
        assert_eq!(start(form(None), "http://a/otlp/"), "POST /otlp/v1/logs");
        let bulk = RequestFormat { path: BULK, ..form(None) };
        assert_eq!(start(bulk, "http://a"), "POST /elasticsearch/_bulk");
        assert_eq!(start(bulk, "http://a/es/"), "POST /es/_bulk");
        assert_eq!(start(form(Some("0.1.0")), "http://a/push"), "POST /push");
        assert_eq!(start(form(Some("0.1.0")), "http://a/"), "POST /v1/logs");
    }
}
