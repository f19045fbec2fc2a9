//! The generated documents match the settings.

use std::fs;
use std::path::Path;

use serde_json::{Value as Json, json};
use tidegate_config::{markdown, schema};

/// `docs/configuration.md` is generated: `UPDATE_DOCS=1` writes it anew.
#[test]
fn the_reference_is_up_to_date() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md");
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&file, markdown()).unwrap();
    }
    let committed = fs::read_to_string(&file).unwrap_or_default();
    assert!(committed == markdown(), "write it anew: UPDATE_DOCS=1 cargo test -p tidegate-config");
}

#[test]
fn the_schema_matches_the_reader() {
    let schema = schema();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["additionalProperties"], json!(false));
    let journal = &schema["properties"]["journal"];
    assert_eq!(journal["properties"]["quota"]["default"], "20GiB");
    assert_eq!(journal["default"]["durability"], "fsync");
    let kinds = schema["properties"]["sinks"]["additionalProperties"]["oneOf"].as_array().unwrap();
    let types: Vec<&Json> = kinds.iter().map(|kind| &kind["properties"]["type"]["const"]).collect();
    assert_eq!(
        types,
        [
            "lake",
            "prometheus_remote_write",
            "otlp",
            "elasticsearch",
            "http",
            "splunk_hec",
            "loki",
            "thanos_receive",
            "derive",
            "blackhole"
        ]
    );
    assert_eq!(kinds[1]["required"], json!(["type"]));
    assert_eq!(kinds[2]["required"], json!(["type"]));
    let lanes = &kinds[1]["properties"]["lanes"];
    assert_eq!((&lanes["default"], &lanes["anyOf"][0]["maximum"]), (&json!(1), &json!(64)));
}

/// Every object is closed and every property described, however deep.
#[test]
fn the_schema_is_closed_and_described_everywhere() {
    fn visit(schema: &Json, at: &str) {
        if let Some(properties) = schema.get("properties").and_then(Json::as_object) {
            assert_eq!(schema["additionalProperties"], json!(false), "{at}");
            for (name, property) in properties {
                let at = format!("{at}.{name}");
                assert!(property["description"].as_str().is_some_and(|text| text.len() > 3), "{at}");
                visit(property, &at);
            }
        }
        for inner in schema.get("oneOf").and_then(Json::as_array).into_iter().flatten() {
            visit(inner, at);
        }
        if let Some(inner) = schema.get("additionalProperties").filter(|inner| inner.is_object()) {
            visit(inner, at);
        }
    }
    visit(&schema(), "");
}

/// The examples of all pages can be used as they are: blocks of YAML that begin with a setting of the configuration.
#[test]
fn the_examples_of_pages_are_valid() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages = fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path());
    let pages = pages.filter(|page| page.extension().is_some_and(|extension| extension == "md"));
    let mut found = 0;
    for page in pages.chain([root.join("README.md")]) {
        let text = fs::read_to_string(&page).unwrap();
        let blocks = text.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next());
        for example in blocks {
            let first = example.split(':').next().unwrap_or_default();
            if ["memory", "listen", "sources", "pipelines", "sinks"].contains(&first) {
                found += 1;
                let environment = |_: &str| Some("value".to_owned());
                let read = tidegate_config::parse(&page.display().to_string(), example, &environment);
                read.unwrap_or_else(|errors| panic!("{errors}"));
            }
        }
    }
    assert!(found > 5, "{found} examples");
}
