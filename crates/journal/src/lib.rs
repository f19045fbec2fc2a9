//! The append-only journal between sources and sinks.
