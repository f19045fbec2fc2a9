//! The OpenTelemetry SDK for Go.

use super::otel::{FILE, SPECIFIED, environment};
use crate::instructions::Snippet;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "otel-go",
    aliases: &["go", "golang", "opentelemetry-go"],
    title: "program in Go with OpenTelemetry",
    snippets: |gateway| {
        let run = format!(
            "go get go.opentelemetry.io/otel/sdk go.opentelemetry.io/contrib/exporters/autoexport\n\
             . ./{FILE}\n\
             go run .\n"
        );
        Ok(vec![
            environment(gateway, SPECIFIED),
            Snippet::commands("add the SDK, and run the program", run).with([
                "The program makes its exporters with `autoexport.NewSpanExporter(ctx)`, `NewMetricReader` and `NewLogExporter`: they read the \
                 variables. So do `otlptracehttp.New(ctx)` and its like."
                    .to_owned(),
            ]),
        ])
    },
};
