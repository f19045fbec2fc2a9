//! What a decision costs.
fn main() {}
