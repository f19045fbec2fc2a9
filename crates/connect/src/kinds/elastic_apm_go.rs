//! Program in Go with Elastic's APM agent.

use super::elastic_apm::{FILE, environment};
use crate::instructions::Snippet;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "elastic-apm-go",
    aliases: &["apm-go"],
    title: "program in Go with Elastic's APM agent",
    snippets: |gateway| {
        Ok(vec![
            environment(gateway, true),
            Snippet::commands(
                "install the agent, and run the program with it",
                format!("go get go.elastic.co/apm/v2\n. ./{FILE}\ngo run .\n"),
            ).with(["The program uses `apm.DefaultTracer()`, which reads the variables.".to_owned()]),
        ])
    },
};
