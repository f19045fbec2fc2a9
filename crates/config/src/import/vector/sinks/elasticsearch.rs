//! The sink `elasticsearch`.

use super::client::{Client, compression};
use super::{ReadSink, Tail, missing, sink};
use crate::import::document::{Map, Yaml};
use crate::import::group::{FileReader, Group, Text};
use crate::import::vector::components::Component;
use crate::model::Signal;
use crate::values::Bytes;

/// The index where nothing says another.
const INDEX: &str = "vector-%Y.%m.%d";

pub(super) fn elasticsearch(
    component: &Component<'_>,
    group: &mut Group<'_>,
    reader: &mut FileReader<'_, '_>,
) -> Option<ReadSink> {
    let mut urls: Vec<String> = group.texts("endpoints", reader).into_iter().map(|text| text.value).collect();
    urls.extend(group.text("endpoint", reader).map(|text| text.value));
    if urls.is_empty() {
        missing(component, "endpoints", reader);
        return None;
    }
    for url in urls.iter_mut().filter(|url| !url.contains("://") && !url.starts_with("${")) {
        *url = format!("http://{url}");
    }
    let mut map = Map::default();
    map.set("endpoints", Yaml::Flow(urls.clone()));
    if group.text("opensearch_service_type", reader).is_some() {
        map.set("product", "opensearch");
    }
    destination(component, group, &mut map, reader);
    compression(group, &mut map, &["gzip", "none"], "none", reader);
    let (tail, _) = Tail::read(group, reader);
    let mut client = Client::read(component, group, Bytes::mib(100), reader);
    let user = client.user.take();
    let has_user = user.is_some();
    if let Some((user, password)) = user {
        map.set("user", user);
        map.set("password", password);
    }
    client.match_urls(&urls, has_user);
    map.append(&client.settings);
    group.lacks(
        &[
            ("api_version", "not needed: Elasticsearch 8 and 9 and OpenSearch are known"),
            ("doc_type", "not needed: Elasticsearch 8 has no types"),
            ("suppress_type_name", "not needed: Elasticsearch 8 has no types"),
            ("pipeline", "left out: documents are sent without an ingest pipeline; set `index.default_pipeline` in the index"),
            ("id_key", "left out: documents get an `_id` from their position in the journal (`ids`)"),
            ("query", "left out: requests have no parameters"),
            ("aws", "left out: requests are not signed"),
            ("metrics", "not needed: metrics are documents of the chosen `mapping`"),
            ("encoding_fields", "not needed"),
        ],
        reader,
    );
    let message = "documents have the schema of OpenTelemetry, or that of Elastic with `mapping: ecs`, not the flat fields of Vector";
    component.note(message, reader);
    let signals = vec![Signal::Logs, Signal::Metrics, Signal::Traces];
    Some(ReadSink { tail, ..sink("elasticsearch", map, signals, true) })
}

/// An index, or a data stream.
fn destination(
    component: &Component<'_>,
    group: &mut Group<'_>,
    map: &mut Map,
    reader: &mut FileReader<'_, '_>,
) {
    let is_stream = group.text("mode", reader).is_some_and(|mode| mode.value == "data_stream");
    if let Some(mut stream) = group.group("data_stream", reader) {
        for setting in ["dataset", "namespace"] {
            if let Some(text) = stream.text(setting, reader) {
                if text.value.contains(['{', '%']) && !text.is_open() {
                    let message = "left out: records with the attributes `data_stream.dataset` and `data_stream.namespace` go there";
                    reader.note(&text.at, &stream.path_of(setting), message);
                } else {
                    map.set(setting, text.value);
                }
            }
        }
        stream.lacks(
            &[
                ("type", "not needed: the type is that of the signal"),
                ("auto_routing", "not needed: the attributes `data_stream.*` name the data stream"),
                ("sync_fields", "not needed: documents have the fields of their data stream"),
            ],
            reader,
        );
        stream.finish(reader);
    }
    let mut bulk = group.group("bulk", reader);
    let from = bulk.as_mut().unwrap_or(group);
    let index = from.text("index", reader);
    if let Some(action) =
        from.text("action", reader).filter(|action| !["index", "create"].contains(&action.value.as_str()))
    {
        reader.note(
            &action.at,
            &from.path_of("action"),
            "documents are created: other actions have no counterpart",
        );
    }
    from.lacks(
        &[
            ("version", "left out: documents have no version"),
            ("version_type", "left out: documents have no version"),
            ("template_fallback_index", "left out: a field that is absent has an empty place in the name"),
        ],
        reader,
    );
    let path = from.path_of("index");
    if let Some(bulk) = bulk {
        bulk.finish(reader);
    }
    if is_stream {
        if map.get("dataset").is_none() {
            map.set("dataset", "generic");
        }
        return;
    }
    match index {
        Some(index) => match pattern(&index.value) {
            Some(pattern) => map.set("index", pattern),
            None => {
                reader.note(
                    &index.at,
                    &path,
                    "left out: write it as a pattern such as `logs-{service.name}-{yyyy.MM.dd}`",
                );
            }
        },
        None => {
            if let Some(pattern) = pattern(INDEX) {
                let text = Text { value: pattern, at: component.entry.key_at.clone(), is_plain: true };
                map.set("index", text.value);
            }
        }
    }
}

/// A template of Vector as a pattern for names of indexes: dates, and no fields.
fn pattern(template: &str) -> Option<String> {
    if template.contains("{{") || template.contains("${") {
        return (!template.contains(['%']) && !template.contains("{{")).then(|| template.to_owned());
    }
    let Some(start) = template.find('%') else { return Some(template.to_owned()) };
    let end = template.rfind('%').map_or(start, |last| last + 2).min(template.len());
    let (before, date, behind) = (template.get(..start)?, template.get(start..end)?, template.get(end..)?);
    let date = date
        .replace("%F", "yyyy-MM-dd")
        .replace("%Y", "yyyy")
        .replace("%m", "MM")
        .replace("%d", "dd")
        .replace("%H", "HH");
    (!date.contains('%')).then(|| format!("{before}{{{date}}}{behind}"))
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn dates_in_names_of_indexes_are_patterns() {
        assert_eq!(pattern("app-%Y.%m.%d").as_deref(), Some("app-{yyyy.MM.dd}"));
        assert_eq!(pattern("vector-%F-x").as_deref(), Some("vector-{yyyy-MM-dd}-x"));
        assert_eq!(pattern("plain").as_deref(), Some("plain"));
        assert_eq!(pattern("a-{{ b }}-%Y"), None);
        assert_eq!(pattern("a-%é"), None);
    }
}
