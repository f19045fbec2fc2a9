//! The pages of made-up gateways, as people, programs and the wire see them.

mod bounds;
mod files;
mod golden;
mod hostile;
mod real;
mod sample;
mod served;
mod tapped;
mod trial_page;
mod trials;
mod verdicts;
