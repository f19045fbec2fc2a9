//! Clients of Elasticsearch's `_bulk`, as curl.

use super::curl::command;
use crate::endpoint::Abilities;
use crate::instructions::Snippet;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "elasticsearch",
    aliases: &["opensearch", "bulk", "elastic"],
    title: "clients of Elasticsearch and OpenSearch, shown with curl",
    snippets: |gateway| {
        let endpoint = gateway.elasticsearch();
        let documents = "{\"create\":{\"_index\":\"logs-app-default\"}}\n{\"@timestamp\":\"2026-01-01T00:00:00Z\",\"message\":\"hello\"}\n";
        Ok(vec![
            Snippet::commands(
                "send a document",
                command(&endpoint, "/_bulk", "application/x-ndjson", documents),
            )
            .with([
                format!("The URL for a client library is {}.", endpoint.url("")),
                "A token is accepted as `Authorization: Bearer`; libraries that know API keys need one of `tidegate token NAME --kind api-key`."
                    .to_owned(),
            ])
            .with(gateway.bulk_notes())
            .with(endpoint.notes(Abilities::ALL)),
        ])
    },
};
