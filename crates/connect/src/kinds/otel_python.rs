//! The OpenTelemetry SDK for Python.

use super::otel::{FILE, SPECIFIED, environment};
use crate::instructions::Snippet;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "otel-python",
    aliases: &["python", "opentelemetry-python", "otel", "otlp", "opentelemetry"],
    title: "program in Python with OpenTelemetry",
    snippets: |gateway| {
        let has_ca_file = gateway.http().ca_file().is_some();
        Ok(vec![
            environment(gateway, SPECIFIED).with(has_ca_file.then(|| {
                "Where REQUESTS_CA_BUNDLE or CURL_CA_BUNDLE is set, the exporter trusts that instead: unset it for the program."
                    .to_owned()
            })),
            Snippet::commands(
                "install the SDK, and run the program with it",
                format!(
                    "pip install opentelemetry-distro opentelemetry-exporter-otlp-proto-http\n\
                     opentelemetry-bootstrap -a install\n\
                     . ./{FILE}\n\
                     opentelemetry-instrument python app.py\n"
                ),
            ),
        ])
    },
};
