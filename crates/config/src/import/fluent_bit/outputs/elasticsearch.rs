//! The outputs `es` and `opensearch`.

use super::Target;
use super::client::{Client, url_path};
use crate::import::document::{Map, Yaml};
use crate::import::fluent_bit::plugin::{Lacking, Plugin};
use crate::import::fluent_bit::record;
use crate::import::fluent_bit::report::Report;

const IDS: &str = "left out: documents get an `_id` from their position in the journal";
const LACKING: &Lacking = &[
    ("type", "not needed: documents have no types since Elasticsearch 7"),
    ("suppress_type_name", "not needed: documents have no types since Elasticsearch 7"),
    ("generate_id", "not needed: documents get an `_id` from their position in the journal"),
    ("id_key", IDS),
    (
        "pipeline",
        "left out: documents are sent without an ingest pipeline; set `index.default_pipeline` in the index",
    ),
    ("replace_dots", "left out: names keep their dots, which the cluster reads as paths"),
    ("trace_error", "not needed: `tidegate journal dead-letters` shows refused documents"),
    ("trace_output", "not needed: `tidegate tap` shows items"),
    ("include_tag_key", "left out: see the attribute `fluent.tag`, where sinks are chosen by tags"),
    ("tag_key", "left out: see the attribute `fluent.tag`, where sinks are chosen by tags"),
    ("time_key_format", "not needed: the time has the format of the schema"),
    ("time_key_nanos", "not needed: the time has nanoseconds"),
    ("current_time_index", "left out: the date in the name of an index is that of the document"),
];

/// The sink.
pub(super) fn target(plugin: &mut Plugin<'_>, report: &mut Report) -> Target {
    let mut map = Map::default();
    let cloud = plugin.text("cloud_id", report);
    let mut client = Client::read(plugin, Some("127.0.0.1"), 9200, report);
    if let Some(cloud) = cloud {
        plugin.note_value(&cloud, "write the URL of the deployment: a cloud ID was not decoded", report);
        client.url = "${ELASTICSEARCH_URL}".to_owned();
    }
    let path = plugin.text("path", report).map_or_else(String::new, |path| url_path(&path.text));
    map.set("endpoints", Yaml::Flow(vec![format!("{}{path}", client.url)]));
    map.set_some("api_key", plugin.text("http_api_key", report).map(|key| key.text));
    let cloud_auth = plugin.text("cloud_auth", report);
    let cloud_user = cloud_auth
        .and_then(|auth| auth.text.split_once(':').map(|(user, rest)| (user.to_owned(), rest.to_owned())));
    let user = Client::user(plugin, report).or(cloud_user);
    if let Some((user, password)) = user {
        // Fluent Bit ignores the key then.
        map.remove("api_key");
        map.set("user", user);
        map.set("password", password);
    }
    map.set("index", index(plugin, report));
    client.headers(plugin, report);
    client.compression(plugin, &["none", "gzip"], "gzip", report);
    plugin.lacks(LACKING, report);
    for (key, same, message) in [
        ("write_operation", "create", "left out: documents are created, and none is changed"),
        ("time_key", "@timestamp", "left out: the time is `@timestamp`"),
    ] {
        let Some(value) = plugin.text(key, report) else { continue };
        let message =
            if value.text.eq_ignore_ascii_case(same) { "not needed: it is so already" } else { message };
        plugin.note_value(&value, message, report);
    }
    let message = "documents have the schema `otel`: the text in `body.text`, attributes below `attributes` and `resource.attributes`; \
                   `mapping: ecs` chooses the Elastic Common Schema";
    plugin.note(message, report);
    let has_credentials = map.get("api_key").is_some() || map.get("password").is_some();
    map.append(&client.finish(has_credentials));
    Target::logs("elasticsearch", map, true)
}

/// The pattern for the names of indexes.
fn index(plugin: &mut Plugin<'_>, report: &mut Report) -> String {
    let is_logstash = plugin.flag("logstash_format", report) == Some(true);
    let plain = plugin.text("index", report).map_or_else(|| "fluent-bit".to_owned(), |index| index.text);
    let prefix =
        plugin.text("logstash_prefix", report).map_or_else(|| "logstash".to_owned(), |prefix| prefix.text);
    let prefix_key = plugin.text("logstash_prefix_key", report);
    let separator = plugin
        .text("logstash_prefix_separator", report)
        .map_or_else(|| "-".to_owned(), |separator| separator.text);
    let format = plugin.text("logstash_dateformat", report);
    if let Some(target) = plugin.text("target_index", report) {
        let message = "left out: write names of attributes into `index`, such as `logs-{service.name}`";
        plugin.note_value(&target, message, report);
    }
    if !is_logstash {
        return plain;
    }
    let prefix = match prefix_key {
        Some(key) => match attribute(&key.text) {
            Some(attribute) => {
                let message = format!(
                    "a document without `{attribute}` does not go to an index with the prefix `{prefix}`, as in Fluent Bit; see `index` in \
                     docs/elasticsearch.md"
                );
                plugin.note_value(&key, message, report);
                format!("{{{attribute}}}")
            }
            None => {
                let message = "left out: it names no attribute; `index` has the prefix";
                plugin.note_value(&key, message, report);
                prefix
            }
        },
        None => prefix,
    };
    let date = match &format {
        None => "{yyyy.MM.dd}".to_owned(),
        Some(format) => match date(&format.text) {
            Some(date) => format!("{{{date}}}"),
            None => {
                plugin.note_value(format, "left out: the date was written as `yyyy.MM.dd`", report);
                "{yyyy.MM.dd}".to_owned()
            }
        },
    };
    format!("{prefix}{separator}{date}")
}

/// The name of an attribute in a pattern.
fn attribute(key: &str) -> Option<String> {
    let path = record::path(key).ok()?;
    let name = record::resource_attribute(key)
        .or_else(|| Some(path.strip_prefix("log.attributes[\"")?.strip_suffix("\"]")?.to_owned()))?;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-/".contains(&byte));
    is_name.then_some(name)
}

/// A format of dates in the notation of `index`.
fn date(format: &str) -> Option<String> {
    let date = format.replace("%Y", "yyyy").replace("%m", "MM").replace("%d", "dd");
    let is_known = date.chars().all(|c| matches!(c, 'y' | 'M' | 'd' | '.' | '-' | '_'));
    (is_known && date.contains("yyyy")).then_some(date)
}
