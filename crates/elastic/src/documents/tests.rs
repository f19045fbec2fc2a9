mod captured;
mod logs;
mod model;
mod otlp;
mod strategies;
