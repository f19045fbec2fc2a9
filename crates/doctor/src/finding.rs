//! A finding: what is wrong, how one knows, what to do.

use std::fmt;

/// How bad it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It is as it should be.
    Fine,
    /// Something to know.
    Note,
    /// It works now, and will not for long, or not well.
    AtRisk,
    /// It does not work.
    Broken,
}

/// The result of looking at one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The thing and its state, as a sentence without its full stop.
    pub what: String,
    /// How one knows: a figure, a file, an error of the system.
    pub evidence: String,
    /// What to do; empty if there is nothing to do.
    pub remedy: String,
    /// Words of a peer or of a file, which may quote telemetry: not in an archive. Empty if there are none.
    pub quote: String,
}

impl Finding {
    fn new(severity: Severity, what: impl Into<String>, evidence: impl Into<String>) -> Finding {
        let (what, evidence) = (what.into(), evidence.into());
        Finding { severity, what, evidence, remedy: String::new(), quote: String::new() }
    }

    pub(crate) fn fine(what: impl Into<String>, evidence: impl Into<String>) -> Finding {
        Finding::new(Severity::Fine, what, evidence)
    }

    pub(crate) fn note(what: impl Into<String>, evidence: impl Into<String>) -> Finding {
        Finding::new(Severity::Note, what, evidence)
    }

    pub(crate) fn at_risk(what: impl Into<String>, evidence: impl Into<String>) -> Finding {
        Finding::new(Severity::AtRisk, what, evidence)
    }

    pub(crate) fn broken(what: impl Into<String>, evidence: impl Into<String>) -> Finding {
        Finding::new(Severity::Broken, what, evidence)
    }

    /// The same with what to do.
    #[must_use]
    pub(crate) fn remedy(self, remedy: impl Into<String>) -> Finding {
        Finding { remedy: remedy.into(), ..self }
    }

    /// The same with the words of a peer or a file.
    #[must_use]
    pub(crate) fn quoting(self, quote: impl Into<String>) -> Finding {
        Finding { quote: quote.into(), ..self }
    }
}

impl Severity {
    /// All, worst first.
    pub const ALL: [Severity; 4] = [Severity::Broken, Severity::AtRisk, Severity::Note, Severity::Fine];

    /// Its word in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Fine => "fine",
            Severity::Note => "note",
            Severity::AtRisk => "at_risk",
            Severity::Broken => "broken",
        }
    }
}

/// Its word in a text.
impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Severity::AtRisk => "at risk",
            other => other.name(),
        })
    }
}
