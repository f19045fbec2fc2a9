//! The OpenTelemetry SDK for Rust.

use super::otel::{FILE, SYSTEM_TRUST, environment};
use crate::instructions::Snippet;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "otel-rust",
    aliases: &["rust", "opentelemetry-rust"],
    title: "program in Rust with OpenTelemetry",
    snippets: |gateway| {
        let run = format!(
            "cargo add opentelemetry opentelemetry_sdk\n\
             cargo add opentelemetry-otlp --features http-proto,reqwest-blocking-client,reqwest-rustls\n\
             . ./{FILE}\n\
             cargo run\n"
        );
        Ok(vec![
            environment(gateway, SYSTEM_TRUST),
            Snippet::commands("add the SDK, and run the program", run).with([
                "The program makes its exporters with `opentelemetry_otlp::SpanExporter::builder().with_http().build()`, `MetricExporter` and \
                 `LogExporter`: they read the variables."
                    .to_owned(),
            ]),
        ])
    },
};
