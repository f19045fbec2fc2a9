//! The pages of operation: `/status` for people, `/status.json` and `/metrics` for programs, `/health` and
//! `/ready` for whoever starts and stops the gateway; `/files`, the files that sources follow; `/tap`, a look at what passes a source or a sink; and `/pipelines`, where steps
//! are tried on pasted items.
//!
//! A [`Console`] is the service behind the admin port. It asks a [`Gateway`] for its [`Status`], judges in one
//! word and one sentence how the data flows ([`State`], [`StateReport`]), and shows the same numbers as a page,
//! as aligned text or as JSON.
//!
//! It promises: it answers when the rest of the gateway has no memory left, since its own is reserved at the
//! start ([`Console::reserve`]) and declared in the plan ([`Console::declared`]); no answer is longer than
//! [`LONGEST_ANSWER`]; nothing that came from outside can act as markup or steer a terminal. Its pages change
//! nothing, so they need no JavaScript and no password on loopback. A look shows the data itself: the port is for
//! those who may see that. A trial of steps runs in a process of its own and changes nothing. Other parts of the gateway have [`AdminRoutes`] there, which change what is theirs. Two things are done by `DELETE`, which no page of another origin can send: forgetting the
//! cursor of a sink that is not configured any more, and ending a look. The pages for browsers have the configuration reloaded and
//! dead letters resent or discarded, by `POST` with the token of their session.
//!
//! It leaves to others: collecting the numbers and keeping secrets out of them (the gateway), the books'
//! arithmetic (`ledger`), counting (`meters`), the connections (`http1`).

mod admin_routes;
mod app_routes;
mod assets;
mod capture;
mod configuration;
mod connect;
mod console;
mod dead_letters;
mod files;
mod files_page;
mod gateway;
mod history;
mod html;
mod human;
mod live;
mod page;
mod page_buffer;
mod pipelines_page;
mod process;
mod rejects;
mod resident;
mod search;
mod state;
mod status;
mod status_format;
mod tap_response;
mod text;
mod trial;
mod trial_response;

#[cfg(test)]
mod tests;

pub use admin_routes::{AdminRequest, AdminRoutes};
pub use configuration::{
    ChangeEffect, ConfigurationError, ConfigurationFuture, ConfigurationOrder, ConfigurationReport,
    RunningConfiguration, SettingChange,
};
pub use connect::{ConnectAnswer, ConnectError, ConnectQuery};
pub use console::{Console, LONGEST_ANSWER, PATHS};
pub use dead_letters::{
    DeadLetterAction, DeadLetterError, DeadLetterFuture, DeadLetterOrder, DeadLetterReport,
};
pub use files::{
    FILES_BYTES, FilesError, FilesFuture, FilesOrder, FilesQuery, FilesReport, FollowedFile, FollowingSource,
    LONGEST_FILES, MOST_FILES, UnreadablePath,
};
pub use gateway::{ForgetError, Gateway};
pub use history::{HISTORY_STEP, History, Levels, MOST_STEPS_OF_HISTORY};
pub use pipelines_page::{LONGEST_LISTED, ListedPipeline, MOST_LISTED};
pub use process::{ProcessError, ProcessFuture, ProcessInput, ProcessOutput};
pub use resident::Resident;
pub use search::{LONGEST_SEARCH_ANSWER, SEARCHES};
pub use state::{State, StateReport};
pub use status::{
    BlockedIndex, Damage, DeclaredLine, DerivedMetrics, Destination, Failed, Fleet, FleetPolicy, Handshakes,
    Journal, Lag, LastError, LeftBehind, MOST_MEMBERS, MOST_POLICIES, MOST_SAMPLED, MOST_STEPS, MOST_WAITING,
    Memory, Payload, PipelineStep, PolicyDecisions, RingMember, ShareLine, Sink, SourcePipeline, Status,
    Syncs, Tenant, Tenants, TraceDecisions,
};
pub use trial::{
    ChangeReport, FormError, ItemReport, LONGEST_ITEMS, LONGEST_STEPS, LoadedSteps, StatementReport, Taken,
    TextProblem, TrialAnswer, TrialForm, TrialReport, TrialRequest,
};
