//! Telemetry as documents of Elasticsearch and OpenSearch.
