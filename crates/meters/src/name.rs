use crate::unit::Unit;

/// A meter's name and its explanation. Given without the prefix, the unit's ending and `_total`, which the
/// registry adds: `Name::seconds("journal_sync", "How long a sync took")` is published as
/// `tidegate_journal_sync_seconds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    pub(crate) name: &'static str,
    pub(crate) help: &'static str,
    pub(crate) unit: Unit,
    /// Whether it is published without the prefix.
    pub(crate) is_exact: bool,
}

impl Name {
    /// The name of something without a unit. `help` is one sentence without its full stop.
    pub const fn plain(name: &'static str, help: &'static str) -> Self {
        Self { name, help, unit: Unit::None, is_exact: false }
    }

    /// The name of something held in nanoseconds and shown in seconds.
    pub const fn seconds(name: &'static str, help: &'static str) -> Self {
        Self { name, help, unit: Unit::Seconds, is_exact: false }
    }

    /// The name of something in bytes.
    pub const fn bytes(name: &'static str, help: &'static str) -> Self {
        Self { name, help, unit: Unit::Bytes, is_exact: false }
    }

    /// The same, published without the prefix: the name of another program's metric that dashboards and alerts look for. The
    /// endings stay.
    #[must_use]
    pub const fn exact(self) -> Self {
        Self { is_exact: true, ..self }
    }
}
