//! The OpenTelemetry SDK for Python.

use super::otel::{FILE, SPECIFIED, environment};
use crate::instructions::Snippet;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "otel-python",
    aliases: &["python", "opentelemetry-python", "otel", "otlp", "opentelemetry"],
    title: "program in Python with OpenTelemetry",
    snippets: |gateway| {
        Ok(vec![
            environment(gateway, SPECIFIED),
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
