//! Operators' commands: policies, tokens, agents, actions.

mod actions;
mod agents;
mod cancel;
mod policies;
mod tokens;

pub(crate) use actions::{ActionOrder, LONGEST_DATA};
pub(crate) use agents::AgentFilter;
pub use agents::{FleetView, MOST_VERSIONS};
pub use policies::PolicyView;

use crate::policy::InvalidPolicy;
use crate::store::StoreError;

/// Why an operator's wish is not fulfilled.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OperatorError {
    /// There is no such thing.
    #[error("there is no {0}")]
    Unknown(String),
    /// The policy cannot be one.
    #[error(transparent)]
    Policy(#[from] InvalidPolicy),
    /// It cannot be done.
    #[error("{0}")]
    Invalid(String),
    /// Something else needs it.
    #[error("{0}")]
    InUse(String),
    /// There is no memory for it.
    #[error("there is no memory for it: {0}")]
    Memory(String),
    /// The state is not available.
    #[error(transparent)]
    Store(#[from] StoreError),
}
