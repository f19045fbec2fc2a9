//! Takes over a configuration that was read again.

use super::destination::Destination;
use super::{Failure, Gateway, backlog, head_series, plan, rules};
use std::sync::PoisonError;
use tidegate_admission::{Deliverable, SourcePipelines};
use tidegate_arena::Share;
use tidegate_config::{Access, Config, Limits, Tenants};

impl Gateway {
    /// Takes over what can be changed while running: whether searches are allowed, the sinks, the inputs of the source `file`, the limits of sources, tenants and addresses, and what
    /// is in the files of certificates and credentials. Names what else differs, and needs a restart.
    ///
    /// # Errors
    /// When the new sinks do not fit, could not deliver what is queued, or one of them cannot be started; nothing has changed then.
    pub(crate) fn reload(&self, new: Config) -> Result<Vec<String>, Failure> {
        self.keys.reload();
        let mut config = self.config.write().unwrap_or_else(PoisonError::into_inner);
        let wanted = new;
        let new = changeable(&config, wanted.clone());
        let waiting = tidegate_config::differing(&new, &wanted);
        let planned = plan::of_queued(&new, &self.attach.routing());
        plan::check(&new, &planned)?;
        // All that can fail comes before the sinks change.
        let sources = self.running_sources.change(&config, &new)?;
        let bulk = rules::bulk(&new)?;
        let head_series = head_series::settings(&new)?;
        let cluster = match &self.destination {
            Some(destination) => Destination::changed(&config, &new)?.map(|nodes| (destination, nodes)),
            None => None,
        };
        let current = self.gate.deliverable();
        // From now on nothing comes in that either the old or the new sinks could not deliver.
        self.gate.set_deliverable(Deliverable::new(|protocol, signal| {
            current.size_limit(protocol, signal).and(planned.bound(protocol, signal))
        }));
        let mut of_sources = self.source_pipelines.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, after) = (of_sources.clone(), planned.source_pipelines.keeping(&of_sources));
        let changed = backlog::check_again(&new, &planned, &self.journal).and_then(|()| {
            // Memory that pipelines of sources will give back is planned for payload from here on, and still theirs: they
            // stay until the change has succeeded, so no request passes by one that a failed change removes, and requests may be in them
            // even then.
            let spared = before.spared_bytes(&after) * SourcePipelines::runs(planned.workers);
            let spared =
                self.view.arena.try_charge(Share::Ingest, spared as u64).map_err(|_| {
                    Failure::from("the memory for the change is in use by requests; try again")
                })?;
            // The lock of the configuration keeps a second reload out.
            let change = |running: &mut _| self.attach.change(running, &config.sinks, &new.sinks, &planned);
            self.sinks.change(change).map(|()| spared)
        });
        let spared = match changed {
            Ok(spared) => spared,
            Err(failure) => {
                self.gate.set_deliverable(current);
                return Err(failure);
            }
        };
        self.gate.rules().pipelines.set(after.all(), Some(spared));
        *of_sources = after;
        drop(of_sources);
        // Behind their pipelines: the lines of new inputs pass those that were written for them.
        sources.make();
        if let Some((destination, nodes)) = cluster {
            destination.change(nodes);
        }
        rules::change(self.gate.rules(), &new, bulk);
        if let Some(queries) = &self.head_series {
            queries.change(head_series);
        }
        backlog::accept(&new, &planned);
        self.gate.set_deliverable(planned.deliverable);
        self.door.change_peers(new.limits.connections_per_peer);
        self.view.replan(planned.plan);
        self.view.reconfigured(&new);
        *config = new;
        Ok(waiting)
    }
}

impl Gateway {
    /// The settings of `new` that differ from those in effect: those that [`reload`](Self::reload) changes, and those that need a
    /// restart.
    pub(crate) fn differences(&self, new: &Config) -> (Vec<String>, Vec<String>) {
        let running = self.config.read().unwrap_or_else(PoisonError::into_inner);
        let next = changeable(&running, new.clone());
        (tidegate_config::differing(&running, &next), tidegate_config::differing(&next, new))
    }
}

/// The running configuration with the settings of `new` that can change while running.
pub(super) fn changeable(running: &Config, new: Config) -> Config {
    let limits = Limits {
        sources: new.limits.sources,
        head_series: new.limits.head_series,
        connections_per_peer: new.limits.connections_per_peer,
        ..running.limits.clone()
    };
    let tenants = Tenants {
        limits: new.tenants.limits,
        head_series: new.tenants.head_series,
        overrides: new.tenants.overrides,
        indices: new.tenants.indices,
        ..running.tenants.clone()
    };
    let access = Access { bulk: new.access.bulk, ..running.access.clone() };
    let file = new.sources.file.clone();
    let mut sources = running.sources.with_pipelines_of(new.sources);
    sources.file.change_inputs(&file);
    let Config { console, sinks, pipelines, .. } = new;
    Config { console, sinks, pipelines, sources, access, limits, tenants, ..running.clone() }
}
