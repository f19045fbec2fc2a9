//! The source `journald`.

use crate::import::document::{Map, Yaml};
use crate::import::group::{FileReader, Group, Lacking};
use crate::import::sinks::{name_of, numbered};
use crate::import::vector::components::Component;

const LACKING: &Lacking = &[
    ("exclude_units", "left out: a pipeline can `drop` them by the attribute `systemd.unit`"),
    ("exclude_matches", "left out: a pipeline can `drop` them by their attributes"),
    ("units", "left out: write them as `include_units`"),
    ("data_dir", "not needed: the cursor is kept in the journal"),
    ("batch_size", "not needed: batches are part of the memory plan"),
    ("remap_priority", "not needed: the priority becomes the severity"),
    ("emit_cursor", "left out: cursors are no attributes"),
    ("extra_args", "left out: `journalctl` gets the arguments that the settings need"),
    ("acknowledgements", "not needed: the cursor is as durable as the records before it"),
    ("log_namespace", "left out: fields have the names of OpenTelemetry"),
];

/// An input of the source `journald`.
pub(super) fn journald(
    component: &Component<'_>,
    group: &mut Group<'_>,
    attributes: Map,
    out: &mut Map,
    reader: &mut FileReader<'_, '_>,
) {
    let mut input = Map::default();
    for (theirs, ours) in [("journal_directory", "directory"), ("journal_namespace", "namespace")] {
        input.set_some(ours, group.text(theirs, reader).map(|text| text.value));
    }
    // A name without a suffix is that of a service.
    let units: Vec<String> = group
        .texts("include_units", reader)
        .into_iter()
        .map(
            |unit| {
                if unit.value.contains(['.', '$']) { unit.value } else { format!("{}.service", unit.value) }
            },
        )
        .collect();
    if !units.is_empty() {
        input.set("units", Yaml::Flow(units));
    }
    matches(group, &mut input, reader);
    if group.flag("current_boot_only", reader) != Some(false) {
        input.set("current_boot", "true");
    }
    input.set("start_at", if group.flag("since_now", reader) == Some(true) { "end" } else { "beginning" });
    input.set("fields", "all");
    input.set_group("attributes", attributes);
    let program = group.text("journalctl_path", reader).map(|text| text.value);
    group.lacks(LACKING, reader);
    let message =
        "fields have the names of OpenTelemetry (`systemd.unit`), others are attributes `journald.FIELD`";
    component.note(message, reader);
    let source = out.group("sources").group("journald");
    source.set_some("journalctl", program);
    let name: String = name_of(component.name).chars().take(28).collect();
    let inputs = source.group("inputs");
    let name = numbered(&name, |name| inputs.get(name).is_some());
    inputs.set(&name, input);
}

fn matches(group: &mut Group<'_>, input: &mut Map, reader: &mut FileReader<'_, '_>) {
    let Some(mut fields) = group.group("include_matches", reader) else { return };
    let mut all = Vec::new();
    for entry in fields.take_all() {
        let path = fields.path_of(&entry.key);
        for value in reader.texts(&entry.node, &path) {
            all.push(format!("{}={}", entry.key, value.value));
        }
    }
    if !all.is_empty() {
        input.set("matches", Yaml::Flow(all));
    }
}
