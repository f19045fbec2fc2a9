//! Which fields of an entry are kept.

/// The fields that become attributes `journald.NAME`, beside those that the mapping knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FieldSet {
    /// None.
    Mapped,
    /// Those that programs have set: whose names do not begin with an underscore.
    #[default]
    User,
    /// All.
    All,
}

/// The fields that are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fields {
    /// A set of them.
    pub set: FieldSet,
    /// Names beside; a `*` at the end stands for anything.
    pub names: Vec<String>,
}

impl Fields {
    /// Whether a field becomes an attribute `journald.NAME` if the mapping does not know it.
    #[must_use]
    pub fn is_kept(&self, name: &str) -> bool {
        let is_in_set = match self.set {
            FieldSet::Mapped => false,
            FieldSet::User => !name.starts_with('_'),
            FieldSet::All => true,
        };
        let is_named = |wanted: &String| match wanted.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => wanted == name,
        };
        is_in_set || self.names.iter().any(is_named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_and_names_add_up() {
        let kept =
            |set, name: &str| Fields { set, names: vec!["_AUDIT_*".into(), "_GID".into()] }.is_kept(name);
        assert!(kept(FieldSet::User, "ORDER_ID") && !kept(FieldSet::User, "_TRANSPORT"));
        assert!(kept(FieldSet::Mapped, "_AUDIT_SESSION") && kept(FieldSet::Mapped, "_GID"));
        assert!(!kept(FieldSet::Mapped, "ORDER_ID") && kept(FieldSet::All, "_TRANSPORT"));
    }
}
