use crate::checks::SinkCheck;
use crate::declare::{choices, settings};
use crate::values::{Bytes, Duration};
use std::path::PathBuf;

settings! {
    /// Data that a member cannot take now is kept on disk for it, and sent in order when it is back.
    pub struct HandoffSettings {
        /// How long a request waits for a member's answer before it and all that comes behind it go to disk.
        after: Duration [Duration::milliseconds(10)..=Duration::minutes(10)] = Duration::seconds(1),
        /// Most disk space for one member.
        quota: Bytes [Bytes::mib(1)..=Bytes::gib(1 << 20)] = Bytes::gib(5),
        /// Most disk space for all members together.
        total_quota: Bytes [Bytes::mib(1)..=Bytes::gib(1 << 20)] = Bytes::gib(20),
        /// Treatment of data beyond a quota.
        when_full: HandoffFull = HandoffFull::Block,
        /// Folder. Default: `handoff/` and the sink's name in the data folder.
        path: Option<PathBuf> = None,
    }
}

choices! {
    /// Treatment of a full handoff quota.
    pub enum HandoffFull is "a policy" {
        /// The sink waits, and the journal fills. Loses nothing.
        Block = "block",
        /// Drop the member's oldest data, and count it as dropped.
        DropOldest = "drop_oldest",
    }
}

impl HandoffSettings {
    /// Reports quotas that conflict with each other, or with the longest request.
    pub(super) fn check(&self, max_request_bytes: Bytes, check: &mut SinkCheck<'_>) {
        let name = check.name;
        if self.total_quota < self.quota {
            check.clash(
                "handoff",
                format!("`sinks.{name}.handoff.total_quota` is less than the `quota` of one member"),
                "`total_quota` is for all members together: raise it, or lower `quota`",
            );
        }
        let least = Bytes::new(max_request_bytes.get().saturating_mul(2));
        if self.quota < least {
            check.clash(
                "handoff",
                format!(
                    "`sinks.{name}.handoff.quota` is less than two requests of `max_request_bytes`, which are {least}"
                ),
                "a request that is larger than the quota could not be handed off: raise `quota`, or lower `max_request_bytes`",
            );
        }
    }
}
