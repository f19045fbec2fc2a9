//! The configuration as it is in effect, written as YAML.

use crate::model::Config;
use crate::setting::{PlainValue, Setting};

/// Every setting with the value in effect, as YAML that reads back as the same configuration, but for
/// secrets: those are masked. What is not set and follows from elsewhere is left out.
pub fn effective(config: &Config) -> String {
    let mut out = String::new();
    write(&config.plain(), 0, &mut out);
    out
}

/// The secrets of a configuration, as they are written: whole URLs where a query may be a key.
pub fn secrets(config: &Config) -> Vec<String> {
    let mut secrets = Vec::new();
    Setting::secrets(config, &mut secrets);
    secrets.sort_unstable();
    secrets.dedup();
    secrets
}

fn write(plain: &PlainValue, indent: usize, out: &mut String) {
    let entries = match plain {
        PlainValue::Map(entries) => entries,
        PlainValue::Sequence(items) => return items.iter().for_each(|item| write_item(item, indent, out)),
        _ => return,
    };
    for (key, value) in entries {
        if let Some(line) = line(key, value) {
            out.push_str(&format!("{:indent$}{line}\n", ""));
            write(value, indent + 2, out);
        }
    }
}

/// An entry of a list.
fn write_item(item: &PlainValue, indent: usize, out: &mut String) {
    match item {
        PlainValue::Text(text) => {
            out.push_str(&format!("{:indent$}- {}\n", "", quoted(&text.replace('$', "$$"))));
        }
        item => {
            let mut lines = String::new();
            write(item, indent + 2, &mut lines);
            // The first line of the group stands behind the dash.
            let lines = lines.get(indent + 2..).unwrap_or("{}\n");
            out.push_str(&format!("{:indent$}- {lines}", ""));
        }
    }
}

/// The line on which a setting starts; none when it is not set.
pub(crate) fn line(key: &str, value: &PlainValue) -> Option<String> {
    let key = word(key);
    match value {
        PlainValue::Unset => None,
        PlainValue::Text(text) => Some(format!("{key}: {}", word(&text.replace('$', "$$")))),
        PlainValue::List(items) => {
            let items: Vec<String> = items.iter().map(|item| inner(&item.replace('$', "$$"))).collect();
            Some(format!("{key}: [{}]", items.join(", ")))
        }
        PlainValue::Sequence(items) if items.is_empty() => Some(format!("{key}: []")),
        PlainValue::Sequence(_) => Some(format!("{key}:")),
        PlainValue::Map(entries) if entries.is_empty() => Some(format!("{key}: {{}}")),
        PlainValue::Map(_) => Some(format!("{key}:")),
    }
}

/// A scalar, quoted unless it is certain to be read as text without.
fn word(text: &str) -> String {
    let certain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:$[]".contains(&byte);
    let plain = text.bytes().all(certain)
        && text.starts_with(|first: char| first.is_ascii_alphanumeric() || "./".contains(first))
        && !text.ends_with(':')
        && !matches!(text, "null" | "Null" | "NULL");
    if plain { text.to_owned() } else { quoted(text) }
}

/// A scalar inside of a list, where brackets mean something.
fn inner(text: &str) -> String {
    if text.contains(['[', ']']) { quoted(text) } else { word(text) }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() || !c.is_ascii() => out.push_str(&format!("\\U{:08x}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whatever the effective configuration masks is listed, wherever it stands.
    #[test]
    fn lists_every_secret() {
        let text = r#"
sources: { fluent_forward: { address: "127.0.0.1:24224", shared_key: secret-a, users: { u: secret-b } } }
sinks:
  rw: { type: prometheus_remote_write, url: "http://127.0.0.1:1/w?key=secret-c", headers: { x-key: secret-d } }
  es: { type: elasticsearch, endpoints: ["http://127.0.0.1:2"], user: u, password: secret-e }
  hec: { type: splunk_hec, endpoints: ["http://127.0.0.1:3"], token: secret-f }
"#;
        let config = crate::parse("t.yaml", text, &|_| None).unwrap();
        let listed = secrets(&config).join("\n");
        let shown = effective(&config);
        for secret in ["secret-a", "secret-b", "secret-c", "secret-d", "secret-e", "secret-f"] {
            assert!(listed.contains(secret) && !shown.contains(secret), "{secret}: {listed}");
        }
        assert_eq!(secrets(&Config::default()), [""; 0]);
    }
}
