//! The first line of each request: who sends.

use super::json::Object;
use crate::record::{Attributes, Value};
use crate::ring::EventOutput;

/// `attributes` are those of the resource; what has no place of its own becomes a global label.
pub(crate) fn metadata<O: EventOutput>(out: &mut O, attributes: &dyn Attributes) {
    let mut outer = Object::open(out);
    let mut object = outer.object("metadata");
    let mut service = object.object("service");
    let name = service.key("name");
    name.put(b"\"");
    let mut named = false;
    find(attributes, "service.name", &mut |value| {
        for char in value.chars().take(1024) {
            // The characters that the server's `^[a-zA-Z0-9 _-]+$` allows.
            let taken = char.is_ascii_alphanumeric() || matches!(char, ' ' | '_' | '-');
            name.put(&[if taken { char as u8 } else { b'_' }]);
            named = true;
        }
    });
    if !named {
        name.put(b"unknown");
    }
    name.put(b"\"");
    for (key, from) in [
        ("version", "service.version"),
        ("environment", "deployment.environment.name"),
        ("environment", "deployment.environment"),
    ] {
        find(attributes, from, &mut |value| service.keyword_if(key, value));
    }
    find(attributes, "service.instance.id", &mut |value| {
        let mut node = service.object("node");
        node.keyword("configured_name", value);
        node.close();
    });
    let mut agent = service.object("agent");
    agent.text("name", "tidegate-sender");
    agent.text("version", env!("CARGO_PKG_VERSION"));
    agent.close();
    let mut language = service.object("language");
    language.text("name", "rust");
    language.close();
    service.close();
    let mut process = object.object("process");
    process.whole("pid", u64::from(std::process::id()));
    process.close();
    find(attributes, "host.name", &mut |value| {
        let mut system = object.object("system");
        system.keyword("configured_hostname", value);
        system.close();
    });
    object.labels("labels", &UnmappedAttributes(attributes));
    object.close();
    outer.close();
    out.put(b"\n");
}

const PLACED: [&str; 7] = [
    "service.name",
    "service.version",
    "service.instance.id",
    "deployment.environment.name",
    "deployment.environment",
    "host.name",
    "process.pid",
];

struct UnmappedAttributes<'a>(&'a dyn Attributes);

impl Attributes for UnmappedAttributes<'_> {
    fn each(&self, visit: &mut dyn FnMut(&str, Value<'_>)) {
        self.0.each(&mut |key, value| {
            if !PLACED.contains(&key) {
                visit(key, value);
            }
        });
    }
}

/// The first text of that name.
fn find(attributes: &dyn Attributes, wanted: &str, found: &mut dyn FnMut(&str)) {
    let mut first = true;
    attributes.each(&mut |key, value| {
        if let Value::Str(text) = value
            && key == wanted
            && std::mem::take(&mut first)
        {
            found(text);
        }
    });
}
