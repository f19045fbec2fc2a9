//! Program in Node.js with Elastic's APM agent.

use super::elastic_apm::{FILE, environment};
use crate::instructions::Snippet;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "elastic-apm-node",
    aliases: &["apm-node", "elastic-apm-nodejs", "elastic-apm-js"],
    title: "program in Node.js with Elastic's APM agent",
    snippets: |gateway| {
        Ok(vec![
            environment(gateway, true),
            Snippet::commands(
                "install the agent, and run the program with it",
                format!("npm install elastic-apm-node\n. ./{FILE}\nnode -r elastic-apm-node/start.js app.js\n"),
            ),
        ])
    },
};
