mod captured;
mod logs;
mod metrics;
mod model;
mod opensearch;
mod otlp;
mod strategies;
