//! A policy in a file that people keep: YAML or JSON.

use crate::Failure;
use serde_json::Value;
use std::io::Read as _;
use std::path::Path;
use tidegate_config::yaml_as_json;

/// The longest file, in bytes: YAML has more blanks than the gateway's limit counts.
const LONGEST_FILE: u64 = 4 << 20;

/// A policy, and its id.
pub(super) struct PolicyFile {
    pub(super) id: String,
    pub(super) json: Value,
}

/// Reads a policy. Its id is the given one, or else that in the file, or the file's name.
///
/// # Errors
/// The problems of the file, with their places.
pub(super) fn read(file: &Path, id: Option<&str>) -> Result<PolicyFile, Failure> {
    let name = file.display().to_string();
    let mut text = String::new();
    let opened = std::fs::File::open(file);
    #[expect(clippy::disallowed_methods, reason = "`take` is the bound")]
    opened
        .and_then(|opened| opened.take(LONGEST_FILE).read_to_string(&mut text))
        .map_err(|error| Failure(format!("cannot read the policy {name}: {error}")))?;
    let json = match text.trim_start().starts_with('{') {
        true => serde_json::from_str(&text).map_err(|error| Failure(format!("{name}: {error}")))?,
        false => yaml_as_json(&name, &text).map_err(|errors| Failure(errors.to_string()))?,
    };
    let in_file = json.get("id").and_then(Value::as_str);
    let stem = file.file_stem().and_then(|stem| stem.to_str());
    let id = id.or(in_file).or(stem).unwrap_or_default().to_owned();
    Ok(PolicyFile { id, json })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// YAML and JSON are the same policy, and the id is where it is said first.
    #[test]
    fn a_policy_is_yaml_or_json() {
        let folder = tempfile::tempdir().unwrap();
        let written = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let yaml = written("web.yaml", "inputs:\n  - type: logfile\n    enabled: true\n");
        let json =
            written("web.json", " {\"inputs\":[{\"type\":\"logfile\",\"enabled\":true}],\"id\":\"own\"}");
        let (from_yaml, from_json) = (read(&yaml, None).unwrap(), read(&json, None).unwrap());
        assert_eq!(from_yaml.json["inputs"], from_json.json["inputs"]);
        assert_eq!((from_yaml.id.as_str(), from_json.id.as_str()), ("web", "own"));
        assert_eq!(read(&json, Some("given")).unwrap().id, "given");
        let broken = written("broken.yaml", "inputs: [\n");
        let Failure(error) = read(&broken, None).err().unwrap();
        assert!(error.contains("broken.yaml"), "{error}");
    }
}
