//! The OpenTelemetry SDK for Node.js.

use super::otel::{FILE, SPECIFIED, environment};
use crate::instructions::Snippet;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "otel-js",
    aliases: &["js", "node", "nodejs", "javascript", "typescript", "otel-node", "opentelemetry-js"],
    title: "program in Node.js with OpenTelemetry",
    snippets: |gateway| {
        let run = format!(
            "npm install @opentelemetry/api @opentelemetry/auto-instrumentations-node\n\
             . ./{FILE}\n\
             node --require @opentelemetry/auto-instrumentations-node/register app.js\n"
        );
        Ok(vec![
            environment(gateway, SPECIFIED),
            Snippet::commands("install the SDK, and run the program with it", run),
        ])
    },
};
