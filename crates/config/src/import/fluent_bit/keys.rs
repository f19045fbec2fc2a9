//! Where the records of a source have the keys that filters name.

use super::record::{self, NoPath};
use crate::import::ottl::literal;

/// The keys of a source's records that are not where [`record::path`] says.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) enum SourceKeys {
    #[default]
    Usual,
    /// Entries of the journal of systemd.
    Journal,
    Syslog,
    /// Keys as clients of the forward protocol send them.
    Forward,
    /// Keys that are parts of the record under other names, or in the text alone.
    Hidden(&'static [&'static str]),
    /// Keys with their paths.
    Renamed(Vec<(String, String)>),
}

/// Where a key is.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Place {
    Path(String),
    /// In several places, or in none that a statement can name.
    Unclear,
}

/// The sources whose records a filter takes.
#[derive(Debug, Default)]
pub(super) struct Keys {
    pub(super) sources: Vec<SourceKeys>,
    /// Whether there are records with the metadata of pods.
    pub(super) has_pods: bool,
}

/// Fields of the journal with names of their own, as docs/journald.md has them.
const JOURNAL: [(&str, &str); 24] = [
    ("SYSLOG_FACILITY", "syslog.facility.code"),
    ("SYSLOG_IDENTIFIER", "syslog.identifier"),
    ("SYSLOG_PID", "syslog.procid"),
    ("PRIORITY", "syslog.severity.code"),
    ("_PID", "process.pid"),
    ("_UID", "process.user.id"),
    ("_COMM", "process.executable.name"),
    ("_EXE", "process.executable.path"),
    ("_CMDLINE", "process.command_line"),
    ("TID", "thread.id"),
    ("CODE_FILE", "code.file.path"),
    ("CODE_LINE", "code.line.number"),
    ("CODE_FUNC", "code.function.name"),
    ("_SYSTEMD_UNIT", "systemd.unit"),
    ("_SYSTEMD_USER_UNIT", "systemd.user_unit"),
    ("_SYSTEMD_SLICE", "systemd.slice"),
    ("UNIT", "systemd.object_unit"),
    ("CONTAINER_ID_FULL", "container.id"),
    ("CONTAINER_NAME", "container.name"),
    ("IMAGE_NAME", "container.image.name"),
    ("_TRANSPORT", "journald.transport"),
    ("_HOSTNAME", "host.name"),
    ("_MACHINE_ID", "host.id"),
    ("__REALTIME_TIMESTAMP", ""),
];

/// Parts of access logs, whose parser gives them the names of docs/parsing.md.
pub(super) const ACCESS_LOG: &[&str] =
    &["remote", "host", "user", "time", "method", "path", "code", "size", "referer", "agent"];
/// Parts of the error log of Apache, and of lines of Kubernetes' components.
pub(super) const COMPONENT_LOG: &[&str] =
    &["time", "level", "pid", "client", "severity", "source_file", "source_line", "message"];
/// Members of JSON that become the level and the time of the record.
pub(super) const JSON: &[&str] = &[
    "level",
    "severity",
    "lvl",
    "levelname",
    "log.level",
    "loglevel",
    "@l",
    "time",
    "timestamp",
    "ts",
    "@timestamp",
    "@t",
];

impl SourceKeys {
    /// Where a key is; none if it is in the usual place.
    fn place(&self, key: &str) -> Option<Place> {
        let attribute = |name: &str| Place::Path(format!("log.attributes[{}]", literal(name)));
        let resource = |name: &str| Place::Path(format!("resource.attributes[{}]", literal(name)));
        match self {
            SourceKeys::Usual => None,
            SourceKeys::Hidden(keys) => keys.contains(&key).then_some(Place::Unclear),
            SourceKeys::Renamed(keys) => {
                keys.iter().find(|(of, _)| of == key).map(|(_, path)| Place::Path(path.clone()))
            }
            SourceKeys::Forward => matches!(key, "stream" | "kubernetes").then(|| attribute(key)),
            SourceKeys::Syslog => match key {
                "host" => Some(resource("host.name")),
                "ident" => Some(resource("service.name")),
                "msgid" => Some(attribute("syslog.msg.id")),
                "pid" | "pri" | "time" | "extradata" => Some(Place::Unclear),
                _ => None,
            },
            SourceKeys::Journal => match JOURNAL.iter().find(|(field, _)| *field == key) {
                Some((_, "")) => Some(Place::Unclear),
                Some((_, name)) if name.starts_with("host.") => Some(resource(name)),
                Some((_, name)) => Some(attribute(name)),
                None => {
                    let is_field = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
                    let is_other = key != "MESSAGE" && !key.is_empty() && key.chars().all(is_field);
                    is_other.then(|| attribute(&format!("journald.{key}")))
                }
            },
        }
    }
}

impl Keys {
    /// Where the records of all sources have a key, or what a record accessor names.
    ///
    /// # Errors
    /// The reason why there is no path.
    pub(super) fn place(&self, accessor: &str) -> Result<Place, NoPath> {
        let usual = record::path(accessor);
        let Some((key, rest)) = record::parts(accessor).and_then(|parts| {
            let (key, rest) = parts.split_first()?;
            Some((key.clone(), rest.to_vec()))
        }) else {
            return usual.map(Place::Path);
        };
        let mut places: Vec<Result<Place, NoPath>> = Vec::new();
        for source in &self.sources {
            let place = match source.place(&key) {
                Some(Place::Path(path)) => Ok(Place::Path(record::indexed(&path, &rest))),
                Some(Place::Unclear) => Ok(Place::Unclear),
                // Without pods, only clients send such a member.
                None if key == "kubernetes"
                    && !self.has_pods
                    && self.sources.contains(&SourceKeys::Forward) =>
                {
                    continue;
                }
                None => usual.clone().map(Place::Path),
            };
            if !places.contains(&place) {
                places.push(place);
            }
        }
        match places.as_slice() {
            [] => usual.map(Place::Path),
            [one] => one.clone(),
            _ => Ok(Place::Unclear),
        }
    }

    /// The paths of keys that a pattern matches and that are not attributes of the same name.
    pub(super) fn elsewhere(&self, matches: &dyn Fn(&str) -> bool) -> Vec<String> {
        let mut paths: Vec<String> = Vec::new();
        for source in &self.sources {
            let keys: Vec<&str> = match source {
                SourceKeys::Renamed(keys) => keys.iter().map(|(key, _)| key.as_str()).collect(),
                SourceKeys::Journal => JOURNAL.iter().map(|(field, _)| *field).collect(),
                SourceKeys::Syslog => vec!["host", "ident", "msgid"],
                SourceKeys::Usual | SourceKeys::Forward | SourceKeys::Hidden(_) => Vec::new(),
            };
            for key in keys.into_iter().filter(|key| matches(key)) {
                if let Some(Place::Path(path)) = source.place(key).filter(|_| key != "log")
                    && !paths.contains(&path)
                {
                    paths.push(path);
                }
            }
        }
        paths
    }

    /// Whether a pattern matches a key that no statement can name.
    pub(super) fn hides(&self, matches: &dyn Fn(&str) -> bool) -> bool {
        self.sources.iter().any(|source| match source {
            SourceKeys::Hidden(keys) => keys.iter().any(|key| matches(key)),
            SourceKeys::Journal => matches("_BOOT_ID"),
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_where_their_source_has_them() {
        let place = |sources: &[SourceKeys], key: &str| {
            Keys { sources: sources.to_vec(), has_pods: false }.place(key).unwrap()
        };
        let path = |path: &str| Place::Path(path.to_owned());
        let journal = [SourceKeys::Journal];
        assert_eq!(place(&journal, "_SYSTEMD_UNIT"), path(r#"log.attributes["systemd.unit"]"#));
        assert_eq!(place(&journal, "$_HOSTNAME"), path(r#"resource.attributes["host.name"]"#));
        assert_eq!(place(&journal, "_BOOT_ID"), path(r#"log.attributes["journald._BOOT_ID"]"#));
        assert_eq!(place(&journal, "MESSAGE"), path("log.body"));
        let forward = [SourceKeys::Forward];
        assert_eq!(
            place(&forward, "$kubernetes['pod_name']"),
            path(r#"log.attributes["kubernetes"]["pod_name"]"#)
        );
        let both = [SourceKeys::Usual, SourceKeys::Forward];
        assert_eq!(place(&both, "stream"), Place::Unclear);
        assert_eq!(place(&both, "level"), path(r#"log.attributes["level"]"#));
        assert_eq!(place(&[SourceKeys::Hidden(ACCESS_LOG)], "agent"), Place::Unclear);
        assert_eq!(place(&[], "log"), path("log.body"));
    }
}
