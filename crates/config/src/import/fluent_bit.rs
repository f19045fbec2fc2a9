//! Configurations of Fluent Bit, in both formats.

mod classic;
mod containers;
mod filters;
mod inputs;
mod keys;
mod known;
mod load;
mod outputs;
mod parsers;
mod plugin;
mod record;
mod report;
mod section;
mod service;
mod tags;
mod yaml;

use super::document::{Map, Yaml};
use super::notes::Imported;
use super::ottl::literal;
use super::sinks::Output;
use super::steps::Step;
use crate::error::Errors;
use inputs::kubernetes::KubernetesTails;
use load::Loader;
use parsers::Parsers;
use plugin::Plugin;
use report::Report;
use section::{Section, SectionKind};
use std::collections::BTreeMap;
use std::ops::Range;
use tags::{Origin, Selector, TAG};

/// Reads a file that the configuration names.
type ReadFile<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// The most ways from inputs through filters to outputs that are looked at.
const MOST_WAYS: usize = 200_000;

/// Where the tag of an input's records is written.
#[derive(Debug, Clone, PartialEq)]
enum Marker {
    /// Among the `attributes` of a group of settings, by its path.
    Attributes(Vec<String>),
    /// By a pipeline of the source.
    Pipeline(&'static str),
    /// By the pipeline of the source `kubernetes_logs`.
    Kubernetes,
    /// Clients send it.
    Client,
    /// Nowhere: pipelines do not apply to what this source receives.
    Never,
}

/// The steps of a filter.
struct FilterSteps {
    selector: Selector,
    /// The position of the filter.
    position: usize,
    steps: Vec<Step>,
}

/// A filter in front of others, whether or not it has steps.
struct EarlierFilter {
    selector: Selector,
    name: String,
    position: usize,
    line: usize,
}

/// An input that shares a source with an earlier one of another tag.
struct Joined {
    file: usize,
    at: Range<usize>,
    source: &'static str,
    tags: [String; 2],
}

/// The state of an import.
struct FluentBit {
    report: Report,
    parsers: Parsers,
    /// The configuration that is made.
    out: Map,
    output: Output,
    origins: Vec<Origin>,
    /// Of each origin.
    markers: Vec<Marker>,
    filters: Vec<FilterSteps>,
    /// The filters so far that change records.
    earlier: Vec<EarlierFilter>,
    tails: KubernetesTails,
    /// Whether a condition looks at the tag.
    needs_tags: bool,
    /// How many inputs of each plugin there are, for default tags.
    instances: Vec<(String, usize)>,
    /// The next number of each name of an input.
    names: BTreeMap<String, usize>,
    /// Inputs whose records cannot be told from those of another.
    joined: Vec<Joined>,
}

/// Converts the configuration of a Fluent Bit, in the classic format or in YAML. `source` is what to call `text` in messages;
/// the paths that it names are relative to the folder of `source`. `read` reads the files that it includes, and those of its
/// parsers.
///
/// # Errors
/// Every mistake in it, with its place, or a file that cannot be read.
pub fn fluent_bit(source: &str, text: &str, read: ReadFile<'_>) -> Result<Imported, Errors> {
    let Loader { mut report, sections, lacks_parsers, .. } = Loader::load(source, text, read)?;
    let parsers = Parsers::read(&sections, lacks_parsers, &mut report);
    let mut fluent_bit = FluentBit {
        report,
        parsers,
        out: Map::default(),
        output: Output::default(),
        origins: Vec::new(),
        markers: Vec::new(),
        filters: Vec::new(),
        earlier: Vec::new(),
        tails: KubernetesTails::default(),
        needs_tags: false,
        instances: Vec::new(),
        names: BTreeMap::new(),
        joined: Vec::new(),
    };
    fluent_bit.convert(&sections);
    let FluentBit { report, mut out, output, tails, origins, markers, needs_tags, .. } = fluent_bit;
    output.write(&mut out);
    let tags = needs_tags.then_some(origins.as_slice());
    tails.write(tags, &mut out);
    if needs_tags {
        mark(&origins, &markers, &mut out);
    }
    let notes = report.finish()?;
    let title = format!("Converted from {source}, a configuration of Fluent Bit.");
    Ok(notes.print(source, &title, &out, &[]))
}

impl FluentBit {
    fn convert(&mut self, sections: &[Section]) {
        let of = |kind: SectionKind| sections.iter().filter(move |section| section.kind == kind);
        of(SectionKind::Service).for_each(|section| service::service(section, &mut self.report));
        if of(SectionKind::Input).next().is_none() && of(SectionKind::Output).next().is_none() {
            let help = "is this the configuration of a Fluent Bit?";
            return self.report.error(0, &(0..0), "there are no inputs and no outputs", help);
        }
        let kubernetes: Vec<Selector> = of(SectionKind::Filter)
            .filter(|section| {
                section.raw("name").is_some_and(|name| name.value.eq_ignore_ascii_case("kubernetes"))
            })
            .filter_map(|section| {
                let mut quiet = self.report.without_files();
                let mut plugin = Plugin::new(section, &mut quiet)?;
                Selector::read(&mut plugin, &mut quiet)
            })
            .collect();
        for section in of(SectionKind::Input) {
            self.input(section, &kubernetes);
        }
        let (outputs, filters) = (of(SectionKind::Output).count(), of(SectionKind::Filter).count());
        if self.has_too_many_ways(outputs, filters) {
            return;
        }
        self.tells_tags_apart(of(SectionKind::Filter).chain(of(SectionKind::Output)));
        for (position, section) in of(SectionKind::Filter).enumerate() {
            self.filter(section, position);
        }
        // Rules have made more origins, and parsers of inputs more filters.
        if self.has_too_many_ways(outputs, self.filters.len()) {
            return;
        }
        for section in of(SectionKind::Output) {
            self.output(section);
        }
        if self.output.sinks.is_empty() {
            let message = "no output became a sink; tidegate would store everything in a lake";
            self.report.note(0, &(0..0), "outputs", message);
        }
        if self.needs_tags {
            let message =
                "records get the resource attribute `fluent.tag`, by which sinks and steps tell them apart";
            self.report.note(0, &(0..0), "inputs", message);
        }
    }
}

impl FluentBit {
    /// Whether there are more ways than are looked at, which is a mistake.
    fn has_too_many_ways(&mut self, outputs: usize, filters: usize) -> bool {
        let ways = outputs.max(1).saturating_mul(filters + 1).saturating_mul(self.origins.len());
        if ways > MOST_WAYS {
            let message =
                format!("there are more than {MOST_WAYS} ways from inputs through filters to outputs");
            self.report.error(0, &(0..0), message, "split the configuration");
        }
        ways > MOST_WAYS
    }

    /// Notes a mistake where a filter or an output takes the records of one of two inputs that share a source.
    fn tells_tags_apart<'s>(&mut self, sections: impl Iterator<Item = &'s Section>) {
        if self.joined.is_empty() {
            return;
        }
        let mut quiet = self.report.without_files();
        let selectors: Vec<Selector> = sections
            .filter_map(|section| Selector::read(&mut Plugin::new(section, &mut quiet)?, &mut quiet))
            .collect();
        for Joined { file, at, source, tags: [tag, other] } in std::mem::take(&mut self.joined) {
            if selectors.iter().any(|selector| selector.may_take(&tag) != selector.may_take(&other)) {
                let message = format!(
                    "the inputs with the tags `{tag}` and `{other}` share the source `{source}`, and one of the tags alone is matched below"
                );
                self.report.error(file, &at, message, "give both the same tag, or split the configuration");
            }
        }
    }
}

/// Has each source write the tags of its records.
fn mark(origins: &[Origin], markers: &[Marker], out: &mut Map) {
    let mut pipelines: Vec<&'static str> = Vec::new();
    for (origin, marker) in origins.iter().zip(markers) {
        let tags::Mark::Resource(tag) = &origin.mark else { continue };
        match marker {
            Marker::Attributes(path) => {
                let group = path.iter().fold(&mut *out, |map, key| map.group(key));
                group.group("attributes").set(TAG, tag.as_str());
            }
            Marker::Pipeline(source) if !pipelines.contains(source) => {
                pipelines.push(source);
                let name = format!("tag-{source}").replace('_', "-");
                let mut step = Map::default();
                step.set("name", "tag");
                let statement = format!("set(resource.attributes[{}], {})", literal(TAG), literal(tag));
                step.set("edit", Yaml::List(vec![statement.into()]));
                let mut pipeline = Map::default();
                pipeline.set("steps", Yaml::List(vec![step.into()]));
                out.group("pipelines").set(&name, pipeline);
                out.group("sources").group(source).set("pipeline", name);
            }
            _ => {}
        }
    }
}
