mod captured;
mod logs;
mod model;
mod opensearch;
mod otlp;
mod strategies;
