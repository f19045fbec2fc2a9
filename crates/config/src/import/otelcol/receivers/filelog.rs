//! The receiver `filelog`: an input of the source `file`.

use crate::import::document::{Map, Yaml};
use crate::import::group::{FileReader, Group, Lacking, Text};
use crate::import::otelcol::client::duration;
use crate::import::otelcol::{Collector, settings};
use crate::import::sinks::name_of;
use crate::values::Bytes;
use crate::yaml::Entry;

const EDIT: &str = "left out: a pipeline can do the same with `edit` or `drop`";
const OWN_TIMES: &str = "not needed: changes are told by the kernel, and batches are part of the memory plan";
const NAMES: &str = "not needed: `log.file.path`, `log.file.name` and, for links, `log.file.path_resolved` are resource attributes";

const LACKING: &Lacking = &[
    ("attributes", "left out: set attributes of records with `edit` in a pipeline"),
    ("poll_interval", OWN_TIMES),
    ("max_batches", OWN_TIMES),
    ("max_concurrent_files", OWN_TIMES),
    ("polls_to_archive", "not needed: offsets are kept in the journal, for a week after a file is gone"),
    ("fingerprint_size", "not needed: files are told apart by their inodes and the first KiB"),
    ("initial_buffer_size", OWN_TIMES),
    ("include_file_name", NAMES),
    ("include_file_path", NAMES),
    ("include_file_name_resolved", NAMES),
    ("include_file_path_resolved", NAMES),
    ("include_file_owner_name", "left out: owners of files are no attributes"),
    ("include_file_owner_group_name", "left out: owners of files are no attributes"),
    ("include_file_permissions", "left out: permissions of files are no attributes"),
    ("include_file_record_number", "left out: numbers of lines are no attributes"),
    ("include_file_record_offset", "left out: offsets are no attributes"),
    ("preserve_leading_whitespaces", "not needed: text stays as it is"),
    ("preserve_trailing_whitespaces", "not needed: text stays as it is"),
    ("delete_after_read", "left out: files are never deleted"),
    ("acquire_fs_lock", "left out: files are not locked"),
    ("header", "left out: the lines of a header are records"),
    ("ordering_criteria", "left out: every file that matches is read; put others in `exclude`"),
    ("exclude_older_than", "left out: files are read whatever their age; put others in `exclude`"),
    ("on_truncate", "not needed: a truncated file is read from its beginning"),
    ("retry_on_failure", "not needed: reading waits while records cannot be stored"),
    ("storage", "not needed: offsets are kept in the journal, in the folder `data`"),
];

const OPERATOR_LACKING: &Lacking = &[
    ("id", "not needed: there are no references to it"),
    ("output", "left out: each record goes through all steps"),
    ("max_log_size", "not needed: `max_line` bounds lines, with the parts of a container's line joined"),
    ("timestamp", "not needed where the time has a usual name: `parse` reads it"),
    ("severity", "not needed where the level has a usual name: `parse` reads it"),
    ("trace", "not needed where the ids have usual names: `parse` reads them"),
];

impl Collector<'_> {
    pub(super) fn filelog_receiver(&mut self, entry: &Entry, reader: &mut FileReader<'_, '_>) {
        let Some(mut group) = settings(entry, "receivers", reader) else { return };
        let mut input = Map::default();
        for setting in ["include", "exclude"] {
            let paths = group.texts(setting, reader);
            relative(&paths, &group.path_of(setting), reader);
            if !paths.is_empty() {
                input.set(setting, Yaml::Flow(paths.into_iter().map(|path| path.value).collect()));
            }
        }
        // The Collector's default is the end, ours the beginning.
        let start = group.text("start_at", reader).map_or_else(|| "end".to_owned(), |text| text.value);
        input.set("start_at", start);
        if group.text("compression", reader).is_some_and(|text| !text.value.is_empty()) {
            input.set("compressed", "true");
        }
        encoding(&mut group, &mut input, reader);
        longest_line(&mut group, &mut input, reader);
        let timeout = group.text("force_flush_period", reader);
        if let Some(multiline) = multiline(&mut group, timeout.as_ref(), reader) {
            input.set("multiline", multiline);
        }
        if let Some(mut resource) = group.group("resource", reader) {
            input.set_group("attributes", attributes(&mut resource, reader));
        }
        let has_pods = operators(&mut group, &mut input, reader);
        group.lacks(LACKING, reader);
        group.finish(reader);
        if has_pods && reads_pods_only(&input) {
            return self.kubernetes_logs(entry, &mut input, reader);
        }
        if has_pods {
            let message = "pods and containers in the paths do not become attributes: the source `kubernetes_logs` has them, for the \
                           files below /var/log/pods";
            reader.note(&entry.key_at, &format!("receivers.{}.operators", entry.key), message);
        }
        let inputs = self.out.group("sources").group("file").group("inputs");
        let name = name_of(entry.key.split_once('/').map_or(entry.key.as_str(), |(_, name)| name));
        let mut free = name.clone();
        let mut number = 2;
        while inputs.get(&free).is_some() {
            free = format!("{name}-{number}");
            number += 1;
        }
        inputs.set(&free, input);
    }

    /// The source for the containers of a node: its files are known, and their names tell the pods.
    fn kubernetes_logs(&mut self, entry: &Entry, input: &mut Map, reader: &mut FileReader<'_, '_>) {
        if input.get("exclude").is_some() {
            let message = "left out: name pods that are not read in `exclude_namespaces`, `selector` or `exclude` of the source \
                           `kubernetes_logs`; the gateway's own is not read";
            reader.note(&entry.key_at, &format!("receivers.{}.exclude", entry.key), message);
        }
        if !takes_all_pods(input) {
            let message = "left out: the source `kubernetes_logs` reads all pods of the node; choose some with its `namespaces`, \
                           `selector` or `exclude`";
            reader.note(&entry.key_at, &format!("receivers.{}.include", entry.key), message);
        }
        let message = "the source `kubernetes_logs` reads the containers of the node with the metadata of their pods: set the environment \
                       variable NODE_NAME, and let its service account read pods";
        reader.note(&entry.key_at, &format!("receivers.{}", entry.key), message);
        let source = self.out.group("sources").group("kubernetes_logs");
        if source.get("enabled").is_some() {
            let message = "left out: there is one source `kubernetes_logs`, and another receiver has set it";
            return reader.note(&entry.key_at, &format!("receivers.{}", entry.key), message);
        }
        source.set("enabled", "true");
        for setting in ["include", "exclude", "format", "encoding"] {
            input.remove(setting);
        }
        source.append(input);
    }
}

/// Whether the files are those of the kubelet.
fn reads_pods_only(input: &Map) -> bool {
    match input.get("include") {
        Some(Yaml::Flow(paths)) => paths.iter().all(|path| path.starts_with("/var/log/pods/")),
        _ => false,
    }
}

/// Whether the patterns select the files of every container.
fn takes_all_pods(input: &Map) -> bool {
    const ALL: [&str; 4] = [
        "/var/log/pods/*/*/*.log",
        "/var/log/pods/*/*/*.log*",
        "/var/log/pods/**/*.log",
        "/var/log/pods/**/*.log*",
    ];
    match input.get("include") {
        Some(Yaml::Flow(paths)) => paths.iter().any(|path| ALL.contains(&path.as_str())),
        _ => false,
    }
}

fn relative(paths: &[Text], setting: &str, reader: &mut FileReader<'_, '_>) {
    for path in paths.iter().filter(|path| !path.value.starts_with('/') && !path.is_open()) {
        reader.note(
            &path.at,
            setting,
            "make it absolute: tidegate reads no paths relative to its working directory",
        );
    }
}

fn encoding(group: &mut Group<'_>, input: &mut Map, reader: &mut FileReader<'_, '_>) {
    let Some(text) = group.text("encoding", reader) else { return };
    let ours = match text.value.to_ascii_lowercase().as_str() {
        "utf-8" | "utf8" | "ascii" | "us-ascii" | "utf-8-raw" => return,
        "utf-16le" | "utf16le" => "utf-16le",
        "utf-16be" | "utf16be" => "utf-16be",
        "iso-8859-1" | "latin1" => "latin1",
        _ => {
            let message = "left out: text is UTF-8, UTF-16 or Latin-1";
            return reader.note(&text.at, &group.path_of("encoding"), message);
        }
    };
    input.set("encoding", ours);
}

fn longest_line(group: &mut Group<'_>, input: &mut Map, reader: &mut FileReader<'_, '_>) {
    let Some(text) = group.text("max_log_size", reader) else { return };
    let path = group.path_of("max_log_size");
    // The Collector writes `1MiB`, and a plain number for bytes.
    let plain = text.value.parse::<u64>().ok().map(Bytes::new);
    let Some(bytes) = plain.or_else(|| text.value.parse::<Bytes>().ok()) else {
        return reader.note(
            &text.at,
            &path,
            "left out: not a size that is known here; lines are cut at 64 KiB",
        );
    };
    if bytes.get() > 1 << 20 {
        reader.note(&text.at, &path, "lines are cut at 1 MiB");
    }
    input.set("max_line", Bytes::new(bytes.get().clamp(1 << 10, 1 << 20)).to_string());
}

fn multiline(group: &mut Group<'_>, timeout: Option<&Text>, reader: &mut FileReader<'_, '_>) -> Option<Map> {
    let mut theirs = group.group("multiline", reader)?;
    let mut ours = Map::default();
    ours.set_some("start_pattern", theirs.text("line_start_pattern", reader).map(|text| text.value));
    ours.set_some("end_pattern", theirs.text("line_end_pattern", reader).map(|text| text.value));
    if theirs.flag("omit_pattern", reader) == Some(true) {
        let at = theirs.at.clone();
        reader.note(
            &at,
            &theirs.path_of("omit_pattern"),
            "left out: the text that the pattern matches stays",
        );
    }
    theirs.finish(reader);
    if ours.is_empty() {
        return None;
    }
    ours.set_some("timeout", timeout.and_then(|text| duration(&text.value)));
    Some(ours)
}

/// Attributes of the resource, but for values that are computed for each record.
pub(super) fn attributes(group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Map {
    let mut map = Map::default();
    for entry in group.take_all() {
        let path = group.path_of(&entry.key);
        let Some(text) = reader.text(&entry.node, &path) else { continue };
        if text.value.starts_with("EXPR(") {
            reader.note(
                &text.at,
                &path,
                "left out: use `edit` in a pipeline for values that depend on the record",
            );
        } else {
            map.set(&entry.key, text.value);
        }
    }
    map
}

/// Says whether the lines are those of containers, with the metadata in the paths.
fn operators(group: &mut Group<'_>, input: &mut Map, reader: &mut FileReader<'_, '_>) -> bool {
    let mut has_pods = false;
    let path = group.path_of("operators");
    for node in group.items("operators", reader) {
        let Some(mut operator) = reader.group(node, &path) else { continue };
        let kind = operator.text("type", reader).map(|text| text.value).unwrap_or_default();
        let is_whole =
            ["if", "parse_from", "parse_to", "on_error"].iter().all(|key| operator.take(key).is_none());
        match kind.as_str() {
            "container" => has_pods |= container(&mut operator, input, reader),
            "json_parser" | "key_value_parser" if is_whole => {
                input.set("parse", if kind == "json_parser" { "json" } else { "logfmt" });
                let message = format!(
                    "`parse` does the work of `{kind}`: it moves the time, the level and the message, too, where they have usual names"
                );
                reader.note(&operator.at.clone(), &path, message);
            }
            "noop" => {}
            "time_parser" | "severity_parser" | "trace_parser" => {
                let message = format!(
                    "`{kind}` is left out: `parse` reads times, levels and traces with usual names; for others use `edit` in a pipeline"
                );
                reader.note(&operator.at.clone(), &path, message);
            }
            "recombine" => {
                let message = "`recombine` is left out: set `multiline` of the input";
                reader.note(&operator.at.clone(), &path, message);
            }
            _ => reader.note(&operator.at.clone(), &path, format!("`{kind}` is {EDIT}")),
        }
        operator.lacks(OPERATOR_LACKING, reader);
        operator.finish(reader);
    }
    has_pods
}

/// The format of container runtimes. Says whether attributes come from the paths.
fn container(operator: &mut Group<'_>, input: &mut Map, reader: &mut FileReader<'_, '_>) -> bool {
    let format = operator.text("format", reader).map(|text| text.value);
    let ours = match format.as_deref() {
        Some("docker") => "docker",
        Some("crio" | "containerd") => "cri",
        _ => "auto",
    };
    input.set("format", ours);
    operator.flag("add_metadata_from_filepath", reader) != Some(false)
}
