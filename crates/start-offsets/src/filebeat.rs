//! The registry of Filebeat 7.9 and later: `data/registry/filebeat`.
//!
//! `NUMBER.json` has all states up to the operation with this number, as a list; `log.json` has the later operations, two JSON
//! values for each. As in Filebeat, reading ends at the first operation that is cut or out of order. Source:
//! `libbeat/statestore/backend/memlog` of elastic/beats.

use crate::bounded::{self, ReadError};
use crate::checkpoint::{Checkpoint, Checkpoints};
use serde_json::{Deserializer, Value};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The registry's states, by their keys.
type States = BTreeMap<String, Value>;

/// The checkpoints in a registry: `path` is its folder, the folder above, or Filebeat's data folder.
///
/// # Errors
/// When there is no registry, or its files cannot be read.
pub fn filebeat(path: &Path) -> Result<Checkpoints, ReadError> {
    let home = home(path)?;
    let mut states = States::new();
    let number = match newest(&home)? {
        Some((number, file)) => {
            read_states(&file, &mut states)?;
            number
        }
        None => 0,
    };
    let log = home.join("log.json");
    if log.is_file() {
        apply(&bounded::read(&log)?, number, &mut states);
    }
    Ok(checkpoints(&states))
}

/// The folder of the registry's files.
fn home(path: &Path) -> Result<PathBuf, ReadError> {
    let folder = if path.is_file() { path.parent().unwrap_or(path) } else { path };
    let below = ["", "filebeat", "registry/filebeat", "data/registry/filebeat"];
    let mut folders = below.into_iter().map(|below| folder.join(below));
    folders.find(|folder| folder.join("log.json").is_file() || folder.join("meta.json").is_file()).ok_or_else(
        || {
            ReadError::format(
                path,
                "there is no registry of Filebeat 7.9 or later: name the folder that has `log.json`, such as \
             /var/lib/filebeat/registry/filebeat",
            )
        },
    )
}

/// The file of states with the highest number.
fn newest(home: &Path) -> Result<Option<(u64, PathBuf)>, ReadError> {
    let mut newest = None;
    for entry in fs::read_dir(home).map_err(ReadError::io(home))? {
        let path = entry.map_err(ReadError::io(home))?.path();
        let number = path
            .extension()
            .filter(|it| *it == "json")
            .and_then(|_| path.file_stem()?.to_str()?.parse().ok());
        if let Some(number) = number {
            newest = newest.max(Some((number, path)));
        }
    }
    Ok(newest)
}

fn read_states(file: &Path, states: &mut States) -> Result<(), ReadError> {
    let list: Vec<Value> = serde_json::from_slice(&bounded::read(file)?).map_err(|error| {
        ReadError::format(
            file,
            format!("it is damaged ({error}); Filebeat would start from its log alone: remove it to do that"),
        )
    })?;
    for state in list {
        if let Some(key) = state.get("_key").and_then(Value::as_str) {
            states.insert(key.to_owned(), state);
        }
    }
    Ok(())
}

/// Applies the operations of a log behind the operation with this number.
fn apply(log: &[u8], mut number: u64, states: &mut States) {
    let mut values = Deserializer::from_slice(log).into_iter::<Value>();
    while let (Some(Ok(action)), Some(Ok(operand))) = (values.next(), values.next()) {
        let Some(id) = action.get("id").and_then(Value::as_u64) else { return };
        if id <= number {
            continue;
        }
        if id != number + 1 {
            return;
        }
        number = id;
        let Some(key) = operand.get("k").or_else(|| operand.get("K")).and_then(Value::as_str) else { return };
        match action.get("op").and_then(Value::as_str) {
            Some("set") => {
                let value = operand.get("v").or_else(|| operand.get("V")).cloned();
                states.insert(key.to_owned(), value.unwrap_or_default());
            }
            Some("remove") => {
                states.remove(key);
            }
            _ => return,
        }
    }
}

fn checkpoints(states: &States) -> Checkpoints {
    let mut found = Checkpoints::default();
    let (mut others, mut broken) = (0_usize, 0_usize);
    for (key, state) in states {
        let file = if key.starts_with("filebeat::logs::") {
            of_log_input(state)
        } else if key.starts_with("filestream::") {
            of_filestream(key, state)
        } else {
            others += 1;
            continue;
        };
        match file {
            Some(file) => found.files.push(file),
            None => broken += 1,
        }
    }
    if others > 0 {
        found.notes.push(format!("{others} states are of inputs that read no files: they are left out"));
    }
    if broken > 0 {
        found.notes.push(format!("{broken} states have no path: they are left out"));
    }
    found
}

/// A state of the input `log`.
fn of_log_input(state: &Value) -> Option<Checkpoint> {
    let system = state.get("FileStateOS");
    Some(Checkpoint {
        path: Some(state.get("source")?.as_str()?.into()),
        inode: system.and_then(|it| integer(it.get("inode")?)),
        device: system.and_then(|it| integer(it.get("device")?)),
        offset: integer(state.get("offset")?)?,
        ..Checkpoint::default()
    })
}

/// A state of the input `filestream`. Its key ends in the file's identity: `native::INODE-DEVICE`, or a path or fingerprint.
fn of_filestream(key: &str, state: &Value) -> Option<Checkpoint> {
    let native = key.rsplit_once("native::").and_then(|(_, identity)| {
        let mut numbers = identity.split('-').map(|number| number.parse::<u64>().ok());
        Some((numbers.next()??, numbers.next()??))
    });
    // Nothing of the file was acknowledged yet where the cursor is missing.
    let offset = state.get("cursor").and_then(|cursor| integer(cursor.get("offset")?)).unwrap_or(0);
    Some(Checkpoint {
        path: Some(state.get("meta")?.get("source")?.as_str()?.into()),
        inode: native.map(|(inode, _)| inode),
        device: native.map(|(_, device)| device),
        offset,
        ..Checkpoint::default()
    })
}

/// Filebeat may write integers as floating-point numbers.
fn integer(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        let number = value.as_f64()?;
        // Exact up to here.
        (0.0..9_007_199_254_740_992.0).contains(&number).then_some(number as u64)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry(files: &[(&str, &str)]) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("registry/filebeat");
        fs::create_dir_all(&home).unwrap();
        fs::write(home.join("meta.json"), r#"{"version":"1"}"#).unwrap();
        for (name, text) in files {
            fs::write(home.join(name), text).unwrap();
        }
        dir
    }

    const STATES: &str = r#"[
{"_key":"filebeat::logs::native::11-64768","id":"native::11-64768","prev_id":"","timestamp":[1,2],"ttl":-1,"type":"log","identifier_name":"native","source":"/var/log/a.log","offset":100,"FileStateOS":{"inode":11,"device":64768}},
{"_key":"filestream::mine::native::12-64768","ttl":1800000000000,"updated":[1,2],"cursor":{"offset":50},"meta":{"source":"/var/log/b.log","identifier_name":"native"}},
{"_key":"filestream::mine::fingerprint::aabb","ttl":0,"updated":[1,2],"cursor":null,"meta":{"source":"/var/log/c.log","identifier_name":"fingerprint"}},
{"_key":"journald::everything::LOCAL","cursor":{"position":"x"}}
]"#;

    /// The newest states with the operations behind them; the last, which is cut, does not count.
    #[test]
    fn states_and_log() {
        let log = concat!(
            "{\"op\":\"set\",\"id\":7}\n{\"k\":\"filestream::mine::native::12-64768\",\"v\":{\"cursor\":{\"offset\":1},\"meta\":{\"source\":\"/old\"}}}\n",
            "{\"op\":\"set\",\"id\":8}\n{\"k\":\"filestream::mine::native::12-64768\",\"v\":{\"cursor\":{\"offset\":70},\"meta\":{\"source\":\"/var/log/b.log\"}}}\n",
            "{\"op\":\"remove\",\"id\":9}\n{\"k\":\"filebeat::logs::native::11-64768\"}\n",
            "{\"op\":\"set\",\"id\":10}\n{\"k\":\"filestream::mine::nat",
        );
        let dir = registry(&[("3.json", "[]"), ("7.json", STATES), ("log.json", log)]);
        for path in ["registry/filebeat", "registry", "", "registry/filebeat/log.json"] {
            let Checkpoints { files, notes } = filebeat(&dir.path().join(path)).unwrap();
            let shown: Vec<_> = files
                .iter()
                .map(|it| (it.path.as_deref().unwrap().to_str().unwrap(), it.inode, it.offset))
                .collect();
            assert_eq!(shown, [("/var/log/c.log", None, 0), ("/var/log/b.log", Some(12), 70)]);
            assert_eq!(notes.len(), 1);
        }
    }

    #[test]
    fn states_alone() {
        let dir = registry(&[("7.json", STATES)]);
        let files = filebeat(dir.path()).unwrap().files;
        let first = Checkpoint {
            path: Some("/var/log/a.log".into()),
            inode: Some(11),
            device: Some(64768),
            offset: 100,
            ..Checkpoint::default()
        };
        assert_eq!(files.first(), Some(&first));
        assert_eq!(files.len(), 3);
    }

    /// A gap in the numbers ends the log, as it does for Filebeat.
    #[test]
    fn a_gap_ends_the_log() {
        let set = |id, offset| {
            format!(
                "{{\"op\":\"set\",\"id\":{id}}}\n{{\"k\":\"filebeat::logs::x\",\"v\":{{\"source\":\"/a\",\"offset\":{offset}}}}}\n"
            )
        };
        let dir = registry(&[("log.json", &[set(1, 10), set(2, 20), set(4, 40)].concat())]);
        assert_eq!(filebeat(dir.path()).unwrap().files.first().map(|it| it.offset), Some(20));
    }

    #[test]
    fn other_folders() {
        let dir = tempfile::tempdir().unwrap();
        assert!(filebeat(dir.path()).unwrap_err().to_string().contains("no registry"));
        assert!(filebeat(&dir.path().join("absent")).is_err());
        let damaged = registry(&[("7.json", "[{")]);
        assert!(filebeat(damaged.path()).unwrap_err().to_string().contains("damaged"));
    }
}
