//! The pages of made-up gateways, as people, programs and the wire see them.

mod app;
mod bounds;
mod files;
mod golden;
mod hostile;
mod real;
mod reasons;
pub(crate) mod sample;
mod searches;
pub(crate) mod served;
mod tapped;
mod trial_page;
mod trials;
mod verdicts;
