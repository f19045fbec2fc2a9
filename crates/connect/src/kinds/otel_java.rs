//! The OpenTelemetry agent for Java.

use super::otel::{FILE, SPECIFIED, environment};
use crate::instructions::Snippet;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "otel-java",
    aliases: &["java", "kotlin", "scala", "opentelemetry-java"],
    title: "program on the JVM with OpenTelemetry",
    snippets: |gateway| {
        let run = format!(
            "curl -fLO https://github.com/open-telemetry/opentelemetry-java-instrumentation/releases/latest/download/opentelemetry-javaagent.jar\n\
             . ./{FILE}\n\
             java -javaagent:./opentelemetry-javaagent.jar -jar app.jar\n"
        );
        Ok(vec![
            environment(gateway, SPECIFIED),
            Snippet::commands("fetch the agent, and run the program with it", run),
        ])
    },
};
