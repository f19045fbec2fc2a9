//! The answers, as APM Server gives them.

use super::refused_lines::RefusedLines;
use super::request_head::Events;
use tidegate_admission::intake::content_type;
use tidegate_http1::{Content, Reply};

/// The headers that let a web page read an answer.
pub(crate) const SHARED: &[(&str, &str)] = &[("Access-Control-Allow-Origin", "*")];

/// The headers that let a web page send.
const PERMITTED: &[(&str, &str)] = &[
    ("Access-Control-Allow-Origin", "*"),
    ("Access-Control-Allow-Headers", "Content-Type, Content-Encoding, Accept, If-None-Match"),
    ("Access-Control-Allow-Methods", "POST, GET, OPTIONS"),
    ("Access-Control-Expose-Headers", "Etag"),
    ("Access-Control-Max-Age", "3600"),
];

/// All was taken.
pub(super) fn accepted(form: Events, items: u32) -> Reply {
    let reply = Reply::new(202);
    let reply = if form.verbose {
        let around = &["{\n  \"accepted\": ", "\n}\n"];
        reply.content_type(content_type(form.json)).sentence(around, items as usize)
    } else {
        reply
    };
    form.marked(reply)
}

/// Some lines were refused. The end of the connection comes with it, as agents know it.
pub(super) fn reported(form: Events, report: &RefusedLines) -> Reply {
    let reply = Reply::new(400).content_type(content_type(form.json)).content(report.json()).closing();
    form.marked(reply)
}

/// The requested resource.
pub(super) fn found(status: u16, json: bool, text: &'static str) -> Reply {
    Reply::new(status).content_type(content_type(json)).content(Content::Fixed(text.as_bytes()))
}

/// The answer to a browser that asks what it may send.
pub(super) fn preflight() -> Reply {
    Reply::new(200).headers(PERMITTED)
}

/// The server information: APM Server of this version, for agents. Built once for the life of the process.
pub(super) fn root(version: &str) -> &'static str {
    let text = format!(
        "{{\n  \"build_date\": \"2024-01-01T00:00:00Z\",\n  \"build_sha\": \"tidegate\",\n  \
         \"publish_ready\": true,\n  \"version\": \"{version}\"\n}}\n"
    );
    Box::leak(text.into_boxed_str())
}
