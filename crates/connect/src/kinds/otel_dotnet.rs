//! The OpenTelemetry SDK for .NET.

use super::otel::{FILE, SYSTEM_TRUST, environment};
use crate::instructions::Snippet;
use crate::kind::Kind;

pub(crate) const KIND: Kind = Kind {
    name: "otel-dotnet",
    aliases: &["dotnet", "csharp", "net", "opentelemetry-dotnet"],
    title: "program in .NET with OpenTelemetry",
    snippets: |gateway| {
        let run = format!(
            "dotnet add package OpenTelemetry.Extensions.Hosting\n\
             dotnet add package OpenTelemetry.Exporter.OpenTelemetryProtocol\n\
             . ./{FILE}\n\
             dotnet run\n"
        );
        Ok(vec![
            environment(gateway, SYSTEM_TRUST),
            Snippet::commands("add the SDK, and run the program", run).with([
                "The program calls `builder.Services.AddOpenTelemetry().UseOtlpExporter()`, which reads the variables.".to_owned(),
            ]),
        ])
    },
};
