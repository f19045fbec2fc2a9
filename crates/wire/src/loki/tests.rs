#![expect(clippy::indexing_slicing, reason = "tests")]

mod model;
mod push;
mod refuses;
mod translates;
