//! The service: its pipelines, extensions and own telemetry.

use super::components::Section;
use super::graph::{Graph, ServicePipeline};
use super::{Collector, settings, type_of};
use crate::error::quote;
use crate::import::group::{FileReader, Group};
use crate::model::Signal;

impl Collector<'_> {
    /// Converts everything that the service uses.
    pub(super) fn service(&mut self, mut service: Group<'_>, reader: &mut FileReader<'_, '_>) {
        self.extensions(&mut service, reader);
        if let Some(telemetry) = service.group("telemetry", reader) {
            own_telemetry(telemetry, reader);
        }
        let path = service.path_of("pipelines");
        let mut pipelines = Vec::new();
        if let Some(mut group) = service.group("pipelines", reader) {
            for entry in group.take_all() {
                let at = format!("{path}.{}", entry.key);
                let Some(signal) = signal_of(type_of(&entry.key)) else {
                    let message = format!("there is no pipeline for {}", quote(type_of(&entry.key)));
                    reader.error(&entry.key_at, message, "write `traces`, `metrics`, `logs` or `profiles`");
                    continue;
                };
                let Some(mut settings) = reader.group(&entry.node, &at) else { continue };
                let pipeline = ServicePipeline {
                    name: entry.key.clone(),
                    at: entry.key_at.clone(),
                    signal,
                    receivers: settings.texts("receivers", reader),
                    processors: settings.texts("processors", reader),
                    exporters: settings.texts("exporters", reader),
                };
                settings.finish(reader);
                pipelines.push(pipeline);
            }
        }
        service.finish(reader);
        if pipelines.is_empty() {
            reader.error(
                &(0..0),
                "the service has no pipelines",
                "is this the configuration of a Collector?",
            );
            return;
        }
        let graph = Graph::build(self, pipelines, reader);
        self.sinks(&graph, reader);
        self.components.note_unused(reader);
    }

    /// Extensions that the service starts; those for authentication are looked at with the exporters that use them.
    fn extensions(&mut self, service: &mut Group<'_>, reader: &mut FileReader<'_, '_>) {
        for name in service.texts("extensions", reader) {
            // These are looked at with the exporters that use them; if none does, that is noted.
            if matches!(type_of(&name.value), "bearertokenauth" | "basicauth" | "headers_setter")
                && self.components.has(Section::Extensions, &name.value)
            {
                continue;
            }
            let Some(entry) = self.components.find(Section::Extensions, &name.value) else {
                self.components.refuse(Section::Extensions, &name, reader);
                continue;
            };
            let message = match type_of(&entry.key) {
                "health_check" | "healthcheckv2" => {
                    "not needed: `/health` and `/ready` are served at `listen.admin`"
                }
                "pprof" | "zpages" => "not needed: `/status` and `/metrics` are served at `listen.admin`",
                "file_storage" | "db_storage" | "redis_storage" => {
                    "not needed: the journal is on disk, in the folder `data`"
                }
                "memory_limiter" => {
                    self.memory(entry, "extensions", reader);
                    continue;
                }
                "memory_ballast" => "not needed: `memory` bounds the whole process",
                _ => {
                    self.components.unknown(Section::Extensions, entry, reader);
                    continue;
                }
            };
            if let Some(mut group) = settings(entry, "extensions", reader) {
                group.take_all();
            }
            reader.note(&entry.key_at, &format!("extensions.{}", entry.key), message);
        }
    }
}

fn own_telemetry(mut telemetry: Group<'_>, reader: &mut FileReader<'_, '_>) {
    telemetry.lacks(
        &[
            ("metrics", "not needed: `/metrics` is served at `listen.admin`"),
            ("logs", "not needed: `--log` and `--log-format` of `tidegate run` say what is logged"),
            ("traces", "left out: tidegate does not trace itself"),
            ("resource", "left out: tidegate's own metrics have no resource"),
        ],
        reader,
    );
    telemetry.finish(reader);
}

fn signal_of(name: &str) -> Option<Signal> {
    Some(match name {
        "traces" => Signal::Traces,
        "metrics" => Signal::Metrics,
        "logs" => Signal::Logs,
        "profiles" => Signal::Profiles,
        _ => return None,
    })
}
