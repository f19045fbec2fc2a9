mod captured;
mod intake;
mod logs;
mod metrics;
mod model;
mod otlp;
mod spoilt;
#[path = "../../../wire/src/otlp/tests/strategies.rs"]
mod strategies;
