//! Elastic's agents, each in a program that does the same (`tests/apm`).

use std::path::{Path, PathBuf};
use std::process::Command;
use tidegate_tests::skip;

/// A tool that a variable names; nothing, said loudly, where it does not.
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    if found.is_none() {
        skip(name, &format!("{name} is not set; `make test` sets it"));
    }
    found
}

pub(crate) fn python(url: &str) -> Option<Command> {
    let mut agent = Command::new(tool("TIDEGATE_TEST_PYTHON")?);
    agent.arg(folder().join("python.py")).arg(url);
    Some(agent)
}

pub(crate) fn node(url: &str) -> Option<Command> {
    let modules = tool("TIDEGATE_TEST_NODE_MODULES")?;
    let mut agent = Command::new("node");
    agent.arg(folder().join("node.cjs")).env("NODE_MODULES", modules).arg(url);
    Some(agent)
}

pub(crate) fn go(url: &str) -> Option<Command> {
    let mut agent = Command::new(tool("TIDEGATE_TEST_APM_GO")?);
    agent.arg(url);
    Some(agent)
}

/// Java's agent is configured outside the program, which gets the address besides.
pub(crate) fn java(url: &str) -> Option<Command> {
    let jars = tool("TIDEGATE_TEST_APM_JAVA")?;
    let classes = format!("{}:{}", jars.display(), jars.join("apm-agent-api.jar").display());
    let mut agent = Command::new("java");
    agent.args(java_options(url)).arg(format!("-javaagent:{}", jars.join("elastic-apm-agent.jar").display()));
    agent.args(["-cp", &classes, "App", url]);
    Some(agent)
}

/// All that there are, by the names that their services end with.
#[allow(dead_code, reason = "not every file that has agents wants all of them")]
pub(crate) fn all(url: &str) -> Vec<(&'static str, Command)> {
    let all = [("python", python(url)), ("nodejs", node(url)), ("go", go(url)), ("java", java(url))];
    all.into_iter().filter_map(|(name, command)| Some((name, command?))).collect()
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("apm")
}

fn java_options(url: &str) -> Vec<String> {
    [
        ("server_url", url),
        ("service_name", "shop-java"),
        ("service_version", "1.2.3"),
        ("environment", "test"),
        ("global_labels", "team=core"),
        ("api_request_time", "1s"),
        ("metrics_interval", "1s"),
        ("cloud_provider", "NONE"),
        ("secret_token", "secret"),
        ("span_compression_enabled", "false"),
        ("log_level", "ERROR"),
    ]
    .iter()
    .map(|(name, value)| format!("-Delastic.apm.{name}={value}"))
    .collect()
}
