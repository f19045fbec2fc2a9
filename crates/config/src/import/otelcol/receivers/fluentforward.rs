//! The receiver `fluentforward`: the source `fluent_forward`.

use super::address;
use crate::import::group::FileReader;
use crate::import::otelcol::{Collector, settings};
use crate::yaml::Entry;

impl Collector<'_> {
    pub(super) fn fluent_forward_receiver(&mut self, entry: &Entry, reader: &mut FileReader<'_, '_>) {
        let Some(mut group) = settings(entry, "receivers", reader) else { return };
        let endpoint = group.text("endpoint", reader);
        let path = group.path_of("endpoint");
        group.finish(reader);
        let Some(endpoint) = endpoint else {
            reader.error(&entry.key_at, "there is no `endpoint`", "add `endpoint: HOST:PORT`");
            return;
        };
        let unix = endpoint.value.strip_prefix("unix://").or_else(|| endpoint.value.strip_prefix("unix:"));
        let setting = if unix.is_some() { "unix" } else { "address" };
        let source = self.out.group("sources").group("fluent_forward");
        if source.get(setting).is_some() {
            let message = "left out: tidegate has one address for the forward protocol, and another receiver has set it";
            return reader.note(&endpoint.at, &path, message);
        }
        if let Some(unix) = unix {
            return source.set("unix", unix);
        }
        let at = address(&endpoint, &path, reader);
        let is_public = !at.starts_with("127.") && !at.starts_with("[::1]");
        self.out.group("sources").group("fluent_forward").set("address", at);
        if is_public {
            let comment = "As in the Collector: other machines can connect, and nothing is encrypted.";
            self.out.group("listen").set_with("insecure", "true", Some(comment));
        }
    }
}
