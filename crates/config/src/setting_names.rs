//! The names of all settings: words that are no secrets.

use std::collections::HashSet;
use std::sync::OnceLock;

use crate::model::Config;
use crate::setting::{Field, Section, Shape};

/// Whether a setting has this name, wherever it stands.
pub(crate) fn is_setting(name: &str) -> bool {
    static NAMES: OnceLock<HashSet<&'static str>> = OnceLock::new();
    NAMES
        .get_or_init(|| {
            let mut names = HashSet::from(["type"]);
            gather(Config::fields(), &mut names);
            names
        })
        .contains(name)
}

fn gather(fields: Vec<Field>, names: &mut HashSet<&'static str>) {
    for field in fields {
        names.insert(field.name);
        gather_shape(field.shape, names);
    }
}

fn gather_shape(shape: Shape, names: &mut HashSet<&'static str>) {
    match shape {
        Shape::Scalar(_) | Shape::List(_) => {}
        Shape::Section(fields) => gather(fields, names),
        Shape::Sequence(entry) => gather_shape(*entry, names),
        Shape::Map { value, .. } => gather_shape(*value, names),
        Shape::Kinds(kinds) => kinds.into_iter().for_each(|kind| gather(kind.fields, names)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_all_levels_are_known() {
        for name in ["memory", "sinks", "type", "api_key", "retention", "age", "tls", "credentials_file"] {
            assert!(is_setting(name), "{name}");
        }
        assert!(!is_setting("passwrd"));
    }
}
