//! The input `systemd`: an input of the source `journald`.

use crate::import::document::{Map, Yaml};
use crate::import::fluent_bit::keys::SourceKeys;
use crate::import::fluent_bit::plugin::{Lacking, Plugin};
use crate::import::fluent_bit::tags::Mark;
use crate::import::fluent_bit::{FluentBit, Marker};
use crate::model::Signal;

const POSITION: &str = "not needed: the position is kept in the journal, in the folder `data`";

const LACKING: &Lacking = &[
    ("db.sync", POSITION),
    ("max_fields", "not needed: the fields of an entry are bounded"),
    ("max_entries", "not needed: batches are part of the memory plan"),
    ("strip_underscores", "left out: fields have names such as `systemd.unit`; see docs/journald.md"),
    ("lowercase", "left out: fields have names such as `systemd.unit`; see docs/journald.md"),
];

impl FluentBit {
    pub(super) fn systemd(&mut self, plugin: &mut Plugin<'_>, tag: &str) -> &'static [&'static str] {
        let mut input = Map::default();
        input.set_some("directory", plugin.text("path", &self.report).map(|path| path.text));
        let from_tail = plugin.flag("read_from_tail", &mut self.report) == Some(true);
        input.set("start_at", if from_tail { "end" } else { "beginning" });
        let is_all = plugin
            .text("systemd_filter_type", &self.report)
            .is_some_and(|kind| kind.text.eq_ignore_ascii_case("and"));
        let mut matches: Vec<String> = Vec::new();
        for filter in plugin.all("systemd_filter", &self.report) {
            let Some((field, _)) = filter.text.split_once('=') else {
                plugin.error(
                    &filter,
                    "a filter of the journal has no `=`",
                    "write `FIELD=VALUE`",
                    &mut self.report,
                );
                continue;
            };
            if is_all && matches.iter().any(|other| other.starts_with(&format!("{field}="))) {
                let message = "filters of the same field are alternatives here; in Fluent Bit with `And` an entry has to meet both";
                plugin.note_value(&filter, message, &mut self.report);
            }
            if !is_all && !matches.is_empty() {
                matches.push("+".to_owned());
            }
            matches.push(filter.text);
        }
        if !matches.is_empty() {
            input.set("matches", Yaml::Flow(matches));
        }
        input.set("fields", "all");
        if let Some(db) = plugin.text("db", &self.report) {
            let message = if from_tail {
                "the position is kept in the journal; entries between the last one that Fluent Bit read and the start of tidegate are \
                 not read: set `start_at: beginning` to have all again"
            } else {
                "the position is kept in the journal; entries that Fluent Bit has read come again: set `start_at: end` to leave them out"
            };
            plugin.note_value(&db, message, &mut self.report);
        }
        plugin.lacks(LACKING, &mut self.report);
        let message = "the body of a record is the message, and fields have names such as `systemd.unit` or `journald.FIELD`";
        plugin.note(message, &mut self.report);
        let inputs = self.out.group("sources").group("journald").group("inputs");
        let name = FluentBit::free_name(&mut self.names, inputs, tag);
        inputs.set(&name, input);
        let group = ["sources", "journald", "inputs", name.as_str()].map(str::to_owned).to_vec();
        let mark = Mark::Resource(tag.to_owned());
        self.add_origin(tag, &[Signal::Logs], mark, Marker::Attributes(group), None);
        self.has_keys(SourceKeys::Journal);
        &[
            "path",
            "read_from_tail",
            "systemd_filter",
            "systemd_filter_type",
            "db",
            "max_entries",
            "strip_underscores",
        ]
    }
}
