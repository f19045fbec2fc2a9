//! Items of OTLP as the sink `http` writes them, and back.
//!
//! Writing them is `wire`'s; reading goes by way of OTLP/JSON, which `wire` reads. What would be lost on the way, a misspelt
//! member above all, is an error.

use crate::compare::is_zero;
use serde_json::{Map, Value as Json, json};
use tidegate_wire::otlp::json::{Encoder, Layout, Next, max_len, translate};
use tidegate_wire::otlp::{self, Signal};
use tidegate_wire::time::parse_rfc3339;

/// Why items cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("item {}: {why}", .item + 1)]
pub struct ItemError {
    /// The item, counted from 0.
    pub item: usize,
    /// The error.
    pub why: String,
}

/// Members of a metric; the others of its object are those of a point.
const METRIC: [&str; 4] = ["name", "description", "unit", "metadata"];
/// Members of the data of a metric.
const DATA: [&str; 2] = ["aggregation_temporality", "is_monotonic"];

/// The body of an export request with these items, each with the resource and scope that it names.
///
/// # Errors
/// [`ItemError`]: the first item that is none.
pub fn encode(signal: Signal, items: &[Json]) -> Result<Vec<u8>, ItemError> {
    let mut groups: Vec<Json> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let error = |why: String| ItemError { item: at, why };
        let Json::Object(members) = item else { return Err(error("it is a group of members".into())) };
        if let Some(named) = members.get("signal").and_then(Json::as_str)
            && named != name(signal)
        {
            return Err(error(format!("its signal is `{named}`, not `{}`", name(signal))));
        }
        let group = group(signal, members);
        let body = body_of(signal, vec![group.clone()]).map_err(&error)?;
        if let Some(lost) = decode(signal, &body).first().and_then(|read| lost(item, read, "")) {
            return Err(error(format!("`{lost}` is no member of {}, or has the wrong type", noun(signal))));
        }
        // Neighbours of one resource, scope and metric share them, as an SDK sends them.
        match groups.last_mut() {
            Some(last) => merge(last, group).into_iter().for_each(|group| groups.push(group)),
            None => groups.push(group),
        }
    }
    body_of(signal, groups).map_err(|why| ItemError { item: 0, why })
}

/// The items of the body of an export request.
#[must_use]
pub fn decode(signal: Signal, body: &[u8]) -> Vec<Json> {
    let mut encoder = Encoder::new(signal, body, Layout::Lines);
    let (mut text, mut filled) = (vec![0; 64 << 10], 0);
    loop {
        let progress = encoder.write(text.get_mut(filled..).unwrap_or_default());
        filled += progress.written;
        match progress.next {
            Next::Done => break,
            Next::More => {}
            Next::Space => text.resize(text.len() * 2, 0),
        }
    }
    let lines = text.get(..filled).unwrap_or_default().split(|byte| *byte == b'\n');
    lines.filter_map(|line| serde_json::from_slice(line).ok()).collect()
}

fn body_of(signal: Signal, groups: Vec<Json>) -> Result<Vec<u8>, String> {
    let request = json!({ format!("resource{}", title(signal)): groups }).to_string();
    let mut body = vec![0; max_len(request.as_bytes())];
    let translated = translate(signal, request.as_bytes(), &mut body).map_err(|error| error.to_string())?;
    if let Some(error) = translated.errors.first() {
        return Err(error.to_string());
    }
    body.truncate(translated.len);
    otlp::check(signal, &body).map_err(|error| error.to_string())?;
    Ok(body)
}

/// An item in a resource and a scope of its own, as OTLP/JSON.
fn group(signal: Signal, members: &Map<String, Json>) -> Json {
    let envelope = |name: &str| {
        let mut members = members.get(name).and_then(Json::as_object).cloned().unwrap_or_default();
        let url = members.remove("schema_url").unwrap_or_else(|| "".into());
        (message(&members), url)
    };
    let ((resource, resource_url), (scope, scope_url)) = (envelope("resource"), envelope("scope"));
    let own = members.iter().filter(|(name, _)| !matches!(name.as_str(), "resource" | "scope" | "signal"));
    let own: Map<String, Json> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
    let (list, item) = match signal {
        Signal::Traces => ("spans", message(&own)),
        Signal::Metrics => ("metrics", metric(own)),
        _ => ("logRecords", message(&own)),
    };
    let scopes = json!([{ "scope": scope, "schemaUrl": scope_url, list: [item] }]);
    json!({ "resource": resource, "schemaUrl": resource_url, format!("scope{}", title(signal)): scopes })
}

fn metric(mut members: Map<String, Json>) -> Json {
    let kind = members.remove("type");
    let kind = kind.as_ref().and_then(Json::as_str).unwrap_or("gauge");
    let mut take = |names: &[&str]| -> Map<String, Json> {
        names
            .iter()
            .filter_map(|name| members.remove(*name).map(|value| ((*name).to_owned(), value)))
            .collect()
    };
    let (metric, data) = (take(&METRIC), take(&DATA));
    let (mut metric, mut data) = (message(&metric), message(&data));
    if let (Json::Object(metric), Json::Object(data)) = (&mut metric, &mut data) {
        data.insert("dataPoints".into(), vec![message(&members)].into());
        metric.insert(camel_case(kind), std::mem::take(data).into());
    }
    metric
}

/// The members of a message as OTLP/JSON.
fn message(members: &Map<String, Json>) -> Json {
    let members = members.iter().map(|(name, value)| match (name.as_str(), value) {
        ("attributes" | "filtered_attributes" | "metadata", Json::Object(entries)) => {
            (camel_case(name), attributes(entries))
        }
        ("body", value) => (name.clone(), any(value)),
        ("time" | "start_time" | "end_time" | "observed_time", value) => {
            let nanos = value.as_str().and_then(|text| parse_rfc3339(text.as_bytes()));
            let value = nanos.map_or_else(|| value.clone(), |nanos| nanos.to_string().into());
            (format!("{}UnixNano", camel_case(name)), value)
        }
        ("kind", Json::String(word)) => (name.clone(), enumeration(word, &KINDS)),
        ("code", Json::String(word)) => (name.clone(), enumeration(word, &CODES)),
        ("aggregation_temporality", Json::String(word)) => {
            (camel_case(name), enumeration(word, &TEMPORALITIES))
        }
        ("value", Json::Number(number)) if number.is_f64() => ("asDouble".into(), value.clone()),
        ("value", Json::Number(_)) => ("asInt".into(), value.clone()),
        ("quantile_values", Json::Array(entries)) => {
            let plain = |entry: &Json| entry.clone();
            (camel_case(name), entries.iter().map(plain).collect())
        }
        (_, Json::Object(inner)) => (camel_case(name), message(inner)),
        (_, Json::Array(entries)) => {
            let entry = |entry: &Json| entry.as_object().map_or_else(|| entry.clone(), message);
            (camel_case(name), entries.iter().map(entry).collect())
        }
        _ => (camel_case(name), value.clone()),
    });
    Json::Object(members.collect())
}

const KINDS: [&str; 6] = ["unspecified", "internal", "server", "client", "producer", "consumer"];
const CODES: [&str; 3] = ["unset", "ok", "error"];
const TEMPORALITIES: [&str; 3] = ["unspecified", "delta", "cumulative"];

/// The number of a word; the word itself where there is no such one, which nobody reads.
fn enumeration(word: &str, words: &[&str]) -> Json {
    words.iter().position(|known| *known == word).map_or_else(|| word.into(), Json::from)
}

fn attributes(entries: &Map<String, Json>) -> Json {
    entries.iter().map(|(key, value)| json!({ "key": key, "value": any(value) })).collect()
}

fn any(value: &Json) -> Json {
    match value {
        Json::Null => json!({}),
        Json::Bool(value) => json!({ "boolValue": value }),
        Json::Number(value) if value.is_f64() => json!({ "doubleValue": value }),
        Json::Number(value) => json!({ "intValue": value.to_string() }),
        Json::String(value) => json!({ "stringValue": value }),
        Json::Array(values) => {
            json!({ "arrayValue": { "values": values.iter().map(any).collect::<Vec<_>>() } })
        }
        Json::Object(entries) => json!({ "kvlistValue": { "values": attributes(entries) } }),
    }
}

/// The first member of `written` that `read` does not have.
fn lost(written: &Json, read: &Json, path: &str) -> Option<String> {
    match (written, read) {
        (Json::Object(written), Json::Object(read)) => written.iter().find_map(|(name, value)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match read.get(name) {
                Some(read) => lost(value, read, &path),
                None => (!is_zero(value)).then_some(path),
            }
        }),
        (Json::Array(written), Json::Array(read)) if written.len() == read.len() => {
            written.iter().zip(read).find_map(|(written, read)| lost(written, read, path))
        }
        (Json::Array(_) | Json::Object(_), _) | (_, Json::Array(_) | Json::Object(_)) => {
            Some(path.to_owned())
        }
        _ => None,
    }
}

/// Adds what is in `group` to `last`, as far as they have the same envelopes; else it comes back.
fn merge(last: &mut Json, group: Json) -> Option<Json> {
    const LISTS: [&str; 7] =
        ["scopeSpans", "scopeMetrics", "scopeLogs", "spans", "metrics", "logRecords", "dataPoints"];
    const DATA: [&str; 5] = ["gauge", "sum", "histogram", "exponentialHistogram", "summary"];
    let (Some(members), Json::Object(mut others)) = (last.as_object_mut(), group.clone()) else {
        return Some(group);
    };
    let is_inner = |name: &String| LISTS.contains(&name.as_str()) || DATA.contains(&name.as_str());
    let inner = others.keys().find(|name| is_inner(name)).cloned();
    let rest = |members: &Map<String, Json>| -> Vec<(String, Json)> {
        members
            .iter()
            .filter(|(name, _)| !is_inner(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    let name = inner.filter(|name| members.contains_key(name) && rest(members) == rest(&others));
    let Some((name, added)) = name.and_then(|name| others.remove(&name).map(|added| (name, added))) else {
        return Some(group);
    };
    match (members.get_mut(&name), added) {
        (Some(Json::Array(list)), Json::Array(added)) => {
            for entry in added {
                let entry = match list.last_mut() {
                    Some(last) => merge(last, entry),
                    None => Some(entry),
                };
                list.extend(entry);
            }
            None
        }
        (Some(known), added) => merge(known, added).map(|_| group),
        (None, _) => Some(group),
    }
}

fn camel_case(name: &str) -> String {
    let mut parts = name.split('_');
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let mut letters = part.chars();
        text.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        text.extend(letters);
    }
    text
}

const fn title(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "Spans",
        Signal::Metrics => "Metrics",
        _ => "Logs",
    }
}

const fn name(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "traces",
        Signal::Metrics => "metrics",
        _ => "logs",
    }
}

const fn noun(signal: Signal) -> &'static str {
    match signal {
        Signal::Traces => "a span",
        Signal::Metrics => "a metric point",
        _ => "a log record",
    }
}

#[cfg(test)]
mod tests;
