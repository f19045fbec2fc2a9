//! Paths under which sources are served.

use super::{Clash, path};
use crate::model::Config;

/// Where the other sources are served, and below: requests there never come to the source `http`.
const TAKEN: [&str; 10] = [
    "/api/v1/write",
    "/api/v1/receive",
    "/v1/traces",
    "/v1/metrics",
    "/v1/logs",
    "/v1development/profiles",
    "/intake",
    "/loki/api/v1/push",
    "/api/prom/push",
    "/config",
];

pub(super) fn check(config: &Config, clashes: &mut Vec<Clash>) {
    let sources = &config.sources;
    let given = &sources.http.path;
    let served = whole(given);
    let mut clash = |about: Vec<Vec<String>>, message: String, help: &str| {
        clashes.push(Clash { about, message, help: help.to_owned() });
    };
    let own = path(["sources", "http", "path"]);
    let is_plain = served.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#\"<>\\^`{|}".contains(&byte));
    if !is_plain || served == "/" {
        let message = format!("`sources.http.path` ({given:?}) is not a valid path for requests");
        return clash(
            vec![own],
            message,
            "write a path such as `/ingest/logs`, percent-encoded where needed",
        );
    }
    let is_under =
        |other: &str| served.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if let Some(taken) = TAKEN.into_iter().find(|taken| is_under(taken)) {
        let message = format!("`sources.http.path` ({given}) is served by another source (`{taken}`)");
        return clash(vec![own], message, "choose another path");
    }
    let prefix = whole(&sources.elasticsearch.prefix);
    if prefix != "/" && is_under(&prefix) {
        let message =
            format!("`sources.http.path` ({given}) is under `sources.elasticsearch.prefix` ({prefix})");
        clash(vec![own, path(["sources", "elasticsearch", "prefix"])], message, "choose another path");
    }
}

/// With one slash at its beginning and none at its end, but for the root.
fn whole(path: &str) -> String {
    format!("/{}", path.trim_matches('/'))
}
