//! The receiver `loki`: the address that HTTP clients push to.

use super::Listener;
use crate::import::group::FileReader;
use crate::import::otelcol::{Collector, settings};
use crate::yaml::Entry;

impl Collector<'_> {
    pub(super) fn loki_receiver(&mut self, entry: &Entry, reader: &mut FileReader<'_, '_>) {
        let Some(mut group) = settings(entry, "receivers", reader) else { return };
        let mut listener: Option<Listener> = None;
        if let Some(mut protocols) = group.group("protocols", reader) {
            if let Some(mut http) = protocols.group("http", reader) {
                listener = self.listener(&mut http, "127.0.0.1:3500", reader);
                http.finish(reader);
            }
            protocols.lacks(&[("grpc", "left out: Loki's push is received over HTTP")], reader);
            protocols.finish(reader);
        }
        group.lacks(
            &[("use_incoming_timestamp", "not needed: records have the time that was pushed")],
            reader,
        );
        group.finish(reader);
        match listener {
            Some(listener) if self.out.group("listen").get("http").is_none() => {
                self.listen(vec![("http", listener)]);
            }
            _ => {
                let message = "tidegate receives Loki's push at `listen.http`, path `/loki/api/v1/push`: change the clients' URL";
                reader.note(&entry.key_at, &format!("receivers.{}", entry.key), message);
            }
        }
    }
}
