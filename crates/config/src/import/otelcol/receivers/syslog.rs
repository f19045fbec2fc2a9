//! The receiver `syslog`: listeners of the source `syslog`.

use super::address;
use crate::import::document::Map;
use crate::import::group::{FileReader, Group, Lacking};
use crate::import::otelcol::{Collector, settings};
use crate::import::sinks::name_of;
use crate::yaml::Entry;

const LACKING: &Lacking = &[
    ("allow_skip_pri_header", "not needed: messages without a priority are read"),
    ("on_error", "not needed: the text of a message that is not syslog is kept"),
    ("non_transparent_framing_trailer", "not needed: messages end with a line feed or a NUL"),
    ("max_octets", "not needed: `max_message` bounds messages"),
    ("operators", "left out: a pipeline can do the same with `edit` or `drop`"),
    ("attributes", "left out: set attributes with `edit` in a pipeline"),
    ("resource", "left out: set attributes with `edit` in a pipeline"),
    ("retry_on_failure", "not needed: reading waits while messages cannot be stored"),
    ("storage", "not needed: the journal is on disk, in the folder `data`"),
];

const LISTENER_LACKING: &Lacking = &[
    ("max_log_size", "left out: messages are at most 64 KiB"),
    ("max_batch_size", "not needed: batches are part of the memory plan"),
    ("add_attributes", "left out: the addresses of connections are no attributes"),
    ("one_log_per_packet", "not needed: a datagram is one message"),
    ("encoding", "left out: text is UTF-8"),
    ("multiline", "left out: each message is one record"),
    ("preserve_leading_whitespaces", "not needed"),
    ("preserve_trailing_whitespaces", "not needed"),
    ("async", "not needed: threads are part of the memory plan"),
];

impl Collector<'_> {
    pub(super) fn syslog_receiver(&mut self, entry: &Entry, reader: &mut FileReader<'_, '_>) {
        let Some(mut group) = settings(entry, "receivers", reader) else { return };
        let mut common = Map::default();
        common.set_some("format", group.text("protocol", reader).map(|text| text.value));
        common.set_some("timezone", group.text("location", reader).map(|text| text.value));
        let counts = group.flag("enable_octet_counting", reader) == Some(true);
        let name = name_of(entry.key.split_once('/').map_or(entry.key.as_str(), |(_, name)| name));
        for transport in ["tcp", "udp"] {
            let Some(mut listener) = group.group(transport, reader) else { continue };
            let mut map = self.syslog_listener(&mut listener, transport, reader);
            map.append(&common);
            if counts && transport == "tcp" {
                map.set("framing", "octet_counting");
            }
            listener.lacks(LISTENER_LACKING, reader);
            listener.finish(reader);
            let listeners = self.out.group("sources").group("syslog").group("listeners");
            let name =
                if listeners.get(&name).is_some() { format!("{name}-{transport}") } else { name.clone() };
            listeners.set(&name, map);
        }
        group.lacks(LACKING, reader);
        group.finish(reader);
    }

    fn syslog_listener(
        &mut self,
        listener: &mut Group<'_>,
        transport: &str,
        reader: &mut FileReader<'_, '_>,
    ) -> Map {
        let mut map = Map::default();
        let Some(endpoint) = listener.text("listen_address", reader) else {
            reader.error(&listener.at, "there is no `listen_address`", "add `listen_address: HOST:PORT`");
            return map;
        };
        let at = address(&endpoint, &listener.path_of("listen_address"), reader);
        let tls = self.server_tls(listener, reader);
        let scheme = if tls.is_empty() { transport } else { "tls" };
        if tls.is_empty() && !at.starts_with("127.") && !at.starts_with("[::1]") {
            let comment = "As in the Collector: other machines can connect, and nothing is encrypted.";
            self.out.group("listen").set_with("insecure", "true", Some(comment));
        }
        map.set("address", format!("{scheme}://{at}"));
        map.set_group("tls", tls);
        map
    }
}
