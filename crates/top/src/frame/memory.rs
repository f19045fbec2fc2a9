//! Memory: reservations and use, in bytes.

use serde::Deserialize;

/// The process's memory against its limit.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Memory {
    pub(crate) limit: u64,
    pub(crate) resident: Option<Resident>,
    pub(crate) declared: Vec<DeclaredLine>,
    pub(crate) payload: Payload,
    pub(crate) connections_open: u64,
    pub(crate) connections_limit: u64,
}

/// The kernel's count.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Resident {
    pub(crate) now: u64,
    pub(crate) peak: u64,
}

/// Memory of one owner that is not payload.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DeclaredLine {
    pub(crate) owner: String,
    pub(crate) declared: u64,
    pub(crate) used: Option<u64>,
}

/// The memory of bodies and batches.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Payload {
    pub(crate) total: u64,
    pub(crate) idle: u64,
    pub(crate) shares: Vec<ShareLine>,
}

/// The use of one share of the payload.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ShareLine {
    pub(crate) name: String,
    pub(crate) at_most: u64,
    pub(crate) used: u64,
    pub(crate) peak: u64,
    pub(crate) waiting: u64,
}

/// What one owner has of the budget.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Owner<'a> {
    pub(crate) name: &'a str,
    /// Its use now; not known of most that is declared.
    pub(crate) used: Option<u64>,
    /// The most it can have.
    pub(crate) most: u64,
    /// Whether somebody waits for its memory.
    pub(crate) is_short: bool,
}

impl Memory {
    /// The owners of the budget: shares of the payload first, then what is declared, the largest first.
    pub(crate) fn owners(&self) -> Vec<Owner<'_>> {
        let share = |share: &'_ ShareLine| (share.used, share.at_most, share.waiting > 0);
        let mut owners: Vec<Owner<'_>> = Vec::new();
        for line in &self.payload.shares {
            let (used, most, is_short) = share(line);
            owners.push(Owner { name: &line.name, used: Some(used), most, is_short });
        }
        let mut declared: Vec<Owner<'_>> = Vec::new();
        for line in &self.declared {
            match declared.iter_mut().find(|owner| owner.name == line.owner) {
                Some(owner) => {
                    owner.most = owner.most.saturating_add(line.declared);
                    // A sum of which a part is not known is not known.
                    owner.used = owner.used.zip(line.used).map(|(used, more)| used.saturating_add(more));
                }
                None => declared.push(Owner {
                    name: &line.owner,
                    used: line.used,
                    most: line.declared,
                    is_short: false,
                }),
            }
        }
        declared.sort_by_key(|owner| std::cmp::Reverse(owner.most));
        owners.extend(declared);
        owners
    }
}
