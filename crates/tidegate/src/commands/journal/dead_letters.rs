//! `tidegate journal dead-letters`, `resend` and `discard`: what peers rejected, and what becomes of it.

use super::{data, time};
use crate::cli::{DeadLetterArgs, DiscardArgs, ResendArgs};
use crate::commands::request_sender::{RequestSender, StoredRequest, Unsent};
use crate::{Failure, Outcome, output};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use tidegate_arena::Bytes;
use tidegate_files::Access;
use tidegate_journal::dead_letters::{self, Discarded, StoredDeadLetter, mark_kept, mark_sent, read};
use tidegate_journal::{Encoding, Protocol};

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
    let Discarded { letters, items, .. } = dead_letters::discard(&folder, &args.sink, args.through)?;
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
    let mut sender = RequestSender::new(&args.receiver, &args.data.config)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (mut sent, mut items, mut refused) = (0u64, 0u64, 0u64);
    let outcome = runtime.block_on(async {
        let mut letters = read(&folder, false)?;
        while let Some(letter) = letters.next() {
            if args.sink.as_ref().is_some_and(|sink| *sink != letter.sink) {
                continue;
            }
            // A letter whose body has been damaged on disk cannot be sent by anybody.
            let Ok(body) = letters.body() else { continue };
            let label = format!("the letter of {} for `{}`", time(letter.at_ns), letter.sink);
            let request = StoredRequest { meta: &letter.meta, body: &body, to: None, label: &label };
            match sender.send(request).await {
                Ok(()) => {}
                // Those after it may be wanted all the same.
                Err(Unsent::Refused(message) | Unsent::Unknown(message)) => {
                    mark_kept(&folder, &letter.sink, letter.id, &[])?;
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
    output::print(&format!("sent {sent} letters with {items} items to {}\n", sender.target()))?;
    outcome?;
    match refused {
        0 => Ok(()),
        refused => Err(Failure(format!("{refused} dead letters were rejected permanently, and are kept"))),
    }
}

fn folder(data: PathBuf) -> PathBuf {
    data.join("dead-letters")
}

/// On one line, and with nothing that a terminal obeys: it was said by a peer.
fn plain(text: &str) -> String {
    tidegate_plain::line(text.trim()).into_owned()
}
