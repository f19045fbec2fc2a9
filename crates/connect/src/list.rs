//! All kinds, and which of them a gateway receives.

use crate::gateway::Gateway;
use crate::kind::Kind;
use crate::kinds::KINDS;
use crate::missing::Missing;
use serde_json::{Value, json};
use std::fmt;

/// All kinds of senders.
#[derive(Debug)]
pub struct KindList(pub Vec<ListedKind>);

/// A kind, and what the configuration lacks for it.
#[derive(Debug)]
pub struct ListedKind {
    /// The kind.
    pub kind: &'static Kind,
    /// `None` where this gateway receives it.
    pub missing: Option<Missing>,
}

/// All kinds for this gateway.
pub fn list(gateway: Gateway<'_>) -> KindList {
    let listed = |kind: &&'static Kind| ListedKind { kind, missing: kind.instructions(gateway).err() };
    KindList(KINDS.iter().map(listed).collect())
}

impl KindList {
    /// A list of objects with `kind`, `aliases`, `title`, `received`, and where it is not, `setting` and `lines`.
    pub fn json(&self) -> Value {
        let listed = |ListedKind { kind, missing }: &ListedKind| {
            json!({
                "kind": kind.name, "aliases": kind.aliases, "title": kind.title, "received": missing.is_none(),
                "setting": missing.as_ref().map(|missing| missing.setting),
                "lines": missing.as_ref().map(|missing| &missing.lines),
            })
        };
        Value::Array(self.0.iter().map(listed).collect())
    }
}

/// One line for each.
impl fmt::Display for KindList {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(out, "# tidegate connect KIND prints what to paste into the sender.\n")?;
        let width = self.0.iter().map(|listed| listed.kind.name.len()).max().unwrap_or(0);
        for ListedKind { kind, missing } in &self.0 {
            write!(out, "{:width$}  {}", kind.name, kind.title)?;
            match missing {
                None => writeln!(out)?,
                Some(missing) => writeln!(out, " (not received: set `{}`)", missing.setting)?,
            }
        }
        Ok(())
    }
}
