//! The difference between two configurations.

use crate::model::Config;
use crate::setting::{PlainValue, Setting};

/// The settings that differ, by their paths, such as `journal.quota`; of `sinks` only that.
pub fn differing(old: &Config, new: &Config) -> Vec<String> {
    let mut paths = Vec::new();
    walk("", &old.plain(), &new.plain(), &mut paths);
    if old.sinks != new.sinks {
        paths.retain(|path| !path.starts_with("sinks."));
        paths.push("sinks".to_owned());
    }
    paths
}

fn walk(path: &str, old: &PlainValue, new: &PlainValue, paths: &mut Vec<String>) {
    let (PlainValue::Map(before), PlainValue::Map(after)) = (old, new) else {
        if old != new {
            paths.push(path.to_owned());
        }
        return;
    };
    let of = |entries: &[(String, PlainValue)], key: &str| {
        let entry = entries.iter().find(|(known, _)| known == key);
        entry.map_or(PlainValue::Unset, |(_, value)| value.clone())
    };
    let added = after.iter().filter(|(key, _)| before.iter().all(|(known, _)| known != key));
    for (key, _) in before.iter().chain(added) {
        let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
        walk(&path, &of(before, key), &of(after, key), paths);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Bytes, Limits};

    #[test]
    fn differences_are_named_by_their_paths() {
        let old = Config::default();
        assert_eq!(differing(&old, &old), [""; 0]);
        let mut new = old.clone();
        new.memory = Some(Bytes::mib(80));
        new.journal.quota = Bytes::gib(1);
        new.limits = Limits { connections: Some(7), ..new.limits };
        assert_eq!(differing(&old, &new), ["memory", "journal.quota", "limits.connections"]);
        new.sinks.clear();
        assert_eq!(differing(&old, &new).last().map(String::as_str), Some("sinks"));
    }
}
