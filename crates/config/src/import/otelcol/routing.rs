//! Connectors: between pipelines.

use super::components::Section;
use super::{Collector, settings, type_of};
use crate::error::quote;
use crate::import::group::{FileReader, Group};
use crate::import::ottl;
use crate::import::sinks::Route;
use crate::import::steps::refused;
use crate::yaml::Entry;
use tidegate_pipeline as engine;

/// Where a connector sends what.
pub(super) struct Routes {
    /// None: everything goes to every pipeline that names the connector.
    table: Option<Table>,
}

struct Table {
    entries: Vec<RouteEntry>,
    defaults: Vec<String>,
}

struct RouteEntry {
    condition: String,
    pipelines: Vec<String>,
    /// Items that meet the condition are not looked at again.
    is_final: bool,
}

impl Routes {
    /// The condition for items to go to a pipeline; none if none go.
    pub(super) fn to(&self, pipeline: &str) -> Option<Route> {
        let Some(Table { entries, defaults, .. }) = &self.table else { return Some(Route::All) };
        let mut conditions = Vec::new();
        let mut earlier: Vec<&str> = Vec::new();
        for entry in entries {
            if entry.pipelines.iter().any(|name| name == pipeline) {
                conditions.push(without(&entry.condition, &earlier));
            }
            if entry.is_final {
                earlier.push(&entry.condition);
            }
        }
        let is_default = defaults.iter().any(|name| name == pipeline);
        match (conditions.is_empty(), is_default) {
            (true, false) => None,
            (true, true) => {
                Some(Route::Otherwise(entries.iter().map(|entry| entry.condition.clone()).collect()))
            }
            (false, true) => {
                conditions.push(without("true", &earlier));
                Some(Route::When(conditions))
            }
            (false, false) => Some(Route::When(conditions)),
        }
    }
}

/// A condition for items that meet none of the `earlier` ones.
fn without(condition: &str, earlier: &[&str]) -> String {
    let nots: Vec<String> = earlier.iter().map(|earlier| format!("not ({earlier})")).collect();
    match (nots.is_empty(), condition) {
        (true, condition) => condition.to_owned(),
        (false, "true") => nots.join(" and "),
        (false, condition) => format!("({condition}) and {}", nots.join(" and ")),
    }
}

impl Collector<'_> {
    /// Converts a connector; none if it makes other telemetry from what it gets.
    pub(super) fn connector(&mut self, entry: &Entry, reader: &mut FileReader<'_, '_>) -> Option<Routes> {
        match type_of(&entry.key) {
            "forward" => {
                let group = settings(entry, "connectors", reader)?;
                group.finish(reader);
                Some(Routes { table: None })
            }
            "routing" => self.routing(entry, reader),
            _ => {
                self.components.unknown(Section::Connectors, entry, reader);
                None
            }
        }
    }

    fn routing(&mut self, entry: &Entry, reader: &mut FileReader<'_, '_>) -> Option<Routes> {
        let mut group = settings(entry, "connectors", reader)?;
        let defaults = group.texts("default_pipelines", reader).into_iter().map(|text| text.value).collect();
        group.lacks(
            &[
                ("error_mode", "a condition that fails on an item does not hold"),
                (
                    "match_once",
                    "left out: it was removed from the Collector in 0.120; the first match decides",
                ),
            ],
            reader,
        );
        let path = group.path_of("table");
        let mut entries = Vec::new();
        for (index, item) in group.items("table", reader).iter().enumerate() {
            let Some(row) = reader.group(item, &format!("{path}[{index}]")) else { continue };
            entries.extend(route(row, reader));
        }
        group.finish(reader);
        Some(Routes { table: Some(Table { entries, defaults }) })
    }
}

fn route(mut row: Group<'_>, reader: &mut FileReader<'_, '_>) -> Option<RouteEntry> {
    let (path, at) = (row.path.clone(), row.at.clone());
    let context = row.text("context", reader).map_or_else(|| "resource".to_owned(), |text| text.value);
    let condition = row.text("condition", reader);
    let statement = row.text("statement", reader);
    let pipelines = row.texts("pipelines", reader).into_iter().map(|text| text.value).collect();
    let is_final = row.text("action", reader).is_none_or(|action| action.value != "copy");
    row.finish(reader);
    let text = match (&condition, &statement) {
        (Some(condition), _) => condition.value.clone(),
        (None, Some(statement)) => match ottl::condition_of(&statement.value) {
            Some(condition) => condition.to_owned(),
            None => "true".to_owned(),
        },
        (None, None) => {
            reader.error(&at, "a route has no `condition`", "add `condition`");
            return None;
        }
    };
    if statement.is_some_and(|statement| !statement.value.trim_start().starts_with("route(")) {
        reader.note(
            &at,
            &path,
            "only the condition of its statement was converted: a route changes nothing here",
        );
    }
    if context == "request" {
        let message = "its sinks get nothing, because of `and false` in the condition: headers of clients are not known \
                       here. Name what the items of these clients have; if the header names a tenant, see `tenants.header`";
        reader.note(&at, &path, message);
        return Some(RouteEntry { condition: placeholder(&text), pipelines, is_final: false });
    }
    let condition = ottl::qualified(&text, &context);
    if let Some((text, reason)) = refused(condition.clone(), engine::StepKind::Drop) {
        reader.note(&at, &path, format!("to be corrected in {}: {reason}", quote(&text)));
    }
    Some(RouteEntry { condition, pipelines, is_final })
}

/// A condition that never holds, in place of `request["X-Tenant"] == "acme"`, to be completed by hand.
fn placeholder(request: &str) -> String {
    let comparison = request.trim().strip_prefix("request").unwrap_or("[\"header\"] != nil");
    format!("resource.attributes{comparison} and false")
}
