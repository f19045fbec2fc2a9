use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::declare::{choices, settings};
use crate::values::{Bytes, Name, TenantName};

settings! {
    /// The systemd journal, by systemd's `journalctl`.
    pub struct JournaldSource {
        /// Journals to follow: one named entry each. The name is that of the position in the journal, so a renamed entry starts
        /// anew. `system: {}` is the journal of this machine.
        inputs: BTreeMap<Name, JournaldInput> = BTreeMap::new(),
        /// The program `journalctl`, looked for in the `PATH` if it has no slash.
        journalctl: PathBuf = PathBuf::from("journalctl"),
        /// Longest message. A longer one is cut and counted.
        max_message: Bytes [Bytes::kib(1)..=Bytes::kib(256)] = Bytes::kib(256),
        /// Tenant of the records. Default: `tenants.default`.
        tenant: Option<TenantName> = None,
    }
}

settings! {
    /// A systemd journal.
    pub struct JournaldInput {
        /// Folder of the journal files, such as `/var/log/journal`. Default: the journal of this machine.
        directory: Option<PathBuf> = None,
        /// Namespace of the journal (`LogNamespace=` of a unit). Default: the journal without one.
        namespace: Option<String> = None,
        /// Units whose entries are read, such as `ssh.service`; `*` stands for anything. Default: all.
        units: Vec<String> = Vec::new(),
        /// Syslog identifiers whose entries are read. Default: all.
        identifiers: Vec<String> = Vec::new(),
        /// Least urgent priority that is read. Default: all.
        priority: Option<JournaldPriority> = None,
        /// Matches `FIELD=value` as `journalctl` takes them: all of them for different fields, one of them for the same field;
        /// `+` separates alternatives.
        matches: Vec<String> = Vec::new(),
        /// Whether to read only entries since the last boot.
        current_boot: bool = false,
        /// Where reading starts the first time. After that it goes on where it was.
        start_at: JournaldStart = JournaldStart::End,
        /// Fields that become attributes `journald.FIELD`, beside those with attributes of their own.
        fields: JournaldFields = JournaldFields::User,
        /// Further fields that become attributes; a `*` at the end stands for anything, such as `_AUDIT_*`.
        include_fields: Vec<String> = Vec::new(),
        /// Attributes of the resource of all records.
        attributes: BTreeMap<String, String> = BTreeMap::new(),
    }
}

choices! {
    /// A priority of the journal.
    pub enum JournaldPriority is "a priority" {
        /// The system is unusable.
        Emergency = "emerg",
        /// Action must be taken immediately.
        Alert = "alert",
        /// Critical conditions.
        Critical = "crit",
        /// Errors.
        Error = "err",
        /// Warnings.
        Warning = "warning",
        /// Normal, but significant.
        Notice = "notice",
        /// Informational.
        Info = "info",
        /// Everything.
        Debug = "debug",
    }
}

choices! {
    /// Where reading a journal starts the first time.
    pub enum JournaldStart is "a place to start" {
        /// At the oldest entry.
        Beginning = "beginning",
        /// With the next entry that is written.
        End = "end",
    }
}

choices! {
    /// A set of fields of the journal.
    pub enum JournaldFields is "a set of fields" {
        /// None.
        Mapped = "mapped",
        /// Those that programs have set: whose names do not begin with an underscore.
        User = "user",
        /// All.
        All = "all",
    }
}
