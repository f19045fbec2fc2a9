//! The output of Beats.

use crate::endpoint::Abilities;
use crate::gateway::Gateway;
use crate::instructions::{Language, Snippet};
use crate::quote::double;

/// The output of a Beat, whose configuration is `file`.
pub(crate) fn output(gateway: Gateway<'_>, name: &str, file: &'static str) -> Vec<Snippet> {
    let endpoint = gateway.elasticsearch();
    let mut yaml = format!("output.elasticsearch:\n  hosts: [{}]\n", double(&endpoint.url("")));
    // The gateway reports a version of its own, which is not that of the newest Beat.
    yaml += "  allow_older_versions: true\n";
    if endpoint.asks_for_token() {
        yaml += "  api_key: \"${TIDEGATE_API_KEY}\"\n";
    }
    if let Some((name, tenant)) = endpoint.tenant_header() {
        yaml += &format!("  headers:\n    {}: {}\n", double(name), double(tenant));
    }
    if let Some(file) = endpoint.ca_file() {
        yaml += &format!("  ssl.certificate_authorities: [{}]\n", double(file));
    }
    if let Some((cert_file, key_file)) = endpoint.client_certificate() {
        yaml += &format!("  ssl.certificate: {}\n  ssl.key: {}\n", double(cert_file), double(key_file));
    }
    let notes = [
        format!("Put it in the place of `output.elasticsearch` in {file}: a Beat has one output."),
        format!(
            "Templates, policies and pipelines go to the cluster itself: run `{name} setup` once against it. The gateway acknowledges those that \
             the Beat sends here, and forgets them."
        ),
    ];
    vec![
        Snippet::file("section of the configuration", file, Language::Yaml, yaml)
            .with(notes)
            .with(gateway.bulk_notes())
            .with(endpoint.notes(Abilities::API_KEY)),
    ]
}
