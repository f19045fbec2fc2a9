//! The receiver `journald`: an input of the source `journald`.

use crate::import::document::{Map, Yaml};
use crate::import::group::{FileReader, Group, Lacking};
use crate::import::otelcol::{Collector, settings};
use crate::import::sinks::name_of;
use crate::yaml::Entry;

const LACKING: &Lacking = &[
    ("files", "left out: set `directory` to the folder of the files"),
    ("root_path", "left out: set `journalctl` and `directory` to what is mounted"),
    ("grep", "left out: a pipeline can `drop` the others"),
    ("all", "not needed: long fields are read whole, up to `max_message`"),
    ("merge", "not needed: set `directory` to the folder with the journals of all machines"),
    ("convert_message_bytes", "not needed: messages are text, with U+FFFD for bytes that are not"),
    ("attributes", "left out: set attributes of records with `edit` in a pipeline"),
    ("operators", "left out: a pipeline can do the same with `edit` or `drop`"),
    ("retry_on_failure", "not needed: reading waits while records cannot be stored"),
    ("storage", "not needed: the cursor is kept in the journal, in the folder `data`"),
];

/// The priorities by their numbers.
const PRIORITIES: [&str; 8] = ["emerg", "alert", "crit", "err", "warning", "notice", "info", "debug"];

impl Collector<'_> {
    pub(super) fn journald_receiver(&mut self, entry: &Entry, reader: &mut FileReader<'_, '_>) {
        let Some(mut group) = settings(entry, "receivers", reader) else { return };
        let mut input = Map::default();
        for setting in ["directory", "namespace"] {
            input.set_some(setting, group.text(setting, reader).map(|text| text.value));
        }
        for setting in ["units", "identifiers"] {
            let values = group.texts(setting, reader);
            if !values.is_empty() {
                input.set(setting, Yaml::Flow(values.into_iter().map(|value| value.value).collect()));
            }
        }
        priority(&mut group, &mut input, reader);
        matches(&mut group, &mut input, reader);
        input.set_some("start_at", group.text("start_at", reader).map(|text| text.value));
        input.set("fields", "all");
        if let Some(mut resource) = group.group("resource", reader) {
            input.set_group("attributes", super::filelog::attributes(&mut resource, reader));
        }
        let program = group.text("journalctl_path", reader).map(|text| text.value);
        group.lacks(LACKING, reader);
        group.finish(reader);
        let message = "the body of a record is the message, and other fields are attributes `journald.FIELD`; in the Collector the \
                       body is the whole entry";
        reader.note(&entry.key_at, &format!("receivers.{}", entry.key), message);
        let source = self.out.group("sources").group("journald");
        source.set_some("journalctl", program);
        let name = name_of(entry.key.split_once('/').map_or(entry.key.as_str(), |(_, name)| name));
        let name: String = name.chars().take(31).collect();
        source.group("inputs").set(&name, input);
    }
}

/// The least urgent priority, which is `info` in the Collector by default.
fn priority(group: &mut Group<'_>, input: &mut Map, reader: &mut FileReader<'_, '_>) {
    let Some(text) = group.text("priority", reader) else { return input.set("priority", "info") };
    let number = text.value.parse::<usize>().ok().and_then(|number| PRIORITIES.get(number).copied());
    match number.or_else(|| PRIORITIES.into_iter().find(|name| *name == text.value)) {
        Some(name) => input.set("priority", name),
        None => {
            let message = "left out: write one priority; entries that are more urgent are read, too";
            reader.note(&text.at, &group.path_of("priority"), message);
        }
    }
}

/// Groups of matches, one of which an entry must have.
fn matches(group: &mut Group<'_>, input: &mut Map, reader: &mut FileReader<'_, '_>) {
    let path = group.path_of("matches");
    let mut all = Vec::new();
    for node in group.items("matches", reader) {
        let Some(mut fields) = reader.group(node, &path) else { continue };
        if !all.is_empty() {
            all.push("+".to_owned());
        }
        for entry in fields.take_all() {
            let value = reader.text(&entry.node, &fields.path_of(&entry.key));
            all.extend(value.map(|value| format!("{}={}", entry.key, value.value)));
        }
    }
    if group.flag("dmesg", reader) == Some(true) {
        if all.is_empty() {
            all.push("_TRANSPORT=kernel".to_owned());
            input.set("current_boot", "true");
        } else {
            let message = "left out: add `_TRANSPORT=kernel` to `matches`";
            reader.note(&group.at.clone(), &group.path_of("dmesg"), message);
        }
    }
    if !all.is_empty() {
        input.set("matches", Yaml::Flow(all));
    }
}
