//! A running gateway's status in a terminal: overview, flow and tenants.
//!
//! It promises that a terminal is as it was when [`run`] returns, panics or is ended by a signal, and that no name or error
//! message from outside can steer the terminal. Numbers are those of `/status.json`; rates are differences of counters
//! between two answers. How to ask the gateway is the caller's.

mod app;
mod fetcher;
mod frame;
mod history;
mod model;
mod once;
mod run;
mod screens;
mod terminal;
mod theme;
mod units;

pub use frame::{Frame, NotAStatus};
pub use once::once;
pub use run::{Ended, run, run_dumb};
pub use terminal::is_dumb;
pub use theme::Theme;
