//! The checkpoints of the Collector's receiver `filelog` in a `file_storage` extension.
//!
//! Each receiver has a bbolt file, such as `receiver_filelog_`, with a bucket `default` and values `….knownFiles`: JSON, or protobuf
//! with the feature gate `filelog.protobufCheckpointEncoding`. Files are known by their first bytes; paths are there only where
//! `include_file_path` is set. Source: `pkg/stanza/fileconsumer/internal/checkpoint` of opentelemetry-collector-contrib.

mod protobuf;

use crate::bolt;
use crate::bounded::{self, ReadError, of_file};
use crate::checkpoint::{Checkpoint, Checkpoints};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Deserializer, Map, Value};
use std::fs;
use std::path::Path;

/// A file's state as the Collector has it.
#[derive(Debug, Default)]
struct KnownFile {
    first_bytes: Vec<u8>,
    offset: u64,
    attributes: Map<String, Value>,
    file_type: String,
}

/// The checkpoints in the file of a receiver, or in all files of receivers in the folder of a `file_storage`.
///
/// # Errors
/// When a file cannot be read or is damaged, or none is there.
pub fn collector(path: &Path) -> Result<Checkpoints, ReadError> {
    let mut known = Vec::new();
    if path.is_dir() {
        let mut files = Vec::new();
        for entry in fs::read_dir(path).map_err(ReadError::io(path))? {
            let entry = entry.map_err(ReadError::io(path))?;
            if entry.file_name().to_string_lossy().starts_with("receiver_") {
                files.push(entry.path());
            }
        }
        if files.is_empty() {
            let what = "it has no file of a receiver, such as `receiver_filelog_`: name the `directory` of the extension `file_storage`";
            return Err(ReadError::format(path, what));
        }
        files.sort();
        for file in files {
            let bytes = bounded::read(&file)?;
            known.extend(of_file(&file, known_files(&bytes))?);
        }
    } else {
        let bytes = bounded::read(path)?;
        known = of_file(path, known_files(&bytes))?;
    }
    Ok(checkpoints(known))
}

fn known_files(bytes: &[u8]) -> Result<Vec<KnownFile>, String> {
    let pairs = bolt::bucket(bytes, b"default")?.unwrap_or_default();
    let mut known = Vec::new();
    for (key, value) in pairs {
        // Behind it is a number where files are archived.
        let key = String::from_utf8_lossy(key);
        if key.trim_end_matches(|c: char| c.is_ascii_digit()).ends_with("knownFiles") {
            let files = match value.first() {
                Some(first) if first.is_ascii_digit() => json(value),
                _ => protobuf::known_files(value),
            };
            known.extend(files.ok_or("the list of files is damaged")?);
        }
    }
    Ok(known)
}

/// The number of files, then each of them.
fn json(text: &[u8]) -> Option<Vec<KnownFile>> {
    let mut values = Deserializer::from_slice(text).into_iter::<Value>();
    values.next()?.ok()?;
    let mut known = Vec::new();
    for value in values {
        let mut value = value.ok()?;
        let fingerprint = value.get("Fingerprint");
        // Before 0.95 the name was that of the field.
        let first = fingerprint.and_then(|it| it.get("first_bytes").or_else(|| it.get("FirstBytes")));
        known.push(KnownFile {
            first_bytes: STANDARD.decode(first.and_then(Value::as_str).unwrap_or_default()).ok()?,
            offset: value.get("Offset").and_then(Value::as_u64).unwrap_or(0),
            file_type: value.get("FileType").and_then(Value::as_str).unwrap_or_default().to_owned(),
            attributes: match value.get_mut("FileAttributes").map(Value::take) {
                Some(Value::Object(attributes)) => attributes,
                _ => Map::new(),
            },
        });
    }
    Some(known)
}

fn checkpoints(known: Vec<KnownFile>) -> Checkpoints {
    let mut found = Checkpoints::default();
    let (mut compressed, mut empty) = (0_usize, 0_usize);
    for KnownFile { first_bytes, offset, attributes, file_type } in known {
        let path = attributes.get("log.file.path").and_then(Value::as_str);
        if !file_type.is_empty() {
            compressed += 1;
        } else if first_bytes.is_empty() {
            empty += 1;
        } else {
            let file = Checkpoint {
                path: path.map(Into::into),
                first_bytes: Some(first_bytes),
                offset,
                ..Checkpoint::default()
            };
            // The archive has files of several polls.
            if !found.files.contains(&file) {
                found.files.push(file);
            }
        }
    }
    if compressed > 0 {
        found.notes.push(format!(
            "{compressed} files are compressed: they are left out, since they were read when they were plain"
        ));
    }
    if empty > 0 {
        found.notes.push(format!("{empty} files were empty: they are read from their beginning"));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The forms of a list, as the Collector writes them.
    #[test]
    fn lists_of_files() {
        let text = b"2\n{\"Fingerprint\":{\"first_bytes\":\"aGVsbG8K\"},\"Offset\":6,\"RecordNum\":1,\"FileAttributes\":{\"log.file.name\":\"a.log\",\"log.file.path\":\"/var/log/a.log\"},\"HeaderFinalized\":false,\"FlushState\":{\"LastDataChange\":\"2024-01-01T00:00:00Z\",\"LastDataLength\":0},\"FileType\":\"\"}\n{\"Fingerprint\":{\"first_bytes\":\"eA==\"},\"Offset\":1,\"FileAttributes\":{},\"FileType\":\".gz\"}\n";
        let Checkpoints { files, notes } = checkpoints(json(text).unwrap());
        let expected = Checkpoint {
            path: Some("/var/log/a.log".into()),
            first_bytes: Some(b"hello\n".to_vec()),
            offset: 6,
            ..Checkpoint::default()
        };
        assert_eq!(files, std::slice::from_ref(&expected));
        assert_eq!(notes.len(), 1);

        let attributes = br#"{"log.file.path":"/var/log/a.log"}"#;
        let file = [
            &[10, 8, 10, 6][..],
            b"hello\n",
            &[16, 6, 24, 1, 34, attributes.len() as u8],
            attributes,
            &[50, 0],
        ]
        .concat();
        let list = [&[10, file.len() as u8][..], &file].concat();
        assert_eq!(checkpoints(protobuf::known_files(&list).unwrap()).files, [expected]);
        assert!(protobuf::known_files(&list[..20]).is_none());
        assert!(json(b"1\n{").is_none());
    }
}
