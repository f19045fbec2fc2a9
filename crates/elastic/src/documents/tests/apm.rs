//! What Elastic APM's documents say of intake events, worked out slowly over whole objects: a table of fields, and
//! maps. Compared with what is written here, and with what arrives in a cluster.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::net::IpAddr;

const TABLE: &str = include_str!("../../../tests/apm-fields.txt");

/// The data stream and the document of an event, but for the key that errors are grouped by. Times are
/// `{"time": nanoseconds}`.
pub(crate) fn document(metadata: &Value, kind: &str, event: &Value, received: u64) -> (String, Value) {
    let mut said = Said { time: json!({ "time": received }), ..Said::default() };
    said.host(metadata);
    said.look(&rules("metadata"), "", metadata, false);
    let processor = if kind == "metricset" { "metric" } else { kind };
    said.put("processor.event", json!(processor));
    said.look(&rules(kind), "", event, kind == "log");
    let agent = metadata["service"]["agent"]["name"].as_str().unwrap_or_default();
    let rum = ["rum-js", "js-base", "iOS/swift"].contains(&agent);
    let stream = match kind {
        "transaction" | "span" if rum => "traces-apm.rum",
        "transaction" | "span" => "traces-apm",
        "error" => {
            let message = [&event["log"]["message"], &event["exception"]["message"]];
            if let Some(message) = message.into_iter().find(|message| message.is_string()) {
                said.put("message", message.clone());
            }
            "logs-apm.error"
        }
        "metricset" => {
            let of_one = ["transaction", "span"]
                .iter()
                .any(|name| event[name].as_object().is_some_and(|of| !of.is_empty()));
            said.put("metricset.name", json!(if of_one { "span_breakdown" } else { "app" }));
            let known = ["agent.", "clr.gc.", "faas.", "golang.", "jvm.", "nodejs.", "ruby.", "system."];
            let mut samples = event["samples"].as_object().into_iter().flat_map(Map::keys);
            if of_one || samples.all(|name| known.iter().any(|family| name.starts_with(family))) {
                "metrics-apm.internal"
            } else {
                "metrics-apm.app."
            }
        }
        _ => "logs-apm.app.",
    };
    if let Some(time) = said.time["time"].as_u64()
        && ["transaction", "span", "error"].contains(&kind)
    {
        said.put("timestamp.us", json!(time / 1000));
    }
    let is_forbidden = |one: char| "\\/*?\"<>|,#:-".contains(one) || one.is_whitespace() || one.is_control();
    let service = said.service.to_lowercase();
    let service: String = service.chars().map(|one| if is_forbidden(one) { '_' } else { one }).collect();
    let service = if service.is_empty() { "unknown" } else { &service };
    let stream = if stream.ends_with('.') { format!("{stream}{service}") } else { stream.to_owned() };
    let (kind, dataset) = stream.split_once('-').unwrap();
    let dataset = &dataset[..dataset.floor_char_boundary(100)];
    said.put("data_stream", json!({ "type": kind, "dataset": dataset, "namespace": "default" }));
    said.put("@timestamp", said.time.clone());
    (format!("{kind}-{dataset}-default"), said.document())
}

/// Replaces the time of a document by what it means, if it is one, and takes out what is not compared.
pub(crate) fn comparable(mut document: Value) -> Value {
    if let Some(time) = document["@timestamp"].as_str().and_then(nanoseconds) {
        document["@timestamp"] = json!({ "time": time });
    }
    if let Some(error) = document.get_mut("error").and_then(Value::as_object_mut) {
        error.remove("grouping_key");
    }
    document
}

/// A time as documents have it, in nanoseconds.
pub(crate) fn nanoseconds(text: &str) -> Option<u64> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<u64>().ok();
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let (year, month) = (number(0, 4)?, number(5, 7)?);
    let mut days: u64 = (1970..year).map(|year| if leap(year) { 366 } else { 365 }).sum();
    let of_month = [31, if leap(year) { 29 } else { 28 }, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    days += of_month.iter().take(usize::try_from(month).ok()? - 1).sum::<u64>() + number(8, 10)? - 1;
    let seconds = days * 86_400 + number(11, 13)? * 3600 + number(14, 16)? * 60 + number(17, 19)?;
    let fraction = text.get(20..)?.strip_suffix('Z')?;
    let scale = 10u64.pow(9u32.checked_sub(u32::try_from(fraction.len()).ok()?)?);
    Some(seconds * 1_000_000_000 + fraction.parse::<u64>().ok()? * scale)
}

/// A path, how it is said, and its fields.
type Rule = (&'static str, &'static str, Vec<&'static str>);

/// The rules of a section, and of those in it.
fn rules(section: &str) -> Vec<Rule> {
    let sections = TABLE.split("\n[").skip(1).map(|text| text.split_once("]\n").unwrap());
    for (head, lines) in sections {
        let mut names = head.split(' ');
        if names.next() != Some(section) {
            continue;
        }
        let mut all: Vec<Rule> = lines
            .lines()
            .filter(|line| !line.is_empty())
            .map(|line| {
                let mut words = line.split(' ');
                (words.next().unwrap(), words.next().unwrap(), words.collect())
            })
            .collect();
        for name in names {
            // Those of the context are within it.
            let inner = rules(name).into_iter().map(|(path, how, fields)| {
                let path = if name == "context" { format!("context.{path}").leak() } else { path };
                (path, how, fields)
            });
            all.extend(inner.filter(|rule| !all.iter().any(|own| own.0 == rule.0)).collect::<Vec<_>>());
        }
        return all;
    }
    panic!("there is no section {section}");
}

#[derive(Default)]
struct Said {
    fields: BTreeMap<String, Value>,
    texts: BTreeMap<String, Value>,
    numbers: BTreeMap<String, Value>,
    time: Value,
    /// The name that streams are called by.
    service: String,
}

impl Said {
    fn put(&mut self, field: &str, value: Value) {
        self.fields.insert(field.to_owned(), value);
    }

    /// What the metadata says of the host.
    fn host(&mut self, metadata: &Value) {
        let system = &metadata["system"];
        let text = |value: &Value| value.as_str().map(|text| json!(text));
        let detected = text(&system["detected_hostname"]).or(text(&system["hostname"]));
        let configured = text(&system["configured_hostname"]).or(detected.clone());
        for (field, value) in [
            ("service.node.name", text(&system["container"]["id"]).or(configured.clone())),
            ("host.hostname", detected.or(configured.clone())),
            ("host.name", configured),
        ] {
            value.into_iter().for_each(|value| self.put(field, value));
        }
    }

    fn look(&mut self, rules: &[Rule], before: &str, object: &Value, keeps_unknown: bool) {
        for (name, value) in object.as_object().into_iter().flatten() {
            if value.is_null() || *value == json!({}) || *value == json!([]) {
                continue;
            }
            let path = if before.is_empty() { name.clone() } else { format!("{before}.{name}") };
            let inside = format!("{path}.");
            match rules.iter().find(|rule| rule.0 == path) {
                Some((_, how, fields)) => self.say(how, fields, value),
                None if rules.iter().any(|rule| rule.0.starts_with(&inside)) => {
                    self.look(rules, &path, value, false);
                }
                None if keeps_unknown => self.label(name, value),
                None => {}
            }
        }
    }

    fn say(&mut self, how: &str, fields: &[&str], value: &Value) {
        let milliseconds = |value: &Value| value.as_f64().map(|value| json!((value * 1000.0).round() as i64));
        let said = match how {
            "text" => Some(word(value)),
            "json" | "headers" => Some(value.clone()),
            "ms" => milliseconds(value),
            "rate" => value
                .as_f64()
                .map(|rate| 1.0 / rate)
                .map(|count| if count.is_finite() { json!(count) } else { json!(0) }),
            "address" => value.as_str().filter(|text| text.parse::<IpAddr>().is_ok()).map(|text| json!(text)),
            "frames" => value.as_array().map(|list| frames(list)),
            _ => None,
        };
        for field in fields {
            let said = match (*field, &said) {
                ("url.scheme", Some(Value::String(scheme))) => {
                    Some(json!(scheme.strip_suffix(':').unwrap_or(scheme)))
                }
                (_, said) => said.clone(),
            };
            // One that is written with escapes is told in the document alone.
            if let (&"service.name", Some(Value::String(name))) = (field, &said)
                && !value.to_string().contains('\\')
            {
                self.service.clone_from(name);
            }
            said.into_iter().for_each(|said| self.put(field, said));
        }
        let members = || value.as_object().into_iter().flatten();
        match how {
            "labels" => members().for_each(|(key, value)| self.label(key, value)),
            "headers" => {
                for (name, value) in members().filter(|(name, _)| name.eq_ignore_ascii_case("user-agent")) {
                    _ = name;
                    let first = value.as_array().and_then(|all| all.first()).unwrap_or(value);
                    self.put("user_agent.original", word(first));
                }
            }
            "links" => {
                let id = |link: &Value, name: &str| json!({ "id": link[name].as_str().unwrap_or_default() });
                let links = value.as_array().into_iter().flatten().filter(|link| link.is_object());
                let links =
                    links.map(|link| json!({ "trace": id(link, "trace_id"), "span": id(link, "span_id") }));
                self.put("span.links", links.collect());
            }
            "exception" => {
                let mut all = Vec::new();
                exception(value, None, 16, &mut all);
                self.put("error.exception", all.into());
            }
            "samples" => {
                for (name, sample) in members().filter(|(name, _)| is_field(name)) {
                    if sample["value"].is_number() {
                        self.put(name, sample["value"].clone());
                    } else if sample.get("values").is_some() {
                        self.put(name, sample.clone());
                    }
                }
            }
            "time" => match value.as_f64() {
                // A number may have been written with an exponent.
                Some(micros) => {
                    let micros = value.as_u64().unwrap_or(micros.max(0.0) as u64);
                    if micros > 0 {
                        self.time = json!({ "time": micros.saturating_mul(1000) });
                    }
                }
                None => {
                    let text = value.as_str().unwrap_or_default();
                    self.time = nanoseconds(text).map_or(value.clone(), |time| json!({ "time": time }));
                }
            },
            _ => {}
        }
    }

    fn label(&mut self, key: &str, value: &Value) {
        let key = key.replace(['.', '*', '"'], "_");
        let key = if key.trim_ascii().is_empty() { format!("_{key}") } else { key };
        match value {
            Value::Null => {}
            Value::Number(_) => drop(self.numbers.insert(key, value.clone())),
            value => drop(self.texts.insert(key, word(value))),
        }
    }

    /// All of it as objects within objects. What others are within is their `value`.
    fn document(self) -> Value {
        let mut document = json!({});
        for (field, value) in &self.fields {
            let inside = format!("{field}.");
            let is_one = self.fields.keys().any(|other| other.starts_with(&inside));
            let path = if is_one { format!("{field}.value") } else { field.clone() };
            if is_one
                && self.fields.keys().any(|other| *other == path || other.starts_with(&format!("{path}.")))
            {
                continue;
            }
            let mut place = &mut document;
            for name in path.split('.') {
                place = place.as_object_mut().unwrap().entry(name).or_insert_with(|| json!({}));
            }
            *place = value.clone();
        }
        for (name, labels) in [("labels", self.texts), ("numeric_labels", self.numbers)] {
            if !labels.is_empty() {
                document[name] = labels.into_iter().collect::<Map<_, _>>().into();
            }
        }
        document
    }
}

/// Whether a metric can be a field beside those that a document has anyway.
fn is_field(name: &str) -> bool {
    let own = ["@timestamp", "data_stream", "labels", "numeric_labels", "metricset", "processor"];
    let first = name.split('.').next().unwrap_or_default();
    name.split('.').all(|part| !part.trim_ascii().is_empty())
        && !own.contains(&first)
        && !first.starts_with('_')
}

/// A value as a text.
fn word(value: &Value) -> Value {
    match value {
        Value::String(text) => json!(text),
        other => json!(other.to_string()),
    }
}

fn frames(list: &[Value]) -> Value {
    let frame = |frame: &Value| {
        let mut said = Map::new();
        for name in ["abs_path", "filename", "classname", "function", "module", "library_frame", "vars"] {
            frame
                .get(name)
                .filter(|value| !value.is_null())
                .map(|value| said.insert(name.into(), value.clone()));
        }
        for (object, names) in [
            ("line", [("lineno", "number"), ("colno", "column"), ("context_line", "context")].as_slice()),
            ("context", &[("pre_context", "pre"), ("post_context", "post")]),
        ] {
            let present = |(from, to): &(&str, &str)| Some(((*to).to_owned(), frame.get(from)?.clone()));
            let inner: Map<_, _> =
                names.iter().filter_map(present).filter(|(_, value)| !value.is_null()).collect();
            if !inner.is_empty() {
                said.insert(object.into(), inner.into());
            }
        }
        Value::Object(said)
    };
    list.iter().filter(|one| one.is_object()).map(frame).collect()
}

/// An exception and its causes, each of which says whose cause it is unless that is the one before.
fn exception(from: &Value, parent: Option<usize>, depth: usize, all: &mut Vec<Value>) {
    let place = all.len();
    let mut said = Map::new();
    for name in ["type", "message", "module", "handled", "attributes"] {
        from.get(name).filter(|value| !value.is_null()).map(|value| said.insert(name.into(), value.clone()));
    }
    if let Some(code) = from.get("code").filter(|code| !code.is_null()) {
        said.insert("code".into(), if code.is_number() { word(code) } else { code.clone() });
    }
    if let Some(list) = from["stacktrace"].as_array() {
        said.insert("stacktrace".into(), frames(list));
    }
    if let Some(parent) = parent.filter(|parent| parent + 1 != place) {
        said.insert("parent".into(), json!(parent));
    }
    all.push(said.into());
    if depth > 0 {
        for cause in from["cause"].as_array().into_iter().flatten().filter(|cause| cause.is_object()) {
            exception(cause, Some(place), depth - 1, all);
        }
    }
}
