//! `tidegate journal dead-letters` and `tidegate journal resend`: what peers rejected, and sending it again.

use super::{data, time};
use crate::cli::{DataArgs, ResendArgs};
use crate::commands::check::config;
use crate::{Failure, Outcome, output};
use std::path::PathBuf;
use std::time::Duration;
use tidegate_arena::Bytes;
use tidegate_journal::Protocol;
use tidegate_journal::dead_letters::{Letter, mark_refused, mark_sent, read};
use tidegate_load::remote_write::Version;
use tidegate_load::{Connection, Response, Target};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(60);
/// How often a letter is sent to a gateway that says that it may be sent again.
const ATTEMPTS: usize = 5;

/// `tidegate journal dead-letters`
pub(super) fn list(args: &DataArgs) -> Outcome {
    let letters = read(&folder(data(args)?), false)?;
    output::print(&format!(
        "{:<20}  {:<20} {:>10} {:>10}  {}\n",
        "time", "sink", "items", "bytes", "reason"
    ))?;
    for letter in letters {
        output::print(&format!(
            "{:<20}  {:<20} {:>10} {:>10}  {}\n",
            time(letter.at_ns),
            letter.sink,
            letter.meta.items,
            Bytes(letter.body_len.into()),
            plain(&letter.reason),
        ))?;
    }
    Ok(())
}

/// `tidegate journal resend`
pub(super) fn resend(args: &ResendArgs) -> Outcome {
    let folder = folder(data(&args.data)?);
    let target = target(args)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut sent, mut items, mut refused) = (0u64, 0u64, 0u64);
    let outcome = runtime.block_on(async {
        let mut letters = read(&folder, false)?;
        let mut connection = None;
        while let Some(letter) = letters.next() {
            if args.sink.as_ref().is_some_and(|sink| *sink != letter.sink) {
                continue;
            }
            let Some(version) = version(&letter) else { continue };
            // A letter whose body has been damaged on disk cannot be sent by anybody.
            let Ok(body) = letters.body() else { continue };
            match send(&target, &mut connection, version, &letter, &body).await {
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
    output::print(&format!("sent {sent} letters with {items} items to {target}\n"))?;
    outcome?;
    match refused {
        0 => Ok(()),
        refused => Err(Failure(format!("{refused} letters were refused for good, and are kept"))),
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
    connection: &mut Option<Connection>,
    version: Version,
    letter: &Letter,
    body: &[u8],
) -> Result<(), Unsent> {
    let unsent = |what: &dyn std::fmt::Display| {
        let (at, items) = (time(letter.at_ns), letter.meta.items);
        format!("sending the letter of {at} for `{}` with {items} items to {target}: {what}", letter.sink)
    };
    let failed =
        |what: &dyn std::fmt::Display| Unsent::Failed(unsent(what) + "; it and those after it are kept");
    for _ in 0..ATTEMPTS {
        let mut open = match connection.take().filter(Connection::is_reusable) {
            Some(open) => open,
            None => Connection::open(target, PATIENCE).await.map_err(|error| failed(&error))?,
        };
        let response = open.write(target, version, body, PATIENCE).await.map_err(|error| failed(&error))?;
        *connection = Some(open);
        match response {
            Response { status: 200..300, .. } => return Ok(()),
            Response { status: 429 | 503, retry_after: Some(seconds), .. } => {
                tokio::time::sleep(Duration::from_secs(seconds).min(PATIENCE)).await;
            }
            Response { status, body, .. } => {
                let answer = format!("{status}: {}", plain(&body));
                return Err(match status {
                    400..500 if status != 408 && status != 429 => Unsent::Refused(unsent(&answer)),
                    _ => failed(&answer),
                });
            }
        }
    }
    Err(failed(&"it has no room for it now"))
}

/// Where to send to: `--url`, or the gateway that the configuration describes.
fn target(args: &ResendArgs) -> Result<Target, Failure> {
    let Some(url) = &args.url else {
        return Ok(Target::remote_write(config(&args.data.config)?.listen.http));
    };
    let mut target: Target = url.parse()?;
    if target.path == "/" {
        target.path = "/api/v1/write".to_owned();
    }
    Ok(target)
}

fn folder(data: PathBuf) -> PathBuf {
    data.join("dead-letters")
}

fn version(letter: &Letter) -> Option<Version> {
    match letter.meta.protocol {
        Protocol::RemoteWrite1 => Some(Version::V1),
        Protocol::RemoteWrite2 => Some(Version::V2),
        _ => None,
    }
}

/// On one line, and with nothing that would move the cursor of whoever reads it: it was said by a peer.
fn plain(text: &str) -> String {
    let escaped = |character: char| match character.is_control() {
        true => character.escape_default().to_string(),
        false => character.to_string(),
    };
    text.trim().chars().map(escaped).collect()
}
