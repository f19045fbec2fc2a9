//! `tidegate journal dead-letters`, `resend` and `discard`: what peers rejected, and what becomes of it.

use super::{data, time};
use crate::cli::{DeadLetterArgs, DiscardArgs, ResendArgs};
use crate::commands::check::config;
use crate::commands::token::authorization;
use crate::{Failure, Outcome, output};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tidegate_admission::RESEND_HEADER;
use tidegate_arena::Bytes;
use tidegate_files::Access;
use tidegate_journal::dead_letters::{StoredDeadLetter, mark_refused, mark_sent, read};
use tidegate_journal::{Encoding, Protocol, Signal};
use tidegate_load::remote_write::Version;
use tidegate_load::{Connection, Response, Target};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a letter is sent to a gateway that says that it may be sent again.
const ATTEMPTS: usize = 5;

/// `tidegate journal dead-letters`
pub(super) fn list(args: &DeadLetterArgs) -> Outcome {
    let mut letters = read(&folder(data(&args.data)?), false)?;
    if let Some(folder) = &args.export {
        tidegate_files::create_folder(folder, Access::Owner).map_err(|error| unwritten(folder, &error))?;
    }
    output::print(&format!(
        "{:>8}  {:<20}  {:<20} {:>10} {:>10}  {}\n",
        "number", "time", "sink", "items", "bytes", "reason"
    ))?;
    let mut damaged = 0;
    while let Some(letter) = letters.next() {
        if args.sink.as_ref().is_some_and(|sink| *sink != letter.sink) {
            continue;
        }
        output::print(&format!(
            "{:>8}  {:<20}  {:<20} {:>10} {:>10}  {}\n",
            letter.id,
            time(letter.at_ns),
            plain(&letter.sink),
            letter.meta.items,
            Bytes(letter.body_len.into()),
            plain(&letter.reason),
        ))?;
        match (&args.export, args.export.as_ref().map(|_| letters.body())) {
            (Some(folder), Some(Ok(body))) => write_body(&folder.join(file_name(&letter)), &body)?,
            (_, Some(Err(_))) => damaged += 1,
            _ => {}
        }
    }
    match damaged {
        0 => Ok(()),
        damaged => Err(Failure(format!("{damaged} dead letters are damaged on disk, and were not exported"))),
    }
}

/// Writes a body that nobody but its owner may read, as the letters themselves.
fn write_body(path: &Path, body: &[u8]) -> Outcome {
    let unwritten = |error| unwritten(path, &error);
    let mut file =
        tidegate_files::open(path, Access::Owner, |options| options.write(true).create(true).truncate(true))
            .map_err(unwritten)?;
    file.write_all(body).map_err(unwritten)
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure(format!("writing dead letters to {}: {error}", path.display()))
}

/// The name of an exported body says what it is.
fn file_name(letter: &StoredDeadLetter) -> String {
    let form = match letter.meta.protocol {
        Protocol::RemoteWrite1 => "write-1.pb",
        Protocol::RemoteWrite2 => "write-2.pb",
        Protocol::Otlp => "otlp.pb",
        Protocol::OtlpJson => "otlp.json",
        Protocol::Intake => "intake.ndjson",
        Protocol::Bulk => "bulk.ndjson",
        Protocol::Cri => "cri.log",
    };
    let coding = match letter.meta.encoding {
        Encoding::Identity => "",
        Encoding::Snappy => ".snappy",
        Encoding::Gzip => ".gz",
        Encoding::Zstd => ".zst",
        Encoding::Deflate => ".zlib",
    };
    format!("{:08}-{}-{form}{coding}", letter.id, letter.meta.signal.name())
}

/// `tidegate journal discard`
pub(super) fn discard(args: &DiscardArgs) -> Outcome {
    let folder = folder(data(&args.data)?);
    let (mut letters, mut items) = (0_u64, 0_u64);
    for letter in read(&folder, false)? {
        if letter.sink == args.sink && args.through.is_none_or(|through| letter.id <= through) {
            (letters, items) = (letters + 1, items + u64::from(letter.meta.items));
            // One that was refused again is kept beside the others, and is marked by itself.
            mark_sent(&folder, &letter.sink, letter.id)?;
        }
    }
    match letters {
        1.. => Ok(output::print(&format!("discarded {letters} dead letters with {items} items\n"))?),
        0 => {
            let sink = plain(&args.sink);
            Err(Failure(format!(
                "there is no dead letter of `{sink}`: `tidegate journal dead-letters` lists them"
            )))
        }
    }
}

/// `tidegate journal resend`
pub(super) fn resend(args: &ResendArgs) -> Outcome {
    let folder = folder(data(&args.data)?);
    let target = target(args)?;
    let authorization = authorization(args.token_file.as_deref(), args.token.as_deref())?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut sent, mut items, mut refused) = (0u64, 0u64, 0u64);
    let outcome = runtime.block_on(async {
        let mut letters = read(&folder, false)?;
        let mut connection = None;
        while let Some(letter) = letters.next() {
            if args.sink.as_ref().is_some_and(|sink| *sink != letter.sink) {
                continue;
            }
            let Some(form) = RequestFormat::of(&letter) else { continue };
            // A letter whose body has been damaged on disk cannot be sent by anybody.
            let Ok(body) = letters.body() else { continue };
            match send(&target, &authorization, &mut connection, form, &letter, &body).await {
                Ok(()) => {}
                // Those after it may be wanted all the same.
                Err(Unsent::Refused(message)) => {
                    mark_refused(&folder, &letter.sink, letter.id)?;
                    crate::output::error(&message);
                    refused += 1;
                    continue;
                }
                Err(Unsent::Failed(message)) => return Err(Failure(message)),
            }
            mark_sent(&folder, &letter.sink, letter.id)?;
            (sent, items) = (sent + 1, items + u64::from(letter.meta.items));
        }
        Ok(())
    });
    let target = shown(&target);
    output::print(&format!("sent {sent} letters with {items} items to {target}\n"))?;
    outcome?;
    match refused {
        0 => Ok(()),
        refused => Err(Failure(format!("{refused} dead letters were rejected permanently, and are kept"))),
    }
}

/// Why a letter was not sent.
enum Unsent {
    /// It was refused for good; others may not be.
    Refused(String),
    /// Nothing can be sent now.
    Failed(String),
}

/// Sends one letter until it is accepted.
async fn send(
    target: &Target,
    authorization: &str,
    connection: &mut Option<Connection>,
    form: RequestFormat,
    letter: &StoredDeadLetter,
    body: &[u8],
) -> Result<(), Unsent> {
    let unsent = |what: &dyn std::fmt::Display| {
        let (at, items, target) = (time(letter.at_ns), letter.meta.items, shown(target));
        format!("sending the letter of {at} for `{}` with {items} items to {target}: {what}", letter.sink)
    };
    let failed =
        |what: &dyn std::fmt::Display| Unsent::Failed(unsent(what) + "; it and those after it are kept");
    for _ in 0..ATTEMPTS {
        let mut open = match connection.take().filter(Connection::is_reusable) {
            Some(open) => open,
            None => Connection::open(target, PATIENCE).await.map_err(|error| failed(&error))?,
        };
        let head = form.head(target, authorization, letter.meta.tenant.as_str(), body.len());
        let response = open.send(head.as_bytes(), body, PATIENCE).await.map_err(|error| failed(&error))?;
        *connection = Some(open);
        match response {
            // A `_bulk` is answered item by item; what it took of the letter it would take again.
            Response { status: 200..300, body, .. } if form.path == BULK && has_errors(&body) => {
                return Err(Unsent::Refused(unsent(&format!(
                    "some of its items were refused: {}",
                    plain(&body)
                ))));
            }
            Response { status: 200..300, .. } => return Ok(()),
            Response { status: 429 | 503, retry_after: Some(seconds), .. } => {
                tokio::time::sleep(Duration::from_secs(seconds).min(PATIENCE)).await;
            }
            Response { status, body, .. } => {
                let answer = format!("{status}: {}", plain(&body));
                return Err(match status {
                    // That says something about the sender and nothing about the letter.
                    401 | 403 => failed(&format!(
                        "{answer}; name the file with an admin's token (`access.admin_credentials_file`) in --token-file"
                    )),
                    400..500 if status != 408 && status != 429 => Unsent::Refused(unsent(&answer)),
                    _ => failed(&answer),
                });
            }
        }
    }
    Err(failed(&"it is overloaded now"))
}

/// Where to send to: `--url`, or the gateway that the configuration describes. The path, if any, is the one of
/// remote write, or comes before those of OTLP.
fn target(args: &ResendArgs) -> Result<Target, Failure> {
    match &args.url {
        Some(url) => Ok(url.parse()?),
        None => {
            let authority = config(&args.data.config)?.listen.http.to_string();
            Ok(Target { authority, path: "/".to_owned() })
        }
    }
}

/// Where it is, without what its query says: that may be a key.
fn shown(target: &Target) -> String {
    let url = target.to_string();
    url.split_once('?').map_or(url.clone(), |(path, _)| format!("{path}?***"))
}

fn folder(data: PathBuf) -> PathBuf {
    data.join("dead-letters")
}

/// Where a gateway takes documents, unless it was told otherwise.
const BULK: &str = "/elasticsearch/_bulk";

/// How a letter is sent.
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
    fn of(letter: &StoredDeadLetter) -> Option<RequestFormat> {
        let encoding = letter.meta.encoding.name();
        let remote_write = |version: Version| RequestFormat {
            path: "/api/v1/write",
            content_type: version.content_type(),
            encoding,
            version: Some(version.header()),
        };
        match letter.meta.protocol {
            Protocol::RemoteWrite1 => Some(remote_write(Version::V1)),
            Protocol::RemoteWrite2 => Some(remote_write(Version::V2)),
            Protocol::Otlp => {
                let path = match letter.meta.signal {
                    Signal::Traces => "/v1/traces",
                    Signal::Metrics => "/v1/metrics",
                    Signal::Logs => "/v1/logs",
                    Signal::Profiles => "/v1development/profiles",
                    Signal::Events => return None,
                };
                Some(RequestFormat { path, content_type: "application/x-protobuf", encoding, version: None })
            }
            Protocol::Bulk => {
                let content_type = "application/x-ndjson";
                Some(RequestFormat { path: BULK, content_type, encoding, version: None })
            }
            Protocol::OtlpJson | Protocol::Intake | Protocol::Cri => None,
        }
    }

    /// The head of the request that carries it, for the tenant whose it is; nobody's has an empty name.
    fn head(&self, target: &Target, authorization: &str, tenant: &str, len: usize) -> String {
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
        format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nUser-Agent: tidegate\r\nContent-Type: {content_type}\r\n\
             Content-Encoding: {encoding}\r\n{authorization}{RESEND_HEADER}: {tenant}\r\n{}Content-Length: {len}\r\n\r\n",
            target.authority,
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
    fn dead_letters_go_to_the_path_of_their_protocol() {
        let form = |version| RequestFormat { path: "/v1/logs", content_type: "t", encoding: "gzip", version };
        let start = |form: RequestFormat, url: &str| {
            let head = form.head(&url.parse().unwrap(), "", "shop", 7);
            assert!(head.contains("\r\nTidegate-Tenant: shop\r\n"), "{head}");
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
