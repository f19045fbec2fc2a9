//! Configurations of the OpenTelemetry Collector.

mod client;
mod components;
mod exporters;
mod graph;
mod matching;
mod processors;
mod receivers;
mod routing;
mod service;

use std::collections::BTreeMap;

use super::document::Map;
use super::group::{self, FileReader, Group};
use super::notes::{Imported, Notes};
use super::references;
use super::sinks::Output;
use crate::error::{Errors, Invalid};
use crate::yaml::{Entry, Node};
use components::Components;

pub(super) use client::{basic_credentials, duration, header_into, set_duration};
pub(super) use receivers::{address, set_listen_http};

/// The version of a Collector: 0.160.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CollectorVersion {
    minor: u32,
}

impl CollectorVersion {
    /// Since this version, `set` with an absent value stores an empty one.
    const SET_NIL: CollectorVersion = CollectorVersion { minor: 163 };
}

impl std::str::FromStr for CollectorVersion {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<CollectorVersion, Invalid> {
        let parts = text.strip_prefix('v').unwrap_or(text).strip_prefix("0.");
        let minor = parts.and_then(|rest| rest.split('.').next()).and_then(|minor| minor.parse().ok());
        minor.map(|minor| CollectorVersion { minor }).ok_or_else(|| {
            Invalid::new("this is not a version of the Collector", "write it like 0.150 or 0.150.1")
        })
    }
}

/// The state of an import.
struct Collector<'t> {
    components: Components<'t>,
    /// Whether `set` did nothing when its value was absent.
    guards_set: bool,
    /// The configuration that is made.
    out: Map,
    output: Output,
    /// The header of clients that names their tenant.
    tenant_header: Option<String>,
}

/// Converts the configuration of a Collector. `source` is what to call `text` in messages; `version` is the Collector's,
/// by default the latest.
///
/// # Errors
/// Every mistake in it, with its place.
pub fn otelcol(source: &str, text: &str, version: Option<CollectorVersion>) -> Result<Imported, Errors> {
    let mut notes = Notes::default();
    let guards_set = version.is_some_and(|version| version < CollectorVersion::SET_NIL);
    let configuration = group::file(source, text, &mut notes, references::collector, |root, reader| {
        convert(root, guards_set, reader)
    })?;
    Ok(notes.print(
        source,
        &format!("Converted from {source}, a configuration of the OpenTelemetry Collector."),
        &configuration,
        &[],
    ))
}

fn convert(root: &Node, guards_set: bool, reader: &mut FileReader<'_, '_>) -> Map {
    let Some(mut top) = reader.group(root, "") else { return Map::default() };
    let components = Components::read(&mut top, reader);
    let service = top.group("service", reader);
    if service.is_none() {
        reader.error(&(0..0), "there is no `service`", "is this the configuration of a Collector?");
    }
    top.finish(reader);
    let mut collector = Collector {
        components,
        guards_set,
        out: Map::default(),
        output: Output::default(),
        tenant_header: None,
    };
    if let Some(service) = service {
        collector.service(service, reader);
    }
    let Collector { mut out, output, .. } = collector;
    output.write(&mut out);
    out
}

/// The settings of a component; none if they are no group.
fn settings<'t>(entry: &'t Entry, section: &str, reader: &mut FileReader<'_, '_>) -> Option<Group<'t>> {
    reader.group(&entry.node, &format!("{section}.{}", entry.key))
}

/// The type in a component's name: `otlp` of `otlp/2`.
fn type_of(name: &str) -> &str {
    name.split('/').next().unwrap_or(name).trim()
}

/// Components by their names.
type ByName<'t> = BTreeMap<&'t str, &'t Entry>;
