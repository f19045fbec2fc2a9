//! The environment of Elastic APM agents.

use super::otel::export;
use crate::endpoint::Abilities;
use crate::gateway::Gateway;
use crate::instructions::{Language, Snippet};

/// The file with the variables.
pub(crate) const FILE: &str = "elastic-apm.env";

/// The variables, as lines for a shell. Not all agents have a setting for the authority.
pub(crate) fn environment(gateway: Gateway<'_>, has_ca_file: bool) -> Snippet {
    let endpoint = gateway.apm();
    let mut lines = vec![
        export("ELASTIC_APM_SERVICE_NAME", "your-service"),
        export("ELASTIC_APM_SERVER_URL", &endpoint.url("")),
    ];
    if endpoint.asks_for_token() {
        lines.push("export ELASTIC_APM_SECRET_TOKEN=\"$TIDEGATE_TOKEN\"\n".to_owned());
    }
    if let Some(file) = endpoint.ca_file().filter(|_| has_ca_file) {
        lines.push(export("ELASTIC_APM_SERVER_CA_CERT_FILE", file));
    }
    let abilities =
        Abilities { tenant_header: false, client_certificate: false, ca_file: has_ca_file, ..Abilities::ALL };
    Snippet::file("environment of the program", FILE, Language::Shell, lines.concat())
        .with(endpoint.notes(abilities))
        .with(gateway.apm_notes())
}
