//! The sinks of a gateway, for those who ask about them while they are changed.

use super::RunningSink;
use super::pipelines::CompiledSampling;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_sinks::{Health, PipelineMeters};

/// A sink for those who look at it. It can be looked at when the sink has stopped, too.
pub(crate) struct ShownSink {
    pub(crate) name: String,
    pub(crate) kind: &'static str,
    /// Where it sends, for people.
    pub(crate) target: String,
    pub(crate) health: Health,
    /// How far behind it is when all is well: a lake finishes a file now and then.
    pub(crate) usual_lag: Duration,
    /// Counters of its pipeline, if it has one.
    pub(crate) pipeline: Option<PipelineMeters>,
    /// The sampling of traces, if it takes a part of them.
    pub(crate) sampling: Option<CompiledSampling>,
}

/// The sinks that run. While a change stops some of them and starts others, which takes as long as their requests, those of before are shown. The
/// lock of the configuration is held meanwhile: there is one change at a time.
pub(crate) struct SinkSet {
    /// Empty during a change.
    running: Mutex<Vec<RunningSink>>,
    shown: Mutex<Vec<Arc<ShownSink>>>,
}

impl SinkSet {
    pub(crate) fn new(running: Vec<RunningSink>) -> SinkSet {
        let shown = Mutex::new(all_shown(&running));
        SinkSet { running: Mutex::new(running), shown }
    }

    /// All of them, in the order of their names.
    pub(crate) fn shown(&self) -> Vec<Arc<ShownSink>> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has `change` stop and start sinks. Those that are left run and are shown afterwards, even if it panics.
    pub(crate) fn change<R>(&self, change: impl FnOnce(&mut Vec<RunningSink>) -> R) -> R {
        let mut under_change = SinksUnderChange { set: self, running: self.take() };
        change(&mut under_change.running)
    }

    /// Those that run, to be stopped for good.
    pub(crate) fn take(&self) -> Vec<RunningSink> {
        std::mem::take(&mut *self.running())
    }

    /// One that has ended although nobody stopped it, by its name.
    pub(crate) fn ended(&self) -> Option<String> {
        self.running().iter().find(|sink| sink.is_finished()).map(|sink| sink.name().to_owned())
    }

    /// Ends the first of them, as nothing does but the gateway's own end.
    #[cfg(test)]
    pub(crate) fn end_first(&self) {
        self.running()[0].end();
    }

    fn running(&self) -> MutexGuard<'_, Vec<RunningSink>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The sinks while they are changed, which go back to their set.
struct SinksUnderChange<'a> {
    set: &'a SinkSet,
    running: Vec<RunningSink>,
}

impl Drop for SinksUnderChange<'_> {
    fn drop(&mut self) {
        *self.set.shown.lock().unwrap_or_else(PoisonError::into_inner) = all_shown(&self.running);
        *self.set.running() = std::mem::take(&mut self.running);
    }
}

fn all_shown(running: &[RunningSink]) -> Vec<Arc<ShownSink>> {
    running.iter().map(|sink| Arc::clone(&sink.shown)).collect()
}
