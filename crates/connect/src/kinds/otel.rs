//! The environment of OpenTelemetry SDKs.

use crate::endpoint::{Abilities, Endpoint};
use crate::gateway::Gateway;
use crate::instructions::{Language, Snippet};
use crate::quote;

/// What an SDK reads from `OTEL_EXPORTER_OTLP_*`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sdk {
    /// The variable with the certificate authority.
    pub(crate) ca_file: &'static str,
    /// The variables with the sender's certificate and key, if there are any.
    pub(crate) client_certificate: Option<(&'static str, &'static str)>,
    /// Whether to say which signals to export: not needed where the program decides.
    pub(crate) names_exporters: bool,
}

/// The names of the specification.
pub(crate) const SPECIFIED: Sdk = Sdk {
    ca_file: "OTEL_EXPORTER_OTLP_CERTIFICATE",
    client_certificate: Some(("OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "OTEL_EXPORTER_OTLP_CLIENT_KEY")),
    names_exporters: true,
};

/// Those of SDKs that trust what the system's library for TLS trusts, and whose programs choose their exporters.
pub(crate) const SYSTEM_TRUST: Sdk =
    Sdk { ca_file: "SSL_CERT_FILE", client_certificate: None, names_exporters: false };

/// The file with the variables.
pub(crate) const FILE: &str = "otel.env";

/// The variables, as lines for a shell.
pub(crate) fn environment(gateway: Gateway<'_>, sdk: Sdk) -> Snippet {
    let endpoint = gateway.http();
    let mut lines = vec![export("OTEL_SERVICE_NAME", "your-service")];
    if sdk.names_exporters {
        for signal in ["TRACES", "METRICS", "LOGS"] {
            lines.push(export(&format!("OTEL_{signal}_EXPORTER"), "otlp"));
        }
    }
    lines.push(export("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint.url("")));
    lines.push(export("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf"));
    lines.extend(headers(&endpoint));
    if let Some(file) = endpoint.ca_file() {
        lines.push(export(sdk.ca_file, file));
    }
    let abilities = Abilities { client_certificate: sdk.client_certificate.is_some(), ..Abilities::ALL };
    let mut notes = endpoint.notes(abilities);
    if let (Some((cert_file, key_file)), Some((certificate, key))) =
        (endpoint.client_certificate(), sdk.client_certificate)
    {
        lines.push(export(certificate, cert_file));
        lines.push(export(key, key_file));
    }
    if sdk.ca_file == SYSTEM_TRUST.ca_file && endpoint.ca_file().is_some() {
        notes.push(
            "SSL_CERT_FILE replaces the system's authorities for the whole program: where it connects to other servers, append theirs to the \
             file, or add the authority to those of the system instead."
                .to_owned(),
        );
    }
    notes.extend(gateway.otlp_notes());
    let grpc = gateway.grpc();
    notes.push(format!(
        "Over gRPC: OTEL_EXPORTER_OTLP_PROTOCOL=grpc and OTEL_EXPORTER_OTLP_ENDPOINT={}.",
        grpc.url("")
    ));
    Snippet::file("environment of the program", FILE, Language::Shell, lines.concat()).with(notes)
}

/// A line that sets and exports a variable.
pub(crate) fn export(name: &str, value: &str) -> String {
    format!("export {name}={}\n", quote::shell(value))
}

/// The credential and the tenant.
fn headers(endpoint: &Endpoint<'_>) -> Option<String> {
    let mut headers = Vec::new();
    if endpoint.asks_for_token() {
        headers.push("Authorization=Bearer%20$TIDEGATE_TOKEN".to_owned());
    }
    if let Some((name, tenant)) = endpoint.tenant_header() {
        headers.push(format!("{}={}", quote::baggage(name), quote::baggage(tenant)));
    }
    let headers = headers.join(",");
    // Nothing in it is special between these quotes but the variable.
    (!headers.is_empty()).then(|| format!("export OTEL_EXPORTER_OTLP_HEADERS=\"{headers}\"\n"))
}
