//! Configurations of Vector.

mod components;
mod decoding;
mod files;
mod graph;
mod inputs;
mod sinks;
mod sources;
mod toml;
mod transforms;
mod vocabulary;
mod vrl;

use std::rc::Rc;

use super::document::Map;
use super::group::{FileReader, Group};
use super::notes::{Imported, Notes};
use super::references;
use super::sinks::Output;
use crate::error::Errors;
use crate::yaml::Node;
use components::{Component, Section};
use files::Files;
use inputs::InputBudget;

/// The state of an import.
struct Vector<'t> {
    all: Vec<Component<'t>>,
    /// The configuration that is made.
    out: Map,
    output: Output,
    budget: InputBudget,
}

/// Converts a configuration of Vector. `files` are the names and texts of its files, in YAML, JSON or TOML.
///
/// # Errors
/// Every mistake in them, with its place.
pub fn vector(files: &[(String, String)]) -> Result<Imported, Errors> {
    let joined = Files::join(files)?;
    let mut notes = Notes::default();
    let mut reader = FileReader::new(joined.starts.clone(), &joined.text, &mut notes, references::vector);
    let roots = joined.read(&mut reader.errors);
    let is_whole = roots.len() == files.len();
    let configuration = convert(&roots, is_whole, &mut reader);
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    let first = names.first().copied().unwrap_or_default();
    if let Some(errors) = reader.errors.into_errors(first) {
        return Err(errors.in_files(&joined.lines()));
    }
    let title = format!("Converted from {}, a configuration of Vector.", names.join(", "));
    Ok(notes.print(first, &title, &configuration, &[]))
}

fn convert(roots: &[Rc<Node>], is_whole: bool, reader: &mut FileReader<'_, '_>) -> Map {
    let mut vector = Vector {
        all: Vec::new(),
        out: Map::default(),
        output: Output::default(),
        budget: InputBudget::default(),
    };
    for root in roots {
        let Some(mut top) = reader.group(root, "") else { continue };
        for section in [Section::Sources, Section::Transforms, Section::Sinks] {
            vector.components(&mut top, section, reader);
        }
        vector.global(&mut top, reader);
        top.finish(reader);
    }
    if is_whole && !vector.all.iter().any(|component| component.section == Section::Sinks) {
        reader.error(&(0..0), "there are no `sinks`", "is this the configuration of a Vector?");
    }
    vector.connect(reader);
    let Vector { mut out, output, .. } = vector;
    output.write(&mut out);
    out
}

impl Vector<'_> {
    /// Settings of the whole.
    fn global(&mut self, top: &mut Group<'_>, reader: &mut FileReader<'_, '_>) {
        if let Some(folder) = top.text("data_dir", reader) {
            let message = "left out: tidegate keeps its data in the folder `data`, which must not be that of another program";
            reader.note(&folder.at, "data_dir", message);
        }
        top.lacks(
            &[
                ("api", "not needed: `/status`, `/metrics` and the console are served at `listen.admin`"),
                ("acknowledgements", "not needed: an item is acknowledged when it is in the journal"),
                (
                    "secret",
                    "left out: secrets are environment variables (`${NAME}`) or files (`${file:PATH}`)",
                ),
                ("enrichment_tables", "left out: there are no enrichment tables"),
                ("tests", "left out: write them under `tests`, in our notation; `tidegate test` runs them"),
                ("provider", "left out: configurations are files; `tidegate reload` reads them again"),
                ("schema", "left out: there is one schema, that of OpenTelemetry"),
                ("log_schema", "left out: fields have the names of OpenTelemetry"),
                ("timezone", "left out: times without a zone are UTC"),
                (
                    "proxy",
                    "left out: set the environment variables `http_proxy`, `https_proxy` and `no_proxy`",
                ),
                ("expire_metrics", "not needed: the gateway's own metrics are bounded"),
                ("expire_metrics_secs", "not needed: the gateway's own metrics are bounded"),
                ("healthchecks", "not needed: `/ready` tells whether sinks deliver"),
                ("wildcard_matching", "not needed: inputs are looked up when the configuration is converted"),
                ("buffer_utilization_ewma_alpha", "not needed: the journal is the queue"),
                ("latency_ewma_alpha", "not needed: `/metrics` has histograms"),
                ("telemetry", "not needed: `/metrics` has counters for each source, step and sink"),
            ],
            reader,
        );
    }
}
