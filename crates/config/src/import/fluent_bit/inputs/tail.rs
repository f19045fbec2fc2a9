//! The input `tail`: an input of the source `file`, or the source `kubernetes_logs`.

use crate::error::quote;
use crate::import::document::{Map, Yaml};
use crate::import::fluent_bit::filters::note_refused;
use crate::import::fluent_bit::filters::parser::{Rest, steps as parser_steps};
use crate::import::fluent_bit::keys::{self, SourceKeys};
use crate::import::fluent_bit::parsers::Format;
use crate::import::fluent_bit::plugin::{Lacking, Plugin, Value, seconds};
use crate::import::fluent_bit::tags::{FilePath, Mark, Selector};
use crate::import::fluent_bit::{FilterSteps, FluentBit, Marker};
use crate::model::Signal;
use crate::values::Bytes;

const OFFSETS: &str = "not needed: offsets are kept in the journal, in the folder `data`";
const OWN_TIMES: &str = "not needed: the kernel tells of changes";
const DOCKER: &str = "not needed: the parts of a container's line are joined";

const LACKING: &Lacking = &[
    ("db.sync", OFFSETS),
    ("db.locking", OFFSETS),
    ("db.journal_mode", OFFSETS),
    ("db.compare_filename", OFFSETS),
    ("refresh_interval", OWN_TIMES),
    ("watcher_interval", OWN_TIMES),
    ("progress_check_interval", OWN_TIMES),
    ("progress_check_interval_nsec", OWN_TIMES),
    ("inotify_watcher", OWN_TIMES),
    ("file_cache_advise", "not needed"),
    ("static_batch_size", "not needed: batches are part of the memory plan"),
    ("event_batch_size", "not needed: batches are part of the memory plan"),
    ("keep_file_handle", "not needed: a file is open as long as it exists"),
    ("skip_empty_lines", "left out: drop them with `log.body == \"\"`"),
    ("truncate_long_lines", "not needed: longer lines are cut"),
    ("docker_mode", DOCKER),
    ("docker_mode_flush", DOCKER),
    ("docker_mode_parser", DOCKER),
    ("ignore_older", "left out: files are read whatever their age; put others in `exclude`"),
    ("ignore_active_older_files", "left out: files are read whatever their age; put others in `exclude`"),
    ("exit_on_eof", "left out: files are followed"),
    ("offset_key", "left out: offsets are no attributes"),
    ("tag_regex", "left out: tags are not made of paths, which are the resource attribute `log.file.path`"),
    ("multiline.buffer_limit", "left out: `multiline.max_record` bounds records"),
];

const KNOWN: &[&str] = &[
    "path",
    "exclude_path",
    "read_from_head",
    "parser",
    "multiline.parser",
    "path_key",
    "db",
    "key",
    "rotate_wait",
    "skip_long_lines",
    "buffer_max_size",
    "multiline",
    "multiline_flush",
    "parser_firstline",
    "mem_buf_limit",
    "refresh_interval",
    "ignore_older",
];

impl FluentBit {
    pub(super) fn tail(
        &mut self,
        plugin: &mut Plugin<'_>,
        tag: &str,
        kubernetes: &[Selector],
    ) -> &'static [&'static str] {
        let include = plugin.list("path", &self.report);
        let exclude = plugin.list("exclude_path", &self.report);
        if include.is_empty() {
            let message = "an input `tail` has no `path`";
            self.report.error(plugin.file(), plugin.at(), message, "add `Path /var/log/app/*.log`");
            plugin.take_all();
            return KNOWN;
        }
        let is_of_pods = |path: &Value| {
            ["/var/log/containers/", "/var/log/pods/"].iter().any(|folder| path.text.starts_with(folder))
        };
        let is_kubernetes =
            include.iter().all(is_of_pods) && kubernetes.iter().any(|selector| selector.may_take(tag));
        let mut input = Map::default();
        let from_head = plugin.flag("read_from_head", &mut self.report) == Some(true);
        input.set("start_at", if from_head { "beginning" } else { "end" });
        self.lines(plugin, &mut input);
        self.joining(plugin, &mut input);
        let steps = self.parsing(plugin, &mut input, is_kubernetes);
        let renamed = self.paths_and_offsets(plugin);
        let keys = match input.get("parse") {
            Some(Yaml::Text(preset)) if preset == "klog" => SourceKeys::Hidden(keys::COMPONENT_LOG),
            Some(_) => SourceKeys::Hidden(keys::ACCESS_LOG),
            None if renamed.is_empty() => SourceKeys::Usual,
            None => SourceKeys::Renamed(renamed),
        };
        plugin.lacks(LACKING, &mut self.report);
        let origin = self.origins.len();
        if is_kubernetes {
            self.add_origin(
                tag,
                &[Signal::Logs],
                Mark::Resource(tag.to_owned()),
                Marker::Kubernetes,
                Some(FilePath::Container),
            );
            self.kubernetes_tail(plugin, input, tag, &include, &exclude);
        } else {
            self.file_input(plugin, input, tag, &include, &exclude);
        }
        self.has_keys(keys);
        if !steps.is_empty() {
            note_refused(plugin, &steps, &mut self.report);
            self.filters.push(FilterSteps { selector: Selector::Origin(origin), position: 0, steps });
        }
        KNOWN
    }

    fn file_input(
        &mut self,
        plugin: &Plugin<'_>,
        rest: Map,
        tag: &str,
        include: &[Value],
        exclude: &[Value],
    ) {
        let mut input = Map::default();
        for (setting, paths) in [("include", include), ("exclude", exclude)] {
            for path in paths.iter().filter(|path| !path.text.starts_with('/') && !path.is_open()) {
                let message = "make it absolute: tidegate reads no paths relative to its working directory";
                plugin.note_value(path, message, &mut self.report);
            }
            if !paths.is_empty() {
                input.set(setting, Yaml::Flow(paths.iter().map(|path| path.text.clone()).collect()));
            }
        }
        input.append(&rest);
        let inputs = self.out.group("sources").group("file").group("inputs");
        let name = FluentBit::free_name(&mut self.names, inputs, tag);
        inputs.set(&name, input);
        let group = ["sources", "file", "inputs", name.as_str()].map(str::to_owned).to_vec();
        let mark = Mark::Resource(tag.to_owned());
        self.add_origin(tag, &[Signal::Logs], mark, Marker::Attributes(group), Some(FilePath::File));
    }

    /// How long lines may be.
    fn lines(&mut self, plugin: &mut Plugin<'_>, input: &mut Map) {
        if let Some(size) = plugin.size("buffer_max_size", &mut self.report) {
            input.set("max_line", Bytes::new(size.get().clamp(1 << 10, 1 << 20)).to_string());
        }
        match plugin.flag("skip_long_lines", &mut self.report) {
            Some(true) => input.set("on_long_line", "drop"),
            Some(false) => {
                plugin.note(
                    "a line that is too long is cut; Fluent Bit stops reading its file",
                    &mut self.report,
                );
            }
            None => {}
        }
        for key in ["unicode.encoding", "generic.encoding"] {
            let Some(value) = plugin.text(key, &self.report) else { continue };
            match value.text.to_ascii_lowercase().replace('_', "-").as_str() {
                "auto" | "utf-8" => {}
                encoding @ ("utf-16le" | "utf-16be") => input.set("encoding", encoding),
                "iso-8859-1" | "latin1" => input.set("encoding", "latin1"),
                _ => {
                    plugin.note_value(&value, "left out: text is UTF-8, UTF-16 or Latin-1", &mut self.report)
                }
            }
        }
        if let Some(wait) = plugin.text("rotate_wait", &self.report) {
            let message = "left out: `rotate_wait` of the source, 5 minutes by default, says how long a deleted file is held";
            plugin.note_value(&wait, message, &mut self.report);
        }
    }

    /// How lines are joined: a list of multiline parsers, or the older settings.
    fn joining(&mut self, plugin: &mut Plugin<'_>, input: &mut Map) {
        let mut formats = Vec::new();
        for value in plugin.list("multiline.parser", &self.report) {
            match (value.text.as_str(), self.parsers.multiline(&value.text).cloned()) {
                (_, Some(own)) if input.get("multiline").is_none() => {
                    let mut multiline = Map::default();
                    multiline.set("start_pattern", own.start);
                    multiline.set_some("timeout", own.timeout);
                    input.set("multiline", multiline);
                }
                (_, Some(_)) => {
                    let message = "left out: an input has one `start_pattern`, and another parser has set it";
                    plugin.note_value(&value, message, &mut self.report);
                }
                ("docker", None) => formats.push("docker"),
                ("cri", None) => formats.push("cri"),
                ("java" | "python" | "go" | "ruby", None) => {
                    let message = format!(
                        "the parser `{}` is left out: write `multiline.start_pattern` of the input, which the first line of a \
                         record matches, such as '^\\S' where the other lines are indented",
                        value.text
                    );
                    plugin.note_value(&value, message, &mut self.report);
                }
                (name, None) => {
                    let message = format!("left out: the multiline parser {} is not known here", quote(name));
                    plugin.note_value(&value, message, &mut self.report);
                }
            }
        }
        // Both together are told apart by the first line of each file, as is the default.
        if let [only] = formats.as_slice() {
            input.set("format", *only);
        }
        let is_multiline = plugin.flag("multiline", &mut self.report) == Some(true);
        let flush = plugin.text("multiline_flush", &self.report);
        if let Some(first) = plugin.text("parser_firstline", &self.report).filter(|_| is_multiline)
            && let Some(parser) = self.parsers.find(&first.text, plugin, &first, &mut self.report)
        {
            match parser.format {
                Format::Regex(regex) => {
                    let mut multiline = Map::default();
                    multiline.set("start_pattern", regex);
                    multiline.set_some("timeout", flush.and_then(|flush| seconds(&flush.text)));
                    input.set("multiline", multiline);
                    let message =
                        "its pattern begins a record; write a step with `ExtractPatterns` for its groups";
                    plugin.note_value(&first, message, &mut self.report);
                }
                _ => {
                    let message = "left out: only a regular expression can begin a record";
                    plugin.note_value(&first, message, &mut self.report);
                }
            }
        }
        for value in
            plugin.take_where(|key| key.starts_with("parser_") && key != "parser_firstline", &self.report)
        {
            plugin.note_value(
                &value,
                "left out: the lines of a record are joined as they are",
                &mut self.report,
            );
        }
    }

    /// Converts the parser of lines: to a setting of the input, or to steps behind it.
    fn parsing(
        &mut self,
        plugin: &mut Plugin<'_>,
        input: &mut Map,
        is_kubernetes: bool,
    ) -> Vec<crate::import::steps::Step> {
        let Some(value) = plugin.text("parser", &self.report) else { return Vec::new() };
        let Some(parser) = self.parsers.find(&value.text, plugin, &value, &mut self.report) else {
            return Vec::new();
        };
        match &parser.format {
            Format::Regex(_) | Format::Ltsv | Format::Preset("json" | "logfmt") => {
                let rest = Rest { keeps_text: false, keeps_others: true };
                return parser_steps(&parser, ("log.body", rest), &value, plugin, &mut self.report);
            }
            Format::Preset(preset) => {
                input.set("parse", *preset);
                let message = "`parse` does the work of the parser: the parts have the names of docs/parsing.md, the time and the level \
                               are those of the record, and the line stays the body";
                plugin.note_value(&value, message, &mut self.report);
            }
            Format::Container(_) if is_kubernetes => {
                let message = "not needed: the source knows the formats of container runtimes";
                plugin.note_value(&value, message, &mut self.report);
            }
            Format::Container(format) => input.set("format", *format),
            Format::Syslog(_) | Format::Unknown => {
                let message =
                    "left out: write a step with `ExtractPatterns` or `ExtractGrokPatterns` for such lines";
                plugin.note_value(&value, message, &mut self.report);
            }
        }
        Vec::new()
    }

    /// Settings of files without a counterpart; the keys that the record has under other names.
    fn paths_and_offsets(&mut self, plugin: &mut Plugin<'_>) -> Vec<(String, String)> {
        let mut renamed = Vec::new();
        if let Some(key) = plugin.text("key", &self.report).filter(|key| key.text != "log") {
            plugin.note_value(&key, "the line is the body, whatever its key was", &mut self.report);
            renamed.push((key.text, "log.body".to_owned()));
        }
        if let Some(key) = plugin.text("path_key", &self.report) {
            let message = "the path is the resource attribute `log.file.path`";
            plugin.note_value(&key, message, &mut self.report);
            renamed.push((key.text, "resource.attributes[\"log.file.path\"]".to_owned()));
        }
        if let Some(db) = plugin.text("db", &self.report) {
            let message = format!(
                "offsets are kept in the journal; `tidegate import checkpoints fluent-bit {}` takes over how far the files were read",
                db.text
            );
            plugin.note_value(&db, message, &mut self.report);
        }
        renamed
    }
}
