//! The console's interface to the gateway.

use crate::configuration::{ConfigurationFuture, ConfigurationOrder, RunningConfiguration};
use crate::connect::{ConnectAnswer, ConnectQuery};
use crate::dead_letters::{DeadLetterFuture, DeadLetterOrder};
use crate::files::{FilesFuture, FilesQuery};
use crate::history::History;
use crate::pipelines_page::ListedPipeline;
use crate::process::{ProcessFuture, ProcessInput, ProcessOutput};
use crate::status::Status;
use std::fmt;
use std::sync::Arc;
use tidegate_http1::Body;
use tidegate_ledger::RecentRefusal;
use tidegate_tap::Tap;

/// The gateway that answers requests.
pub trait Gateway: Send + Sync + 'static {
    /// How everything is now. Texts in it must hold no secrets.
    fn status(&self) -> Status;

    /// Writes all metrics in the OpenMetrics text format.
    ///
    /// # Errors
    /// Those of `out`, and only those.
    fn metrics(&self, out: &mut dyn fmt::Write) -> fmt::Result;

    /// The names of the sinks that ended unexpectedly and do not work again yet.
    fn broken_sinks(&self) -> Vec<String>;

    /// Whether requests should be sent here now.
    ///
    /// # Errors
    /// Why not, in a sentence.
    fn ready(&self) -> Result<(), String>;

    /// Where what passes can be looked at.
    fn tap(&self) -> &Tap;

    /// The names of all sinks.
    fn sink_names(&self) -> Vec<String>;

    /// The files that sources follow: at most as many as `query` allows, with at most [`LONGEST_FILES`](crate::LONGEST_FILES) bytes of
    /// text, and one more.
    fn files<'a>(&'a self, query: &'a FilesQuery) -> FilesFuture<'a>;

    /// Forgets the cursor of a sink that is not configured any more; how many items it had not sent.
    ///
    /// # Errors
    /// [`ForgetError`].
    fn forget(&self, sink: &str) -> Result<u64, ForgetError>;

    /// The configured pipelines, at most [`MOST_LISTED`](crate::MOST_LISTED) with [`LONGEST_LISTED`](crate::LONGEST_LISTED) bytes of
    /// steps in all; `None` while the configuration is being changed. Steps must hold no secrets: they are as written, with
    /// references to the environment that are not replaced.
    fn pipelines(&self) -> Option<Vec<ListedPipeline>>;

    /// The steps of a pipeline as they are written, at most [`LONGEST_STEPS`](crate::LONGEST_STEPS) bytes.
    fn steps_of(&self, pipeline: &str) -> Option<String>;

    /// The last 15 minutes.
    fn history(&self) -> &History;

    /// Visits the last refused requests, the newest first.
    fn recent_refusals(&self, visit: &mut dyn FnMut(&RecentRefusal));

    /// The configuration in effect. Texts in it must hold no secrets.
    fn configuration(&self) -> RunningConfiguration;

    /// Instructions for senders. Texts in them must hold no secrets.
    ///
    /// # Errors
    /// [`ConnectError`](crate::ConnectError).
    fn connect(&self, query: &ConnectQuery) -> ConnectAnswer;

    /// Checks the configured file, or has it take effect.
    fn order(&self, order: ConfigurationOrder) -> ConfigurationFuture<'_>;

    /// Sends dead letters of a sink again, or discards them. It is followed to its end, also where nobody waits for that any more.
    fn dead_letters(&self, order: DeadLetterOrder) -> DeadLetterFuture<'_>;

    /// Runs a trial, in a process of its own, with `input` on its standard input.
    fn trial<'a>(&'a self, input: Vec<ProcessInput>, output: &'a mut ProcessOutput<'a>) -> ProcessFuture<'a>;

    /// Whether what is stored may be searched.
    fn is_searchable(&self) -> bool;

    /// Runs a search of one of the kinds [`SEARCHES`](crate::SEARCHES), in a process of its own. The answer has at most
    /// [`LONGEST_SEARCH_ANSWER`](crate::LONGEST_SEARCH_ANSWER) bytes.
    fn search<'a>(
        &'a self,
        kind: &'static str,
        query: Arc<Body>,
        output: &'a mut ProcessOutput<'a>,
    ) -> ProcessFuture<'a>;
}

/// Why a cursor was not forgotten, in a sentence each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForgetError {
    /// There is none of that name.
    Unknown(String),
    /// A sink uses it.
    InUse(String),
    /// It may work later.
    Later(String),
}
