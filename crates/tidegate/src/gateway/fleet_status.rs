//! The fleet on the status page.

use super::status::StatusView;
use tidegate_console::{Fleet, FleetPolicy};
use tidegate_fleet::PolicyView;

impl StatusView {
    /// The fleet, if there is one.
    pub(super) fn fleet(&self) -> Option<Fleet> {
        let fleet = self.fleet.as_ref()?;
        let view = fleet.view();
        let shown = Fleet {
            agents: view.agents as u64,
            waiting: view.waiting as u64,
            in_rollout: view.in_rollout as u64,
            by_status: view
                .by_status
                .into_iter()
                .map(|(name, agents)| (name.to_owned(), agents as u64))
                .collect(),
            by_version: view
                .by_version
                .into_iter()
                .map(|(version, agents)| (version, agents as u64))
                .collect(),
            check_ins: self.rates.check_ins(),
            refused: view.refused,
            policies: fleet.list_policies().into_iter().map(policy).collect(),
        };
        Some(shown.limited())
    }

    /// Check-ins of agents since the start.
    pub(super) fn check_ins(&self) -> u64 {
        self.fleet.as_ref().map_or(0, |fleet| fleet.check_ins())
    }
}

fn policy(policy: PolicyView) -> FleetPolicy {
    let rollout = policy
        .rollout
        .map(|rollout| [rollout.half_seconds, rollout.ninety_nine_percent_seconds, rollout.last_seconds]);
    FleetPolicy {
        id: policy.id,
        revision: policy.revision,
        agents: policy.agents as u64,
        up_to_date: policy.up_to_date as u64,
        rollout_seconds: rollout.unwrap_or_default(),
    }
}
