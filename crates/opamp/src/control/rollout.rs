//! Roll-outs: counts how the agents of a revision fare, and releases the next step or stops.

use super::configs::WHOLE;
use super::{Config, Opamp};
use crate::message::{ConfigStatus, agent_capability};
use crate::record::{ConfigRecord, Rollout, RolloutState};
use crate::registry::Agent;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::{Duration, Instant};
use tidegate_fleet::AgentId;

/// How often roll-outs are looked at.
const ROUND: Duration = Duration::from_secs(1);
/// An agent that polls is there while it was seen so lately.
const POLLS_WITHIN: Duration = Duration::from_secs(90);

/// An agent that was there and has not said what came of its configuration for so long counts as one where it failed: it would hold the
/// roll-out for ever.
pub(super) const ANSWERS_WITHIN: Duration = Duration::from_secs(10 * 60);

/// How the agents of a configuration fare.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Progress {
    /// All that it is assigned to.
    pub(crate) agents: u64,
    /// Those that the roll-out has reached.
    pub(crate) released: u64,
    /// Of those, the ones that run with it.
    pub(crate) applied: u64,
    /// The ones that could not, or have not said for ten minutes.
    pub(crate) failed: u64,
    /// The ones that have not said yet: they are there, or were when they were to get it.
    pub(crate) pending: u64,
    /// The ones that say what comes of a configuration, and are away since before they could get it.
    pub(crate) away: u64,
}

/// The agents as a whole.
#[derive(Debug, Clone, Default, Serialize)]
pub struct OpampView {
    /// All that are known.
    pub agents: u64,
    /// Those with a connection.
    pub connected: u64,
    /// Those that say that they are well, and that they are not.
    pub healthy: u64,
    /// See [`healthy`](Self::healthy).
    pub unhealthy: u64,
    /// By the status of their remote configuration: unset, applied, applying, failed.
    pub by_config_status: BTreeMap<&'static str, u64>,
    /// Messages since the start.
    pub messages: u64,
    /// Configurations sent since the start.
    pub configs_sent: u64,
    /// Agents that were asked for their full state since the start.
    pub full_states_requested: u64,
    /// Requests and connections that were refused since the start.
    pub refused: u64,
}

impl Opamp {
    /// The counters alone.
    pub fn totals(&self) -> OpampView {
        OpampView {
            messages: self.counts.messages.load(Relaxed),
            configs_sent: self.counts.configs_sent.load(Relaxed),
            full_states_requested: self.counts.full_states.load(Relaxed),
            refused: self.counts.refused.load(Relaxed),
            ..OpampView::default()
        }
    }

    /// The agents as a whole.
    pub fn view(&self) -> OpampView {
        let mut view = self.totals();
        self.registry.each(|_, agent| {
            view.agents += 1;
            view.connected += u64::from(agent.is_live());
            view.healthy += u64::from(agent.is_healthy == Some(true));
            view.unhealthy += u64::from(agent.is_healthy == Some(false));
            *view.by_config_status.entry(agent.status.name()).or_default() += 1;
        });
        view
    }

    /// How the agents of each configuration fare. Those that are there and have not answered are awaited from now on.
    pub(crate) fn progress(&self) -> BTreeMap<Arc<str>, Progress> {
        let configs: BTreeMap<_, _> = self.list_configs().into_iter().collect();
        let mut all: BTreeMap<Arc<str>, Progress> =
            configs.keys().map(|name| (Arc::clone(name), Progress::default())).collect();
        self.registry.each(|id, agent| {
            let found = agent.config.as_ref().and_then(|name| Some((configs.get(name)?, all.get_mut(name)?)));
            if let Some((config, progress)) = found {
                progress.count(config, id, agent);
            }
        });
        all
    }

    /// Drives roll-outs until it stops.
    pub async fn roll_out(self: Arc<Self>) {
        while !self.is_stopped.load(Acquire) {
            tokio::time::sleep(ROUND).await;
            if let Err(error) = self.step_all().await {
                tracing::warn!(%error, "a roll-out of a configuration could not go on; retrying");
            }
        }
    }

    /// Looks at all roll-outs once.
    pub(super) async fn step_all(&self) -> Result<(), super::OrderError> {
        let running = |config: &Config| config.record.rollout.state == RolloutState::Running;
        if !self.list_configs().iter().any(|(_, config)| running(config)) {
            return Ok(());
        }
        let _changing = self.changing.lock().await;
        let progress = self.progress();
        for (name, config) in self.list_configs() {
            let progress = progress.get(&name).copied().unwrap_or_default();
            if !running(&config) {
                continue;
            }
            let Some(next) = next(config.record.rollout, progress) else { continue };
            let mut record: ConfigRecord = config.record.clone();
            record.rollout = next;
            if next.state == RolloutState::Done {
                record.previous = None;
            }
            if next.state == RolloutState::Stopped {
                tracing::warn!(config = %name, failed = progress.failed, released = progress.released, "the roll-out has stopped: too many agents failed");
            }
            self.store_config(&name, record).await?;
            self.wake_agents_of(&name);
        }
        Ok(())
    }
}

impl Progress {
    fn count(&mut self, config: &Config, id: AgentId, agent: &mut Agent) {
        if agent.capabilities & agent_capability::ACCEPTS_REMOTE_CONFIG == 0 {
            return;
        }
        self.agents += 1;
        if !config.is_released_to(id) {
            return;
        }
        self.released += 1;
        let outcome = Some(agent.status).filter(|_| agent.reported == Some(config.hash()));
        if let Some(ConfigStatus::Applied | ConfigStatus::Failed) = outcome {
            agent.awaited = None;
            self.applied += u64::from(outcome == Some(ConfigStatus::Applied));
            self.failed += u64::from(outcome == Some(ConfigStatus::Failed));
            return;
        }
        if agent.capabilities & agent_capability::REPORTS_REMOTE_CONFIG == 0 {
            return;
        }
        let has_polled = agent.sequence.is_some() && agent.seen.elapsed() < POLLS_WITHIN;
        let is_awaited = agent.awaited.is_some_and(|(hash, _)| hash == config.hash());
        if !is_awaited && (agent.is_live() || has_polled) {
            agent.awaited = Some((config.hash(), Instant::now()));
        }
        // One that was there and is not any more has perhaps been cut off by what it got.
        match agent.awaited.filter(|(hash, _)| *hash == config.hash()) {
            Some((_, since)) if since.elapsed() >= ANSWERS_WITHIN => self.failed += 1,
            Some(_) => self.pending += 1,
            None => self.away += 1,
        }
    }
}

/// The next state of a roll-out; `None` while it waits.
fn next(rollout: Rollout, progress: Progress) -> Option<Rollout> {
    // Failed ones weigh against those that have said something or are to: those that are away do not count.
    let there = progress.failed + progress.applied + progress.pending;
    let is_bad = progress.failed * 100 > u64::from(rollout.max_failed) * there;
    if progress.failed > 0 && is_bad {
        return Some(Rollout { state: RolloutState::Stopped, ..rollout });
    }
    // Where all are away, nothing is known of the revision.
    if progress.pending > 0 || (there == 0 && progress.away > 0) {
        return None;
    }
    let released = rollout.released.saturating_add(rollout.step).min(WHOLE);
    match rollout.released >= WHOLE {
        true => Some(Rollout { state: RolloutState::Done, ..rollout }),
        false => Some(Rollout { released, ..rollout }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_roll_out_waits_goes_on_stops_and_ends() {
        let rollout = Rollout { state: RolloutState::Running, released: 5_000, step: 3_000, max_failed: 5 };
        let fares = |released, applied, failed, pending| {
            next(
                rollout,
                Progress {
                    agents: 100,
                    released,
                    applied,
                    failed,
                    pending,
                    away: released - applied - failed - pending,
                },
            )
        };
        assert_eq!(fares(50, 40, 0, 10), None);
        assert_eq!(fares(50, 0, 0, 0), None, "all are away");
        assert_eq!(fares(0, 0, 0, 0).unwrap().released, 8_000, "there are none");
        assert_eq!(fares(50, 1, 0, 0).unwrap().released, 8_000, "the others are away");
        assert_eq!(fares(50, 50, 0, 0).unwrap().released, 8_000);
        assert_eq!(fares(50, 48, 2, 0).unwrap().released, 8_000);
        assert_eq!(fares(50, 10, 3, 37).unwrap().state, RolloutState::Stopped);
        assert_eq!(fares(100, 0, 5, 0).unwrap().state, RolloutState::Stopped, "95 are away");
        let last = Rollout { released: WHOLE, ..rollout };
        let done = next(last, Progress { agents: 1, released: 1, applied: 1, ..Progress::default() });
        assert_eq!(done.unwrap().state, RolloutState::Done);
    }
}
