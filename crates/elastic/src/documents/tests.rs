mod captured;
mod intake;
mod invalid_names;
mod logs;
mod metrics;
mod model;
mod otlp;
#[path = "../../../wire/src/otlp/tests/strategies.rs"]
mod strategies;
