//! Inputs: the files and journals that tidegate reads, and the addresses that it listens on.

pub(super) mod kubernetes;
mod network;
mod systemd;
mod tail;

use super::keys::SourceKeys;
use super::plugin::{Lacking, Plugin};
use super::section::{Section, SectionKind};
use super::tags::{FilePath, Mark, Origin, Selector};
use super::{FluentBit, Joined, Marker, known};
use crate::import::document::Map;
use crate::model::Signal;
use std::collections::BTreeMap;

/// Properties that all inputs have.
const COMMON: &Lacking = &[
    ("alias", "not needed: metrics have the names of sources"),
    ("log_level", "not needed: `--log` of `tidegate run` says what is logged"),
    ("log_suppress_interval", "not needed: repeated lines of the log are suppressed"),
    ("mem_buf_limit", "not needed: `memory` bounds the whole process, and records wait on disk"),
    ("threaded", "not needed: threads are part of the memory plan"),
    ("routable", "left out: every sink gets the records that it matches"),
    ("buffer_chunk_size", "not needed: buffers are part of the memory plan"),
    ("chunk_size", "not needed: buffers are part of the memory plan"),
    ("interval_sec", "not needed"),
    ("interval_nsec", "not needed"),
];

impl FluentBit {
    /// Converts an input. `kubernetes` says for which tags the metadata of pods are looked up.
    pub(super) fn input(&mut self, section: &Section, kubernetes: &[Selector]) {
        let Some(mut plugin) = Plugin::new(section, &mut self.report) else { return };
        let number = self.instance(&plugin.name);
        let tag = plugin.text("tag", &self.report).map(|tag| tag.text);
        let default_tag = format!("{}.{number}", plugin.name);
        let is_tagged = tag.is_some();
        let tag = tag.unwrap_or(default_tag);
        // Of a tag that is made of paths only the rest is known.
        let has_parts = section.raw("tag_regex").is_some();
        let tag = if has_parts { without_parts(&tag) } else { tag };
        let origins = self.origins.len();
        plugin.lacks(COMMON, &mut self.report);
        plugin.lacks_prefix("storage.", "not needed: records wait in the journal on disk", &mut self.report);
        plugin.lacks_prefix("thread.", "not needed: threads are part of the memory plan", &mut self.report);
        let known: &[&'static str] = match plugin.name.as_str() {
            "tail" => self.tail(&mut plugin, &tag, kubernetes),
            "systemd" => self.systemd(&mut plugin, &tag),
            "syslog" => self.syslog(&mut plugin, &tag),
            "forward" => self.forward(&mut plugin, &tag, is_tagged),
            "opentelemetry" => self.opentelemetry(&mut plugin, &tag),
            "http" => self.http_input(&mut plugin, &tag, is_tagged),
            "elasticsearch" => self.elasticsearch_input(&mut plugin, &tag),
            "prometheus_remote_write" => self.remote_write_input(&mut plugin, &tag),
            _ => {
                known::unknown(SectionKind::Input, &plugin, &mut self.report);
                plugin.take_all();
                return;
            }
        };
        if has_parts {
            self.origins.iter_mut().skip(origins).for_each(|origin| origin.path = None);
        }
        plugin.finish(known, &mut self.report);
    }

    /// The number of an input among those of its plugin.
    fn instance(&mut self, name: &str) -> usize {
        match self.instances.iter_mut().find(|(of, _)| of == name) {
            Some((_, count)) => {
                *count += 1;
                *count
            }
            None => {
                self.instances.push((name.to_owned(), 0));
                0
            }
        }
    }

    /// Adds records of a tag.
    fn add_origin(
        &mut self,
        tag: &str,
        signals: &[Signal],
        mark: Mark,
        marker: Marker,
        path: Option<FilePath>,
    ) {
        let tags = vec![(tag.to_owned(), usize::MAX)];
        let keys = SourceKeys::default();
        self.origins.push(Origin {
            tags,
            signals: signals.to_vec(),
            mark,
            conditions: Vec::new(),
            path,
            keys,
            root: self.origins.len(),
        });
        self.markers.push(marker);
    }

    /// Says where the records that were added last have their keys.
    fn has_keys(&mut self, keys: SourceKeys) {
        if let Some(origin) = self.origins.last_mut() {
            origin.keys = keys;
        }
    }

    /// Adds records of a source whose pipeline writes the tag. Where another input has the same source, the two cannot be
    /// told apart.
    fn add_source(&mut self, plugin: &Plugin<'_>, tag: &str, signals: &[Signal], source: &'static str) {
        let marker = Marker::Pipeline(source);
        let other = self.markers.iter().position(|other| *other == marker);
        let mark = match other.and_then(|other| self.origins.get(other)).map(|origin| origin.mark.clone()) {
            Some(mark) => {
                if mark != Mark::Resource(tag.to_owned()) {
                    let message = format!(
                        "the source `{source}` has the records of another input, too: sinks and steps cannot tell their tags apart"
                    );
                    plugin.note(message, &mut self.report);
                    let (Mark::Resource(other) | Mark::Forward(other)) = &mark;
                    let tags = [tag.to_owned(), other.clone()];
                    self.joined.push(Joined { file: plugin.file(), at: plugin.at().clone(), source, tags });
                }
                mark
            }
            None => Mark::Resource(tag.to_owned()),
        };
        self.add_origin(tag, signals, mark, marker, None);
    }

    /// A name of an entry that `group` does not have yet; `numbers` has the next one of each name.
    fn free_name(numbers: &mut BTreeMap<String, usize>, group: &Map, wanted: &str) -> String {
        let name = crate::import::sinks::name_of(wanted.trim_end_matches(['*', '.']));
        let name: String = name.chars().take(24).collect();
        let name = name.trim_end_matches('-');
        let name = if name.is_empty() { "input" } else { name };
        let number = numbers.entry(name.to_owned()).or_insert(1);
        let mut free = if *number == 1 { name.to_owned() } else { format!("{name}-{number}") };
        *number += 1;
        while group.get(&free).is_some() {
            free = format!("{name}-{number}");
            *number += 1;
        }
        free
    }
}

/// A tag whose references to parts of a path, such as `<pod_name>`, are unknown.
fn without_parts(tag: &str) -> String {
    let mut out = String::new();
    let mut rest = tag;
    while let Some((before, (_, behind))) =
        rest.split_once('<').and_then(|(before, after)| Some((before, after.split_once('>')?)))
    {
        out.push_str(before);
        out.push('*');
        rest = behind;
    }
    out + rest
}
