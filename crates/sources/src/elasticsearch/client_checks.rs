//! Requests that clients make before they send, answered so that they proceed.
//!
//! Whatever is asked for is said to be there, so nobody tries to make it: templates, policies and pipelines are
//! made where documents are kept, which `tidegate elasticsearch setup` helps with. What is set up all the same is
//! acknowledged and forgotten.

use super::Settings;
use super::answer::reply;
use super::request::{Request, decoded};
use std::fmt::Write as _;
use tidegate_http1::Reply;
use tidegate_wire::json::append_string;

/// The answer to `request`.
pub(super) fn answer(request: &Request<'_>, settings: &Settings) -> Reply {
    let mut parts = request.parts();
    let (first, second) = (parts.next(), parts.next());
    if [first, second]
        .iter()
        .any(|part| matches!(part, Some("_refresh" | "_flush" | "_forcemerge" | "_cache")))
    {
        // With any method: what is kept elsewhere is refreshed there.
        return reply().text("{\"_shards\":{\"total\":1,\"successful\":1,\"failed\":0}}");
    }
    if matches!(request.method, "PUT" | "POST" | "DELETE") {
        return match first {
            Some(index) if !index.starts_with('_') && second.is_none() => reply().content(made(index)),
            _ => reply().text("{\"acknowledged\":true}"),
        };
    }
    match (first, second) {
        (None, _) => reply().content(about(settings)),
        (Some("_license"), _) => reply().text(LICENSE),
        (Some("_xpack"), Some("usage")) => reply().text(USAGE),
        (Some("_xpack"), _) => reply().text(XPACK),
        (Some("_cluster"), Some("health")) => reply().text(HEALTH),
        (Some("_cluster"), Some("settings")) => reply().text("{\"persistent\":{},\"transient\":{}}"),
        (Some("_nodes"), _) => reply().content(nodes(request.host, settings)),
        (Some("_cat"), _) => {
            if request.parameter("format").as_deref() == Some("json") {
                reply().text("[]")
            } else {
                reply().content_type("text/plain; charset=UTF-8").text("\n")
            }
        }
        (Some("_ilm"), Some("status")) => reply().text("{\"operation_mode\":\"RUNNING\"}"),
        (Some("_index_template"), _) => reply().text("{\"index_templates\":[]}"),
        (Some("_component_template"), _) => reply().text("{\"component_templates\":[]}"),
        (Some("_data_stream"), _) => reply().text("{\"data_streams\":[]}"),
        _ => reply().text("{}"),
    }
}

const LICENSE: &str = "{\"license\":{\"status\":\"active\",\"uid\":\"00000000-0000-4000-8000-000000000000\",\
                       \"type\":\"basic\",\"issue_date\":\"2026-01-01T00:00:00.000Z\",\
                       \"issue_date_in_millis\":1767225600000,\"max_nodes\":1000,\"max_resource_units\":null,\
                       \"issued_to\":\"tidegate\",\"issuer\":\"elasticsearch\",\"start_date_in_millis\":-1}}";
const XPACK: &str = "{\"build\":{\"hash\":\"unknown\",\"date\":\"2026-01-01T00:00:00.000Z\"},\
                     \"license\":{\"uid\":\"00000000-0000-4000-8000-000000000000\",\"type\":\"basic\",\
                     \"mode\":\"basic\",\"status\":\"active\"},\
                     \"features\":{\"ilm\":{\"available\":true,\"enabled\":true},\
                     \"monitoring\":{\"available\":true,\"enabled\":true},\
                     \"security\":{\"available\":true,\"enabled\":false}},\"tagline\":\"You know, for X\"}";
const USAGE: &str = "{\"ilm\":{\"available\":true,\"enabled\":true}}";
const HEALTH: &str = "{\"cluster_name\":\"tidegate\",\"status\":\"green\",\"timed_out\":false,\
                      \"number_of_nodes\":1,\"number_of_data_nodes\":1,\"active_primary_shards\":0,\
                      \"active_shards\":0,\"relocating_shards\":0,\"initializing_shards\":0,\
                      \"unassigned_shards\":0,\"delayed_unassigned_shards\":0,\"number_of_pending_tasks\":0,\
                      \"number_of_in_flight_fetch\":0,\"task_max_waiting_in_queue_millis\":0,\
                      \"active_shards_percent_as_number\":100.0}";

/// The server information. Clients before version 8 compare the words at the end.
fn about(settings: &Settings) -> Vec<u8> {
    let mut out = b"{\"name\":\"tidegate\",\"cluster_name\":\"tidegate\",\"cluster_uuid\":\"tidegate\",\
                    \"version\":{\"number\":"
        .to_vec();
    append_string(&mut out, settings.version.as_bytes());
    out.extend_from_slice(
        b",\"build_flavor\":\"default\",\"build_type\":\"tar\",\"build_hash\":\"unknown\",\
          \"build_date\":\"2026-01-01T00:00:00.000Z\",\"build_snapshot\":false,\"lucene_version\":\"9.12.0\",\
          \"minimum_wire_compatibility_version\":\"7.17.0\",\
          \"minimum_index_compatibility_version\":\"7.0.0\"},\"tagline\":\"You Know, for Search\"}",
    );
    out
}

/// The nodes of the cluster: this one, under the address at which it was asked. Clients that look for more send
/// to what they find here.
fn nodes(host: &str, settings: &Settings) -> Vec<u8> {
    let mut text = String::from("{\"_nodes\":{\"total\":1,\"successful\":1,\"failed\":0},");
    let _infallible =
        write!(text, "\"cluster_name\":\"tidegate\",\"nodes\":{{\"tidegate\":{{\"name\":\"tidegate\",");
    let mut out = text.into_bytes();
    for name in ["transport_address", "host", "ip"] {
        append_string(&mut out, name.as_bytes());
        out.push(b':');
        append_string(&mut out, host.as_bytes());
        out.push(b',');
    }
    out.extend_from_slice(b"\"version\":");
    append_string(&mut out, settings.version.as_bytes());
    out.extend_from_slice(
        b",\"build_flavor\":\"default\",\"build_type\":\"tar\",\"build_hash\":\"unknown\",\
          \"roles\":[\"data\",\"ingest\",\"master\"],\"http\":{\"bound_address\":[",
    );
    append_string(&mut out, host.as_bytes());
    out.extend_from_slice(b"],\"publish_address\":");
    append_string(&mut out, host.as_bytes());
    out.extend_from_slice(b",\"max_content_length_in_bytes\":");
    out.extend_from_slice(settings.max_body.to_string().as_bytes());
    out.extend_from_slice(b"}}}}");
    out
}

/// An index that is said to have been made.
fn made(index: &str) -> Vec<u8> {
    let mut out = b"{\"acknowledged\":true,\"shards_acknowledged\":true,\"index\":".to_vec();
    append_string(&mut out, decoded(index, false).as_bytes());
    out.push(b'}');
    out
}
