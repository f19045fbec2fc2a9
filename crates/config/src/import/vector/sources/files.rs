//! The sources that read files: `file`, `docker_logs` and `kubernetes_logs`.

use crate::import::document::{Map, Yaml};
use crate::import::group::{FileReader, Group, Lacking, Text};
use crate::import::sinks::{name_of, numbered};
use crate::import::vector::components::Component;
use crate::values::{Bytes, Duration};

const OWN: &str = "not needed: changes are told by the kernel, and batches are part of the memory plan";
const NAMES: &str = "left out: the attributes are `log.file.path` and `host.name` of the resource";

const FILE_LACKING: &Lacking = &[
    ("data_dir", "not needed: offsets are kept in the journal"),
    ("ignore_checkpoints", "not needed: offsets are kept in the journal"),
    ("ignore_older", "left out: files are read whatever their age; put others in `exclude`"),
    ("ignore_older_secs", "left out: files are read whatever their age; put others in `exclude`"),
    ("fingerprint", "not needed: files are told apart by their inodes and the first KiB"),
    ("ignore_not_found", "not needed: a file may appear later"),
    ("host_key", NAMES),
    ("file_key", NAMES),
    ("offset_key", "left out: offsets are no attributes"),
    ("line_delimiter", "left out: lines end with a line feed"),
    ("remove_after", "left out: files are never deleted"),
    ("remove_after_secs", "left out: files are never deleted"),
    ("max_read_bytes", OWN),
    ("oldest_first", OWN),
    ("glob_minimum_cooldown", OWN),
    ("glob_minimum_cooldown_ms", OWN),
    ("rotate_wait", "not needed: a deleted file is held for `rotate_wait`"),
    ("rotate_wait_secs", "not needed: a deleted file is held for `rotate_wait`"),
    ("internal_metrics", "not needed: `/metrics` has counters, and `tidegate file ls` shows files"),
    ("acknowledgements", "not needed: an offset is as durable as the lines before it"),
    ("log_namespace", "left out: fields have the names of OpenTelemetry"),
];

const DOCKER_LACKING: &Lacking = &[
    ("docker_host", "left out: the files of this machine are read"),
    ("tls", "left out: the files of this machine are read"),
    ("include_containers", "left out: all containers are read; a pipeline can `drop` others"),
    ("exclude_containers", "left out: all containers are read; a pipeline can `drop` them"),
    ("include_labels", "left out: labels of containers are not known"),
    ("include_images", "left out: images of containers are not known"),
    ("auto_partial_merge", "not needed: the parts of a line are joined"),
    ("partial_event_marker_field", "not needed: the parts of a line are joined"),
    ("retry_backoff_secs", "not needed"),
    ("host_key", NAMES),
    ("log_namespace", "left out: fields have the names of OpenTelemetry"),
];

const KUBERNETES_LACKING: &Lacking = &[
    ("extra_field_selector", "left out: `selector`, `namespaces` and `exclude` choose pods"),
    ("extra_namespace_label_selector", "left out: write the names of the namespaces in `namespaces`"),
    ("exclude_paths_glob_patterns", "left out: `exclude_namespaces`, `selector` and `exclude` choose pods"),
    ("include_paths_glob_patterns", "left out: `namespaces` and `selector` choose pods"),
    ("pod_annotation_fields", "left out: attributes have the names of OpenTelemetry"),
    ("namespace_annotation_fields", "left out: metadata of namespaces is not looked up"),
    ("node_annotation_fields", "left out: metadata of nodes is not looked up"),
    ("insert_namespace_fields", "not needed: metadata of namespaces is not looked up"),
    ("auto_partial_merge", "not needed: the parts of a line are joined"),
    ("ingestion_timestamp_field", "not needed: the time of reading is the observed time"),
    ("kube_config_file", "left out: set `api` for a cluster that the gateway is no pod of"),
    ("use_apiserver_cache", "not needed"),
    ("timezone", "left out: times of container runtimes have a zone"),
    ("max_merged_line_bytes", "not needed: `max_line` bounds lines with their parts joined"),
    (
        "delay_deletion_ms",
        "not needed: metadata is kept as long as a file of the pod is open, and `keep_deleted`",
    ),
];

/// An input of the source `file`.
pub(super) fn file(
    component: &Component<'_>,
    group: &mut Group<'_>,
    attributes: Map,
    out: &mut Map,
    reader: &mut FileReader<'_, '_>,
) {
    let mut input = Map::default();
    for setting in ["include", "exclude"] {
        let paths = group.texts(setting, reader);
        for path in paths.iter().filter(|path| !path.value.starts_with('/') && !path.is_open()) {
            let message = "make it absolute: tidegate reads no paths relative to its working directory";
            reader.note(&path.at, &group.path_of(setting), message);
        }
        if !paths.is_empty() {
            input.set(setting, Yaml::Flow(paths.into_iter().map(|path| path.value).collect()));
        } else if setting == "include" {
            let message = format!("`{}` has no `include`", component.path());
            reader.error(&component.entry.key_at, message, "add `include` with the paths of files");
        }
    }
    reading(group, &mut input, reader);
    if input.get("max_line").is_none() {
        // Vector's default, which is longer than ours.
        input.set("max_line", Bytes::new(100 << 10).to_string());
    }
    encoding(group, &mut input, reader);
    input.set_group("attributes", attributes);
    group.lacks(FILE_LACKING, reader);
    add(component, input, out);
}

/// The files of Docker's logging driver `json-file`.
pub(super) fn docker(
    component: &Component<'_>,
    group: &mut Group<'_>,
    attributes: Map,
    out: &mut Map,
    reader: &mut FileReader<'_, '_>,
) {
    let message = "the files of Docker's logging driver `json-file` are read instead of its API: from what is written now on; names, \
                   images and labels of containers are not known, and `log.file.path` has the id";
    component.note(message, reader);
    let mut input = Map::default();
    input.set("include", Yaml::Flow(vec!["/var/lib/docker/containers/*/*-json.log".to_owned()]));
    input.set("format", "docker");
    // The API gives what containers write from now on.
    input.set("start_at", "end");
    reading(group, &mut input, reader);
    input.set_group("attributes", attributes);
    group.lacks(DOCKER_LACKING, reader);
    add(component, input, out);
}

/// The source for the containers of a node.
pub(super) fn kubernetes(
    component: &Component<'_>,
    group: &mut Group<'_>,
    attributes: Map,
    out: &mut Map,
    reader: &mut FileReader<'_, '_>,
) {
    let mut source = Map::default();
    source.set("enabled", "true");
    // All of them are fields in Vector.
    source.set("labels", Yaml::Flow(vec!["*".to_owned()]));
    if let Some(node) = group.text("self_node_name", reader) {
        source.set("node", node.value);
    }
    source.set_some("selector", group.text("extra_label_selector", reader).map(|text| text.value));
    reading(group, &mut source, reader);
    source.set_group("attributes", attributes);
    group.lacks(KUBERNETES_LACKING, reader);
    group.lacks(FILE_LACKING, reader);
    let message = "attributes have the names of OpenTelemetry: `k8s.pod.name`, and `k8s.pod.label.KEY` for the labels in `labels`; the \
                   service account needs to list and watch pods";
    component.note(message, reader);
    let sources = out.group("sources");
    if sources.get("kubernetes_logs").is_some() {
        return component
            .note("left out: there is one source `kubernetes_logs`, and another has set it", reader);
    }
    sources.set("kubernetes_logs", source);
}

fn add(component: &Component<'_>, input: Map, out: &mut Map) {
    let inputs = out.group("sources").group("file").group("inputs");
    let name = numbered(&name_of(component.name), |name| inputs.get(name).is_some());
    inputs.set(&name, input);
}

/// Where reading begins, and which lines make a record.
fn reading(group: &mut Group<'_>, input: &mut Map, reader: &mut FileReader<'_, '_>) {
    if let Some(start) = group.text("read_from", reader).or_else(|| group.text("start_at", reader)) {
        match start.value.as_str() {
            "end" => input.set("start_at", "end"),
            // The default of both.
            "beginning" => {}
            _ if start.is_open() => input.set("start_at", start.value),
            _ => reader.error(&start.at, "reading begins at `beginning` or `end`", "write one of the two"),
        }
    }
    let path = group.path_of("max_line_bytes");
    let at = group.at.clone();
    // Vector drops lines that are longer; so it does where nothing is said.
    if let Some(bytes) = group.number("max_line_bytes", reader) {
        if bytes > 1 << 20 {
            reader.note(&at, &path, "lines are at most 1 MiB long");
        }
        input.set("max_line", Bytes::new(bytes.clamp(1 << 10, 1 << 20)).to_string());
        input.set("on_long_line", "drop");
    }
    if let Some(multiline) = multiline(group, reader) {
        input.set("multiline", multiline);
    }
}

fn multiline(group: &mut Group<'_>, reader: &mut FileReader<'_, '_>) -> Option<Map> {
    if let Some(pattern) = group.text("message_start_indicator", reader) {
        let mut ours = Map::default();
        ours.set("start_pattern", pattern.value);
        return Some(ours);
    }
    let mut theirs = group.group("multiline", reader)?;
    let mut ours = Map::default();
    let start = theirs.text("start_pattern", reader);
    let condition = theirs.text("condition_pattern", reader);
    let mode = theirs.text("mode", reader);
    let is_halt = mode.as_ref().is_some_and(|mode| mode.value.starts_with("halt"));
    if let (true, Some(start), Some(condition)) = (is_halt, &start, &condition)
        && start.value != condition.value
    {
        let message = "left out: every line may begin a record; `condition_pattern` tells where one ends";
        reader.note(&start.at, &theirs.path_of("start_pattern"), message);
    }
    let value = |text: Option<Text>| text.map(|text| text.value);
    match mode.as_ref().map(|mode| mode.value.as_str()) {
        Some("halt_before") => ours.set_some("start_pattern", value(condition)),
        Some("halt_with") => ours.set_some("end_pattern", value(condition)),
        Some("continue_past") => {
            let message =
                "left out: lines that go on behind a mark at their ends, such as `\\`, are not joined";
            reader.note(&theirs.at.clone(), &theirs.path_of("mode"), message);
        }
        Some("continue_through") => {
            let message =
                "a record goes on until a line that `start_pattern` matches; `condition_pattern` is left out";
            reader.note(&theirs.at.clone(), &theirs.path_of("mode"), message);
            ours.set_some("start_pattern", value(start));
        }
        _ => {
            let help = "write `halt_before`, `halt_with`, `continue_through` or `continue_past`";
            reader.error(&theirs.at.clone(), "`multiline` needs a `mode`", help);
        }
    }
    let timeout = theirs.number("timeout_ms", reader);
    if let Some(milliseconds) = timeout.filter(|_| !ours.is_empty()) {
        let milliseconds = milliseconds.clamp(10, 600_000);
        ours.set("timeout", Duration::milliseconds(milliseconds).to_string());
    }
    theirs.finish(reader);
    (!ours.is_empty()).then_some(ours)
}

fn encoding(group: &mut Group<'_>, input: &mut Map, reader: &mut FileReader<'_, '_>) {
    let Some(mut encoding) = group.group("encoding", reader) else { return };
    if let Some(charset) = encoding.text("charset", reader) {
        match charset.value.to_ascii_lowercase().as_str() {
            "utf-8" | "utf8" => {}
            "utf-16le" => input.set("encoding", "utf-16le"),
            "utf-16be" => input.set("encoding", "utf-16be"),
            "iso-8859-1" | "latin1" | "windows-1252" => input.set("encoding", "latin1"),
            _ => {
                let message = "left out: text is UTF-8, UTF-16 or Latin-1";
                reader.note(&charset.at, &encoding.path_of("charset"), message);
            }
        }
    }
    encoding.finish(reader);
}
