mod captured;
mod model;
mod otlp;
mod strategies;
