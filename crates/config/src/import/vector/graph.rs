//! The ways through a configuration: from sources over transforms to sinks.

use std::collections::BTreeMap;

use super::Vector;
use super::components::Section;
use super::decoding::decoded;
use super::inputs::OutputId;
use super::sources::{Mark, SourceKind};
use super::transforms::{Action, Transformed};
use super::vocabulary::{Origin, Vocabulary};
use crate::import::group::FileReader;
use crate::import::sinks::{Destination, Flow, Route, signal_name};
use crate::import::steps::{Step, StepKind};
use crate::model::Signal;

/// The most ways from sources: branches that join multiply them.
const MOST_WAYS: usize = 3000;

/// A way from a source.
#[derive(Debug, Clone)]
pub(super) struct Way {
    /// The source's place among the components.
    source: usize,
    signal: Signal,
    pub(super) vocabulary: Vocabulary,
    /// Conditions before any step.
    conditions: Vec<String>,
    steps: Vec<Step>,
    /// The last component on it.
    name: String,
}

/// The state of a walk.
struct Walk<'g> {
    inputs: &'g BTreeMap<usize, Vec<OutputId>>,
    actions: &'g [Option<Action>],
    ways: BTreeMap<OutputId, Vec<Way>>,
    /// The translations so far: of each transform, for events with these fields.
    transformed: BTreeMap<(OutputId, Vocabulary), Option<Transformed>>,
    open: Vec<usize>,
    count: usize,
    /// The length of all texts on the ways.
    bytes: usize,
}

/// The most bytes that the texts on all ways may have.
const MOST_BYTES: usize = 64 << 20;

impl Walk<'_> {
    fn is_full(&self) -> bool {
        self.count > MOST_WAYS || self.bytes > MOST_BYTES
    }
}

impl Way {
    /// The length of its texts.
    fn len(&self) -> usize {
        let steps = self.steps.iter().flat_map(|step| match &step.kind {
            StepKind::Drop(texts) | StepKind::Keep(texts) | StepKind::Edit(texts) => texts.as_slice(),
            StepKind::Sample(_) => &[],
        });
        steps.chain(&self.conditions).map(String::len).sum()
    }
}

impl Vector<'_> {
    /// Converts all components, and joins them.
    pub(super) fn connect(&mut self, reader: &mut FileReader<'_, '_>) {
        let mut actions: Vec<Option<Action>> = Vec::new();
        for index in 0..self.all.len() {
            let is_transform = self.all.get(index).is_some_and(|one| one.section == Section::Transforms);
            actions.push(if is_transform { self.action(index, reader) } else { None });
        }
        let outputs = self.outputs(&actions);
        let mut inputs: BTreeMap<usize, Vec<OutputId>> = BTreeMap::new();
        for index in 0..self.all.len() {
            inputs.insert(index, self.inputs_of(index, &outputs, reader));
        }
        let reached = self.reached(&inputs);
        let mut walk = Walk {
            inputs: &inputs,
            actions: &actions,
            ways: BTreeMap::new(),
            transformed: BTreeMap::new(),
            open: Vec::new(),
            count: 0,
            bytes: 0,
        };
        let mut sinks: Vec<(usize, Vec<Way>)> = Vec::new();
        for index in 0..self.all.len() {
            if self.all.get(index).is_some_and(|one| one.section == Section::Sinks) {
                let mut ways = Vec::new();
                for input in inputs.get(&index).into_iter().flatten() {
                    let more = self.ways(input, &mut walk, reader);
                    walk.bytes += more.iter().map(Way::len).sum::<usize>();
                    ways.extend(more);
                    if walk.is_full() {
                        break;
                    }
                }
                sinks.push((index, ways));
            }
        }
        if walk.is_full() {
            let message = format!(
                "there are more than {MOST_WAYS} ways from sources to sinks, or too many statements on them"
            );
            reader.error(&(0..0), message, "join transforms, or convert a part of the configuration");
            return;
        }
        let groups: Vec<(usize, Vec<Group>)> =
            sinks.into_iter().map(|(index, ways)| (index, grouped(ways))).collect();
        let live = live_sources(&groups);
        let is_marked = groups.iter().any(|(_, groups)| groups.iter().any(|group| group.is_part(&live)));
        for (index, component) in self.all.iter().enumerate() {
            if component.section != Section::Sinks && !reached.contains(&index) {
                component.note("left out: no sink takes its events", reader);
            }
        }
        for index in &reached {
            self.source(*index, is_marked, reader);
        }
        for (index, groups) in groups {
            self.sink(index, groups, &live, reader);
        }
    }

    /// The components from which something comes to a sink.
    fn reached(&self, inputs: &BTreeMap<usize, Vec<OutputId>>) -> Vec<usize> {
        let is_sink = |index: &usize| self.all.get(*index).is_some_and(|one| one.section == Section::Sinks);
        let mut open: Vec<usize> = (0..self.all.len()).filter(is_sink).collect();
        let mut reached = Vec::new();
        while let Some(index) = open.pop() {
            for id in inputs.get(&index).into_iter().flatten() {
                if !reached.contains(&id.component) {
                    reached.push(id.component);
                    open.push(id.component);
                }
            }
        }
        reached.sort_unstable();
        reached
    }

    /// The ways that end at an output.
    fn ways(&self, id: &OutputId, walk: &mut Walk<'_>, reader: &mut FileReader<'_, '_>) -> Vec<Way> {
        if let Some(known) = walk.ways.get(id) {
            return known.clone();
        }
        let Some(component) = self.all.get(id.component) else { return Vec::new() };
        if component.section == Section::Sources {
            let ways = SourceKind::of(&component.kind).ways(&id.output);
            let ways: Vec<Way> = ways
                .into_iter()
                .map(|(signal, origin)| {
                    let (vocabulary, step) = decoded(component, origin, reader);
                    Way {
                        source: id.component,
                        signal,
                        vocabulary,
                        conditions: Vec::new(),
                        steps: step.into_iter().collect(),
                        name: component.name.to_owned(),
                    }
                })
                .collect();
            walk.ways.insert(id.clone(), ways.clone());
            return ways;
        }
        if walk.open.contains(&id.component) {
            let message = format!("the inputs of `{}` lead back to itself", component.path());
            reader.error(&component.entry.key_at, message, "remove one of the inputs in the circle");
            return Vec::new();
        }
        // Deeper chains are nobody's, and the stack is bounded.
        if walk.open.len() > 200 || walk.is_full() {
            walk.count = MOST_WAYS + 1;
            return Vec::new();
        }
        walk.open.push(id.component);
        let mut ways = Vec::new();
        let inputs = walk.inputs;
        for input in inputs.get(&id.component).into_iter().flatten() {
            for way in self.ways(input, walk, reader) {
                walk.count += 1;
                if !walk.is_full() {
                    let way = self.onward(id, way, walk, reader);
                    walk.bytes += way.as_ref().map_or(0, Way::len);
                    ways.extend(way);
                }
            }
        }
        walk.open.pop();
        walk.ways.insert(id.clone(), ways.clone());
        ways
    }

    /// A way behind a transform.
    fn onward(
        &self,
        id: &OutputId,
        mut way: Way,
        walk: &mut Walk<'_>,
        reader: &mut FileReader<'_, '_>,
    ) -> Option<Way> {
        let component = self.all.get(id.component)?;
        let actions = walk.actions;
        let action = actions.get(id.component)?.as_ref()?;
        let key = (id.clone(), way.vocabulary.clone());
        let transformed = walk
            .transformed
            .entry(key)
            .or_insert_with(|| action.apply(component, &id.output, &way.vocabulary, reader))
            .clone()?;
        if way.vocabulary.origin == Origin::Metrics && !transformed.steps.is_empty() {
            let message =
                "its steps apply to metrics that came as OTLP; series of remote write need `relabel` rules";
            component.note(message, reader);
        }
        way.name = match id.output.as_str() {
            "" => component.name.to_owned(),
            output => format!("{}-{output}", component.name),
        };
        if let Some(condition) = transformed.condition {
            if way.steps.is_empty() {
                way.conditions.push(condition);
            } else {
                way.steps.push(Step::keep(&way.name, condition));
            }
        }
        way.steps.extend(transformed.steps);
        way.vocabulary = transformed.vocabulary;
        Some(way)
    }

    /// The flows of a group of ways to a sink.
    pub(super) fn flow(
        &self,
        group: &Group,
        live: &[(usize, Signal)],
        reader: &mut FileReader<'_, '_>,
        sink: usize,
    ) -> Flow {
        let joined = |conditions: &[String]| {
            let several: Vec<String> = conditions.iter().map(|one| format!("({one})")).collect();
            match conditions {
                [only] => only.clone(),
                _ => several.join(" and "),
            }
        };
        let marks = if group.is_part(live) { self.marks(group, live, reader, sink) } else { Vec::new() };
        let conditions: Vec<String> = if marks.is_empty() {
            if group.conditions.is_empty() { Vec::new() } else { vec![joined(&group.conditions)] }
        } else {
            let with = |mark: String| {
                let all: Vec<String> =
                    std::iter::once(mark).chain(group.conditions.iter().cloned()).collect();
                joined(&all)
            };
            marks.into_iter().map(with).collect()
        };
        let route = if conditions.is_empty() { Route::All } else { Route::When(conditions) };
        Flow { name: group.name.clone(), signal: group.signal, steps: group.steps.clone(), route }
    }

    /// Conditions that tell the sources of a group from others, one for each.
    fn marks(
        &self,
        group: &Group,
        live: &[(usize, Signal)],
        reader: &mut FileReader<'_, '_>,
        sink: usize,
    ) -> Vec<String> {
        let mark = |source: usize| match self.all.get(source) {
            Some(component) => SourceKind::of(&component.kind).mark(component.name),
            None => Mark::None,
        };
        let of_signal = live.iter().filter(|(_, signal)| *signal == group.signal);
        let unmarked: Vec<usize> =
            of_signal.map(|(source, _)| *source).filter(|source| mark(*source) == Mark::None).collect();
        let own: Vec<usize> =
            group.sources.iter().copied().filter(|source| unmarked.contains(source)).collect();
        let mut marks: Vec<String> = group
            .sources
            .iter()
            .filter_map(|source| match mark(*source) {
                Mark::Condition(condition) => Some(condition),
                Mark::None => None,
            })
            .collect();
        if own.is_empty() {
            return marks;
        }
        if own.len() == unmarked.len() {
            marks.push(format!("resource.attributes[\"{}\"] == nil", super::sources::MARK));
            return marks;
        }
        if let Some(component) = self.all.get(sink) {
            let message = format!(
                "it takes {} of a part of the sources, which nothing in the records tells apart: here it gets those of all \
                 sources; tell them apart with `when`",
                signal_name(group.signal)
            );
            component.note(message, reader);
        }
        Vec::new()
    }
}

/// Ways to one sink that do the same.
pub(super) struct Group {
    pub(super) signal: Signal,
    /// The meaning of the fields, on each way.
    pub(super) vocabularies: Vec<Vocabulary>,
    sources: Vec<usize>,
    conditions: Vec<String>,
    pub(super) steps: Vec<Step>,
    pub(super) name: String,
}

impl Group {
    /// Whether there are other sources of the signal.
    fn is_part(&self, live: &[(usize, Signal)]) -> bool {
        live.iter().any(|(source, signal)| *signal == self.signal && !self.sources.contains(source))
    }
}

fn grouped(ways: Vec<Way>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for way in ways {
        let same = groups.iter_mut().find(|group| {
            group.signal == way.signal
                && group.conditions == way.conditions
                && group.steps.len() == way.steps.len()
                && group.steps.iter().zip(&way.steps).all(|(one, other)| one.equals(other))
        });
        match same {
            Some(group) => {
                if !group.sources.contains(&way.source) {
                    group.sources.push(way.source);
                }
                if !group.vocabularies.contains(&way.vocabulary) {
                    group.vocabularies.push(way.vocabulary);
                }
            }
            None => groups.push(Group {
                signal: way.signal,
                vocabularies: vec![way.vocabulary],
                sources: vec![way.source],
                conditions: way.conditions,
                steps: way.steps,
                name: way.name,
            }),
        }
    }
    groups
}

/// The sources from which something comes, each with its signals.
fn live_sources(groups: &[(usize, Vec<Group>)]) -> Vec<(usize, Signal)> {
    let mut live = Vec::new();
    for group in groups.iter().flat_map(|(_, groups)| groups) {
        for source in &group.sources {
            if !live.contains(&(*source, group.signal)) {
                live.push((*source, group.signal));
            }
        }
    }
    live
}

/// A sink with settings for groups of ways.
pub(super) fn flows_into(destination: &Destination, group: &Group) -> bool {
    destination.signals.contains(&group.signal)
}
