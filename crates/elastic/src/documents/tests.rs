mod model;
mod otlp;
mod strategies;
