//! The agents that are managed here, in numbers.

use serde::Serialize;

/// The fleet, if there is one.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Fleet {
    /// Agents that have enrolled and are not gone.
    pub agents: u64,
    /// Those that wait here for something to do.
    pub waiting: u64,
    /// Those that are about to get a policy.
    pub in_rollout: u64,
    /// Agents by what they say of their health.
    pub by_status: Vec<(String, u64)>,
    /// Agents by version: the most frequent, at most [`MOST_VERSIONS`](Self::MOST_VERSIONS).
    pub by_version: Vec<(String, u64)>,
    /// Check-ins a second over the last minutes.
    #[serde(rename = "check_ins_per_second")]
    pub check_ins: Option<f64>,
    /// Requests and connections that were refused since the start.
    pub refused: u64,
    /// The policies with most agents that have an older revision, at most [`MOST_POLICIES`](Self::MOST_POLICIES).
    pub policies: Vec<FleetPolicy>,
}

/// A policy and its agents.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FleetPolicy {
    /// Its id.
    pub id: String,
    /// The newest revision.
    pub revision: u64,
    /// Agents that have the policy.
    pub agents: u64,
    /// Those that have the newest revision.
    pub up_to_date: u64,
    /// Seconds until half, 99 % and all of the agents with an older revision had this one.
    pub rollout_seconds: [Option<f64>; 3],
}

impl Fleet {
    /// The most versions that are shown.
    pub const MOST_VERSIONS: usize = 5;
    /// The most policies that are shown.
    pub const MOST_POLICIES: usize = 4;

    /// The same with no more versions and policies than are shown.
    #[must_use]
    pub fn limited(mut self) -> Fleet {
        self.by_version.sort_by_key(|(_, agents)| std::cmp::Reverse(*agents));
        self.by_version.truncate(Fleet::MOST_VERSIONS);
        self.by_version.shrink_to_fit();
        let outdated = |policy: &FleetPolicy| policy.agents.saturating_sub(policy.up_to_date);
        self.policies.sort_by_key(|policy| std::cmp::Reverse((outdated(policy), policy.agents)));
        self.policies.truncate(Fleet::MOST_POLICIES);
        self.policies.shrink_to_fit();
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows the policies that lag most, as many as fit on the page.
    #[test]
    fn the_policies_that_lag_most_are_shown() {
        let policy = |number: u64| FleetPolicy {
            id: format!("p{number}"),
            revision: 1,
            agents: 20,
            up_to_date: 20 - number,
            rollout_seconds: [None; 3],
        };
        let fleet = Fleet {
            agents: 0,
            waiting: 0,
            in_rollout: 0,
            by_status: Vec::new(),
            by_version: (0..20).map(|minor| (format!("8.{minor}.0"), minor)).collect(),
            check_ins: None,
            refused: 0,
            policies: (0..20).map(policy).collect(),
        };
        let shown = fleet.limited();
        assert_eq!((shown.policies.len(), &*shown.policies[0].id), (Fleet::MOST_POLICIES, "p19"));
        assert_eq!((shown.by_version.len(), &*shown.by_version[0].0), (Fleet::MOST_VERSIONS, "8.19.0"));
    }
}
