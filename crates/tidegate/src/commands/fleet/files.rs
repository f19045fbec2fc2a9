//! Files of agents and for agents: sent and fetched piece by piece.

use super::client::{self, Client};
use super::{done, list, show, text};
use crate::cli::{AgentFileCommand, ArtifactCommand, FleetArgs, UploadCommand};
use crate::{Failure, Outcome, output};
use ring::digest;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::Path;

/// What is read at a time to hash a file, in bytes.
const BUFFER: usize = 64 << 10;
/// No gateway asks for longer chunks, in bytes.
const LONGEST_CHUNK: u64 = 16 << 20;
const COLUMNS: [&str; 5] = ["id", "name", "size", "created_at", "sha256"];

/// `tidegate fleet upload …`
pub(super) fn upload(command: &UploadCommand) -> Outcome {
    match command {
        UploadCommand::Ls(args) => {
            let found = Client::new(args)?.get("uploads")?;
            list(args, &found, "uploads", &["id", "agent_id", "action_id", "name", "size", "created_at"])
        }
        UploadCommand::Get { id, output: None, fleet } => {
            fetch(fleet, id, &mut io::stdout().lock()).map(drop)
        }
        UploadCommand::Get { id, output: Some(path), fleet } => get(fleet, id, path),
        UploadCommand::Rm { id, fleet } => {
            Client::new(fleet)?.delete(&format!("uploads/{}", client::encoded(id)))?;
            done(fleet, &format!("upload {id} is removed"))
        }
    }
}

/// `tidegate fleet artifact …`
pub(super) fn artifact(command: &ArtifactCommand) -> Outcome {
    match command {
        ArtifactCommand::Put { file, id, decoded_sha256, fleet } => {
            let id = match id {
                Some(id) => id.clone(),
                None => name_of(file),
            };
            let put = put(fleet, file, |client, mut order| {
                if let Some(hash) = decoded_sha256 {
                    order["decoded_sha256"] = json!(hash);
                }
                client.put(&format!("artifacts/{}", client::encoded(&id)), &order)
            })?;
            let sha256 = decoded_sha256.as_deref().unwrap_or_else(|| text(&put, "sha256"));
            if fleet.json {
                return show(fleet, &put);
            }
            Ok(output::print(&format!("/api/fleet/artifacts/{id}/{sha256}\n"))?)
        }
        ArtifactCommand::Ls(args) => list(args, &Client::new(args)?.get("artifacts")?, "artifacts", &COLUMNS),
        ArtifactCommand::Rm { id, sha256, fleet } => {
            let (id, sha256) = (client::encoded(id), client::encoded(sha256));
            Client::new(fleet)?.delete(&format!("artifacts/{id}/{sha256}"))?;
            done(fleet, &format!("artifact {id} is removed"))
        }
    }
}

/// `tidegate fleet file …`
pub(super) fn file(command: &AgentFileCommand) -> Outcome {
    match command {
        AgentFileCommand::Put { file, fleet } => {
            let put = put(fleet, file, |client, order| client.post("files", &order))?;
            if fleet.json {
                return show(fleet, &put);
            }
            Ok(output::print(&format!("{}\n", text(&put, "id")))?)
        }
        AgentFileCommand::Ls(args) => list(args, &Client::new(args)?.get("files")?, "files", &COLUMNS),
        AgentFileCommand::Rm { id, fleet } => {
            Client::new(fleet)?.delete(&format!("files/{}", client::encoded(id)))?;
            done(fleet, &format!("file {id} is removed"))
        }
    }
}

/// Fetches an upload into a file, which is not there when it fails.
fn get(fleet: &FleetArgs, id: &str, path: &Path) -> Outcome {
    let failed = |error: io::Error| Failure(format!("writing {}: {error}", path.display()));
    // Diagnostics have what their host keeps to itself.
    let mut file = tidegate_files::open(path, tidegate_files::Access::Owner, |options| {
        options.write(true).create(true).truncate(true)
    })
    .map_err(failed)?;
    match fetch(fleet, id, &mut file).and_then(|bytes| file.sync_all().map_err(failed).map(|()| bytes)) {
        Ok(bytes) => done(fleet, &format!("{bytes} bytes are in {}", path.display())),
        Err(error) => {
            // What is not whole is of no use; that it cannot be removed says no more than the first error.
            let _ = std::fs::remove_file(path);
            Err(error)
        }
    }
}

fn fetch(fleet: &FleetArgs, id: &str, into: &mut dyn Write) -> Result<u64, Failure> {
    let fetched = Client::new(fleet)?.download(&format!("uploads/{}", client::encoded(id)), into)?;
    into.flush().map_err(|error| Failure(format!("writing the upload: {error}")))?;
    Ok(fetched)
}

/// Sends a file in chunks; `begin` asks for it. What the gateway says of the file.
fn put(
    fleet: &FleetArgs,
    path: &Path,
    begin: impl FnOnce(&mut Client, Value) -> Result<Value, Failure>,
) -> Result<Value, Failure> {
    let failed = |error: io::Error| Failure(format!("reading {}: {error}", path.display()));
    let mut file = File::open(path).map_err(failed)?;
    let (size, sha256) = measured(&mut file).map_err(failed)?;
    let mut client = Client::new(fleet)?;
    let begun = begin(&mut client, json!({"name": name_of(path), "size": size, "sha256": sha256}))?;
    let id = client::encoded(text(&begun, "upload_id"));
    let chunk = begun.get("chunk_size").and_then(Value::as_u64).unwrap_or_default().clamp(1, LONGEST_CHUNK);
    let sent = send(&mut client, &id, &mut file, chunk)
        .and_then(|()| client.post_nothing(&format!("incoming/{id}")));
    if sent.is_err() {
        // It may be gone already; otherwise it would take room for a day.
        let _ = client.delete(&format!("incoming/{id}"));
    }
    sent.map_err(|Failure(error)| Failure(format!("{}: {error}", path.display())))
}

/// Sends the chunks of a file.
fn send(client: &mut Client, id: &str, file: &mut File, chunk: u64) -> Result<(), Failure> {
    let failed = |error: io::Error| Failure(format!("reading the file: {error}"));
    file.rewind().map_err(failed)?;
    let mut buffer = Vec::new();
    for number in 0_u64.. {
        buffer.clear();
        io::copy(&mut Read::by_ref(file).take(chunk), &mut buffer).map_err(failed)?;
        if buffer.is_empty() {
            break;
        }
        client.put_bytes(&format!("incoming/{id}/{number}"), &buffer)?;
    }
    Ok(())
}

/// The length of a file, and its SHA-256 in hexadecimal digits.
fn measured(file: &mut File) -> io::Result<(u64, String)> {
    let (mut context, mut size, mut buffer) = (digest::Context::new(&digest::SHA256), 0, vec![0; BUFFER]);
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            break;
        }
        context.update(buffer.get(..read).unwrap_or_default());
        size += read as u64;
    }
    let hash = context.finish();
    let text = hash.as_ref().iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    Ok((size, text))
}

fn name_of(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
