//! Index templates for the data streams that documents go to.
//!
//! They accept whatever [`documents`](crate::documents) write: texts are keywords, truths too, numbers that are none
//! are left out of the index, and objects of anybody's making are kept but not indexed. What an index can still
//! refuse is a field that is an object in one document and none in another.
//!
//! Those for OpenTelemetry's own words have the priority 115 and those for the Elastic Common Schema 90, so that
//! Elasticsearch's own templates (120 for the former, 100 and more for the latter) win where it has some.

use crate::documents::Product;

/// An index template: the body of `PUT _index_template/<name>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Template {
    /// Its name.
    pub name: &'static str,
    /// Its JSON.
    pub body: &'static str,
}

/// The templates for a cluster of this kind.
#[must_use]
pub fn templates(flavour: Product) -> [Template; 6] {
    let (metrics_otel, metrics_ecs) = match flavour {
        Product::Elasticsearch => (
            include_str!("../templates/elasticsearch/metrics-otel.json"),
            include_str!("../templates/elasticsearch/metrics-ecs.json"),
        ),
        Product::OpenSearch => (
            include_str!("../templates/opensearch/metrics-otel.json"),
            include_str!("../templates/opensearch/metrics-ecs.json"),
        ),
    };
    [
        Template { name: "tidegate-logs-otel", body: include_str!("../templates/logs-otel.json") },
        Template { name: "tidegate-traces-otel", body: include_str!("../templates/traces-otel.json") },
        Template { name: "tidegate-metrics-otel", body: metrics_otel },
        Template { name: "tidegate-logs-ecs", body: include_str!("../templates/logs-ecs.json") },
        Template { name: "tidegate-traces-ecs", body: include_str!("../templates/traces-ecs.json") },
        Template { name: "tidegate-metrics-ecs", body: metrics_ecs },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Each is JSON, makes data streams, and has a name and a pattern of its own; every template that documents for
    /// Elasticsearch name is there.
    #[test]
    fn templates_are_complete() {
        for flavour in [Product::Elasticsearch, Product::OpenSearch] {
            let mut patterns = std::collections::HashSet::new();
            for template in templates(flavour) {
                let body: Value = serde_json::from_str(template.body).unwrap();
                assert!(body["data_stream"].is_object(), "{}", template.name);
                assert_eq!(body["template"]["mappings"]["properties"]["@timestamp"]["type"], "date");
                assert!(patterns.insert(body["index_patterns"][0].to_string()), "{}", template.name);
            }
        }
        let [_, _, otel, _, _, ecs] = templates(Product::Elasticsearch);
        for (template, names) in [
            (
                otel,
                &["counter_long", "counter_double", "gauge_long", "gauge_double", "histogram", "summary"][..],
            ),
            (ecs, &["double_metrics", "histogram_metrics", "summary_metrics"]),
        ] {
            let body: Value = serde_json::from_str(template.body).unwrap();
            let known = body["template"]["mappings"]["dynamic_templates"].as_array().unwrap();
            for name in names {
                assert!(known.iter().any(|one| one.get(name).is_some()), "{name}");
            }
        }
    }
}
