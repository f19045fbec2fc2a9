//! The tidegate command: a telemetry gateway that holds its memory budget.
fn main() {}
