//! The sink `prometheus_remote_write`.

use super::client::{Client, compression};
use super::{ReadSink, missing, sink};
use crate::import::document::{Map, Yaml};
use crate::import::group::{FileReader, Group};
use crate::import::relabel;
use crate::import::vector::components::Component;
use crate::model::Signal;
use crate::values::Bytes;

pub(super) fn remote_write(
    component: &Component<'_>,
    group: &mut Group<'_>,
    reader: &mut FileReader<'_, '_>,
) -> Option<ReadSink> {
    let Some(url) = group.text("endpoint", reader) else {
        missing(component, "endpoint", reader);
        return None;
    };
    let mut map = Map::default();
    map.set("url", url.value.as_str());
    compression(group, &mut map, &["snappy"], "snappy", reader);
    let mut client = Client::read(component, group, Bytes::gib(1), reader);
    if let Some(tenant) = group.text("tenant_id", reader) {
        let path = group.path_of("tenant_id");
        if tenant.value.contains("{{") {
            reader.note(&tenant.at, &path, "left out: `tenant_header` sends the tenant that clients named");
        } else {
            client.settings.group("headers").set("x-scope-orgid", tenant.value);
        }
    }
    client.headers(group, reader);
    client.user_header(component, reader);
    client.match_urls(&[url.value], false);
    map.append(&client.settings);
    if let Some(namespace) = group.text("default_namespace", reader) {
        let mut rule = Map::default();
        rule.set("source_labels", Yaml::Flow(vec!["__name__".to_owned()]));
        rule.set("target_label", "__name__");
        rule.set("replacement", format!("{}_$1", namespace.value));
        relabel::set_rules(&mut map, vec![rule]);
        let message = "became a relabeling rule, which gives it to every name; Vector gives it to names without a namespace";
        reader.note(&namespace.at, &group.path_of("default_namespace"), message);
    }
    group.lacks(
        &[
            ("buckets", "not needed: histograms are sent as received"),
            ("quantiles", "not needed: summaries are sent as received"),
            ("expire_metrics_secs", "not needed: samples are sent as received"),
            ("aws", "left out: requests are not signed"),
        ],
        reader,
    );
    Some(sink("prometheus_remote_write", map, vec![Signal::Metrics], false))
}
