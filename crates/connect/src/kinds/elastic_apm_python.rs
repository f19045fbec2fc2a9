//! Program in Python with Elastic's APM agent.

use super::elastic_apm::{FILE, environment};
use crate::instructions::Snippet;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "elastic-apm-python",
    aliases: &["elastic-apm", "apm", "apm-python"],
    title: "program in Python with Elastic's APM agent",
    snippets: |gateway| {
        Ok(vec![
            environment(gateway, true),
            Snippet::commands(
                "install the agent, and run the program with it",
                format!("pip install elastic-apm\n. ./{FILE}\nelasticapm-run python app.py\n"),
            ),
        ])
    },
};
