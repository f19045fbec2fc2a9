//! Paths: finds the context and the field, and checks the keys.

use super::super::diagnostic::Fault;
use super::super::field::{Context, Field};
use super::super::paths::{self, Keys, PathField};
use super::super::program::{Key, Path};
use super::super::suggest;
use super::super::syntax::{FieldTree, PathTree};
use super::{Checker, Use};

impl Checker<'_> {
    /// Resolves a path; `target` when an editor changes it.
    pub(super) fn path(&mut self, tree: &PathTree, target: bool) -> Option<Path> {
        let is_counted = std::mem::take(&mut self.counts);
        let (context, fields) = self.path_context(tree)?;
        let name = dotted(fields);
        let Some(known) = paths::find(context, &name) else {
            self.error(unknown(context, &name, tree, fields));
            return None;
        };
        if known.field == Field::Cache && context != self.context {
            let message = format!("`{}.cache` belongs to statements of the context `{0}`", context.name());
            let help = format!("use `{}.cache`", self.context.name());
            self.error(Fault::new(tree.range.clone(), message).help(help));
            return None;
        }
        if known.field.is_counted() && !is_counted {
            let path = format!("{}.{name}", context.name());
            let fault = Fault::new(tree.range.clone(), format!("`{path}` can only be counted"));
            let inside = match known.field {
                Field::Events => "; the context `spanevent` looks into events",
                Field::DataPoints => "; the context `datapoint` looks into points",
                _ => "",
            };
            self.error(fault.help(format!("write `Len({path})`, or compare it with `nil`{inside}")));
            return None;
        }
        let keys = self.path_keys(known, fields)?;
        let key = match keys.first() {
            Some(Key::Name(name)) => Some(*name),
            _ => None,
        };
        self.uses.push(Use { context, field: known.field, key, target, range: tree.range.clone() });
        Some(Path { context, field: known.field, keys })
    }

    /// The context of a path and the fields behind it.
    fn path_context<'t>(&mut self, tree: &'t PathTree) -> Option<(Context, &'t [FieldTree])> {
        let (first, rest) = tree.fields.split_first()?;
        let named = Context::named(&first.name.text).filter(|_| first.keys.is_empty() && !rest.is_empty());
        if let Some(context) = named.filter(|context| self.context.reaches(*context)) {
            return Some((context, rest));
        }
        if let (None, Some(given)) = (named, self.scope.given) {
            return Some((given, &tree.fields));
        }
        let text = dotted(&tree.fields);
        let fault = match named {
            Some(other) => {
                let (low, other) = (self.context.name(), other.name());
                Fault::new(tree.range.clone(), format!("`{other}` cannot be used together with `{low}`"))
            }
            None => {
                let message = format!("the path `{text}` begins with no context");
                Fault::new(tree.range.clone(), message).help(self.context_help(&text, &first.name.text))
            }
        };
        self.error(fault);
        None
    }

    fn context_help(&self, text: &str, first: &str) -> String {
        if first == "otelcol" || first == "exemplar" || first == "profile" {
            return format!("the Collector's context `{first}` does not exist here");
        }
        let has = |context: &Context| {
            self.context.reaches(*context) && paths::of(*context).any(|known| begins(known.name, first))
        };
        let having: Vec<_> = Context::ALL
            .into_iter()
            .filter(has)
            .map(|context| format!("`{}.{text}`", context.name()))
            .collect();
        match having.is_empty() {
            false => format!("write {}", having.join(" or ")),
            true => match suggest::nearest(first, Context::ALL.into_iter().map(Context::name)) {
                Some(near) => format!("did you mean the context `{near}`?"),
                None => super::context::NONE_HELP.to_owned(),
            },
        }
    }

    fn path_keys(&mut self, known: &PathField, fields: &[FieldTree]) -> Option<Box<[Key]>> {
        let (last, before) = fields.split_last()?;
        let stray = before.iter().find(|field| !field.keys.is_empty());
        let stray = stray.or(Some(last).filter(|last| known.keys == Keys::Never && !last.keys.is_empty()));
        if let Some((field, key)) = stray.and_then(|field| Some((field, field.keys.first()?))) {
            let message = format!("`{}` has no keys", field.name.text);
            self.error(Fault::new(key.range(), message));
            return None;
        }
        if known.keys == Keys::One && last.keys.len() > 1 {
            let range =
                last.keys.get(1).map_or(last.name.range.clone(), super::super::syntax::KeyTree::range);
            self.error(Fault::new(range, format!("`{}` takes one key", known.name)));
            return None;
        }
        self.keys(&last.keys)
    }
}

/// `body.string` of its fields, without keys.
fn dotted(fields: &[FieldTree]) -> String {
    fields.iter().map(|field| field.name.text.as_str()).collect::<Vec<_>>().join(".")
}

/// Whether a path's first name is `first`.
fn begins(path: &str, first: &str) -> bool {
    path.split('.').next() == Some(first)
}

fn unknown(context: Context, name: &str, tree: &PathTree, fields: &[FieldTree]) -> Fault {
    let message = format!("`{}` has no path `{name}`", context.name());
    let start = fields.first().map_or(tree.range.start, |field| field.name.range.start);
    let fault = Fault::new(start..tree.range.end, message);
    if let Some(reason) = paths::refused(context, name) {
        return fault.help(reason);
    }
    let first = fields.first().map_or("", |field| field.name.text.as_str());
    if fields.len() > 1 && matches!(first, "attributes" | "cache" | "body" | "metadata") {
        let key = name.strip_prefix(first).unwrap_or_default().trim_start_matches('.');
        return fault.help(format!("write `{}.{first}[\"{key}\"]`", context.name()));
    }
    match suggest::nearest(name, paths::of(context).map(|known| known.name)) {
        Some(near) => fault.help(format!("did you mean `{}.{near}`?", context.name())),
        None => {
            let names: Vec<_> = paths::of(context).map(|known| known.name).collect();
            fault.help(format!("its paths are {}", names.join(", ")))
        }
    }
}
