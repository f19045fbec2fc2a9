//! Which records go out together, and how.

use tidegate_journal::{Signal, Tenant};
use tidegate_wire::remote_write::Version;

/// Records that go out together: bodies behind [`PREFIX`](super::peer::PREFIX).
pub(super) type Batch = crate::batch::Batch<Key>;

/// What records that go out together have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    pub(super) signal: Signal,
    pub(super) tenant: Tenant,
    pub(super) way: Way,
}

/// How records go out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// As they are: their bytes, one after the other, are a request.
    Join,
    /// Decoded and compressed again, or only one of the two.
    Recode,
    /// Said in OTLP: they came as remote write of this version.
    Translate(Version),
}
