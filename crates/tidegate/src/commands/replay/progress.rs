//! A file that says how far a replay came.

use super::selection::Selection;
use crate::Failure;
use crate::cli::ReplayArgs;
use crate::commands::journal::data;
use serde_json::{Value, json};
use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use tidegate_files::Access;

const VERSION: u64 = 1;

/// The file of one replay. It is replaced after each request that the gateway acknowledged, and is gone when all is sent.
#[derive(Debug)]
pub(super) struct Progress {
    path: PathBuf,
    /// Held to the end of the process: two replays must not write to one file.
    _lock: Option<File>,
    selection: Selection,
    position: Option<String>,
}

impl Progress {
    /// The progress of what the arguments ask for, and what that is: where it goes on, the times are those with which it began.
    ///
    /// # Errors
    /// When the file cannot be read, or is that of another replay.
    pub(super) fn open(
        args: &ReplayArgs,
        selection: Selection,
        to: &str,
    ) -> Result<(Progress, Selection), Failure> {
        let path = match &args.progress {
            Some(path) => path.clone(),
            None => data(&args.data)?.join("replay").join(format!("{}.json", file_name(to)?)),
        };
        let lock = if args.dry_run { None } else { Some(locked(&path)?) };
        let begun = if args.restart { None } else { begun(&path)? };
        let selection = match &begun {
            None => selection,
            Some(begun) if begun.asked == selection.asked => {
                Selection { from_ns: begun.from_ns, until_ns: begun.until_ns, ..selection }
            }
            Some(begun) => {
                return Err(Failure(format!(
                    "{} says that another replay was interrupted: {}. Finish it with the same arguments, or begin this one with --restart",
                    path.display(),
                    begun.asked,
                )));
            }
        };
        let position = begun.map(|begun| begun.position);
        if let Some(position) = &position {
            crate::output::note(&format!(
                "going on behind {position}, where it was interrupted; --restart begins anew"
            ));
        }
        Ok((Progress { path, _lock: lock, selection: selection.clone(), position }, selection))
    }

    /// The position after the last acknowledged request, if it was interrupted.
    pub(super) fn position(&self) -> Option<&str> {
        self.position.as_deref()
    }

    /// Notes how far it is: for the end of this process or of the machine, whatever that is.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(super) fn save(&mut self, position: &str) -> Result<(), Failure> {
        let Selection { from_ns, until_ns, asked, .. } = &self.selection;
        let text = json!({
            "version": VERSION, "asked": asked, "from_ns": from_ns, "until_ns": until_ns, "position": position,
        });
        let fresh = self.path.with_extension("new");
        let write = || {
            let mut file = File::create(&fresh)?;
            file.write_all(format!("{text}\n").as_bytes())?;
            file.sync_data()?;
            std::fs::rename(&fresh, &self.path)?;
            match self.path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
                Some(folder) => File::open(folder)?.sync_all(),
                None => Ok(()),
            }
        };
        write().map_err(|error| unwritten(&self.path, &error))
    }

    /// All is sent.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub(super) fn remove(&self) -> Result<(), Failure> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unwritten(&self.path, &error)),
            _ => Ok(()),
        }
    }
}

/// The lock beside the file, in a folder that is made where there is none.
fn locked(path: &Path) -> Result<File, Failure> {
    let unwritten = |error: io::Error| unwritten(path, &error);
    if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        tidegate_files::create_folder(folder, Access::Owner).map_err(unwritten)?;
    }
    let lock = tidegate_files::open(&path.with_extension("lock"), Access::Owner, |options| {
        options.write(true).create(true)
    });
    let lock = lock.map_err(unwritten)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(Failure(format!(
            "another replay writes to {}: wait for its end, or name another file with --progress",
            path.display()
        ))),
        Err(TryLockError::Error(error)) => Err(unwritten(error)),
    }
}

fn unwritten(path: &Path, error: &io::Error) -> Failure {
    Failure(format!(
        "writing down how far the replay is, to {}: {error}; name another file with --progress",
        path.display()
    ))
}

/// The name of a sink, as part of the name of a file.
fn file_name(sink: &str) -> Result<&str, Failure> {
    let is_plain = sink.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte));
    match is_plain && !sink.is_empty() {
        true => Ok(sink),
        false => Err(Failure(format!("`{sink}` cannot be the name of a sink"))),
    }
}

/// The content of the file.
struct Begun {
    asked: String,
    from_ns: u64,
    until_ns: u64,
    position: String,
}

fn begun(path: &Path) -> Result<Option<Begun>, Failure> {
    let text = match std::fs::read_to_string(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => {
            return Err(Failure(format!("reading how far a replay came, in {}: {error}", path.display())));
        }
        Ok(text) => text,
    };
    let read = serde_json::from_str::<Value>(&text).ok().and_then(|value| {
        (value.get("version")?.as_u64()? == VERSION).then_some(())?;
        Some(Begun {
            asked: value.get("asked")?.as_str()?.to_owned(),
            from_ns: value.get("from_ns")?.as_u64()?,
            until_ns: value.get("until_ns")?.as_u64()?,
            position: value.get("position")?.as_str()?.to_owned(),
        })
    });
    read.map(Some).ok_or_else(|| {
        Failure(format!("{} does not say how far a replay came: begin anew with --restart", path.display()))
    })
}
