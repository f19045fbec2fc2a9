//! Program on the JVM with Elastic's APM agent.

use super::elastic_apm::{FILE, environment};
use crate::instructions::Snippet;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "elastic-apm-java",
    aliases: &["apm-java"],
    title: "program on the JVM with Elastic's APM agent",
    snippets: |gateway| {
        Ok(vec![
            environment(gateway, false),
            Snippet::commands(
                "install the agent, and run the program with it",
                format!("mvn org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy \\\n  \
                     -Dartifact=co.elastic.apm:elastic-apm-agent:1.52.0 -DoutputDirectory=. -Dmdep.stripVersion=true\n\
                     . ./{FILE}\n\
                     java -javaagent:./elastic-apm-agent.jar -jar app.jar\n"),
            ).with(["The agent trusts what the JVM trusts: `-Djavax.net.ssl.trustStore=FILE` names another store.".to_owned()]),
        ])
    },
};
