//! Prometheus relabeling.

/// One relabeling rule, as the configuration writes it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct RuleDefinition {
    /// The labels whose values are joined.
    pub source_labels: Vec<String>,
    /// The text between them; `;` by default.
    pub separator: Option<String>,
    /// The label that is set.
    pub target_label: Option<String>,
    /// What the joined value has to match, whole; several are alternatives.
    pub regex: Vec<String>,
    /// The modulus of `hashmod`.
    pub modulus: Option<u64>,
    /// The new value; `$1` by default.
    pub replacement: Option<String>,
    /// The action; `replace` by default.
    pub action: Option<String>,
    /// vmagent's condition: series selectors, of which one has to match.
    pub condition: Vec<String>,
}
