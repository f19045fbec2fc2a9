//! What to paste into a sender's configuration so that it sends to this gateway.
//!
//! [`Gateway`] is a configuration as senders see it: addresses, TLS, credentials, tenants. Each [`Kind`] of sender in
//! [`KINDS`] turns it into [`Instructions`]: files and commands, each with what a person has to know about it.
//!
//! Promises:
//! - A snippet is valid in its language as it is printed, whatever the configuration says; all that it needs (the address, `https`,
//!   certificates, a token, the tenant's header) is in it.
//! - No secret of the configuration is in it. This crate reads none: credentials are placeholders such as `$TIDEGATE_TOKEN`, with the
//!   command that makes them.
//! - Where the configuration does not receive what a sender speaks, the error ([`Missing`]) has the lines to add, and with them it does.
//!
//! Left to others: reading the configuration, this machine's host name, and printing.
#![deny(clippy::indexing_slicing)]
#![cfg_attr(
    test,
    allow(clippy::indexing_slicing, clippy::unwrap_used, reason = "a test ends where it fails")
)]

mod endpoint;
mod gateway;
mod instructions;
mod kind;
mod kinds;
mod list;
mod missing;
mod quote;
mod sender;

pub use gateway::Gateway;
pub use instructions::{Instructions, Language, Snippet};
pub use kind::{Kind, Lookup, find};
pub use kinds::KINDS;
pub use list::{KindList, ListedKind, list};
pub use missing::Missing;
pub use sender::{InvalidSender, Sender};

#[cfg(test)]
mod tests;
