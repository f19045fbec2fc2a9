//! Messages as log records.

use crate::message::Message;
use crate::rfc5424::{Parameter, parameters, unescaped};
use std::cell::RefCell;
use std::net::SocketAddr;
use tidegate_wire::otlp::logs::{Attributes, Body, LogRecord, LogsEncoder};
use tidegate_wire::output::Full;

/// The most bytes of a record's attributes. Structured data beyond it is left out.
const MOST_ATTRIBUTES: usize = 64 << 10;
/// The most bytes of a resource.
const MOST_RESOURCE: usize = 2 << 10;
/// The most bytes of a parameter's name or value without its escapes.
const MOST_TEXT: usize = 32 << 10;
/// Heap of a thread, in bytes.
pub(crate) const THREAD_BYTES: usize = MOST_ATTRIBUTES + 2 * MOST_RESOURCE + 2 * MOST_TEXT;

/// The scope of the records.
const SCOPE: &str = "tidegate.syslog";
const SEVERITIES: [(u8, &str); 8] = [
    (21, "emerg"),
    (19, "alert"),
    (18, "crit"),
    (17, "err"),
    (13, "warning"),
    (10, "notice"),
    (9, "info"),
    (5, "debug"),
];

/// Where a message came from.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    /// The other end; none of a Unix socket.
    pub(crate) peer: Option<SocketAddr>,
    /// `tcp`, `udp` or `unix`.
    pub(crate) transport: &'static str,
    /// When it arrived.
    pub(crate) now_ns: u64,
}

#[derive(Default)]
struct Scratch {
    attributes: Vec<u8>,
    resource: Vec<u8>,
    /// The resource of the open group.
    current: Vec<u8>,
    name: String,
    value: Vec<u8>,
}

thread_local! {
    // Encoding does not wait, so one of each thread is enough.
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// Encodes messages into one batch. Its resources are those of the hosts and programs.
pub(crate) struct RecordEncoder<'a> {
    encoder: LogsEncoder<'a>,
    has_group: bool,
}

impl<'a> RecordEncoder<'a> {
    pub(crate) fn new(out: &'a mut [u8]) -> RecordEncoder<'a> {
        RecordEncoder { encoder: LogsEncoder::new(out), has_group: false }
    }

    pub(crate) fn items(&self) -> u32 {
        self.encoder.items()
    }

    pub(crate) fn finish(self) -> tidegate_wire::otlp::logs::EncodedLogs {
        self.encoder.finish()
    }

    /// Adds a message.
    ///
    /// # Errors
    /// When there is no room for it in this batch.
    pub(crate) fn add(&mut self, message: &Message<'_>, origin: Origin) -> Result<(), Full> {
        SCRATCH.with_borrow_mut(|scratch| self.add_with(scratch, message, origin))
    }

    fn add_with(&mut self, scratch: &mut Scratch, message: &Message<'_>, origin: Origin) -> Result<(), Full> {
        let Scratch { attributes, resource, current, name, value } = scratch;
        let mut of_resource = Attributes::new(resource, MOST_RESOURCE);
        // A longer text is no name of a host or a program.
        if !message.hostname.is_empty() {
            let _too_long = of_resource.text_lossy("host.name", message.hostname);
        }
        if !message.app_name.is_empty() {
            let _too_long = of_resource.text_lossy("service.name", message.app_name);
        }
        if !self.has_group || resource != current {
            self.encoder.resource(resource, SCOPE)?;
            self.has_group = true;
            std::mem::swap(resource, current);
        }
        let mut out = Attributes::new(attributes, MOST_ATTRIBUTES);
        // Only long texts do not fit: they are left out, and the message stays.
        let _too_long = header(&mut out, message, origin);
        for parameter in parameters(message.structured_data) {
            let _too_long = structured(&mut out, parameter, name, value);
        }
        let (severity, severity_text) =
            match message.severity.and_then(|code| SEVERITIES.get(usize::from(code))) {
                Some(known) => *known,
                None => (0, ""),
            };
        let lossy;
        let text = match std::str::from_utf8(message.text) {
            Ok(text) => text,
            Err(_) => {
                lossy = String::from_utf8_lossy(message.text);
                &*lossy
            }
        };
        let added = self.encoder.record(&LogRecord {
            time_ns: message.time_ns.unwrap_or(0),
            observed_ns: origin.now_ns,
            severity,
            severity_text,
            body: Body::Text(&[text.as_bytes()]),
            attributes: out.as_bytes(),
        });
        if added.is_err() && self.encoder.items() == 0 {
            self.has_group = false;
        }
        added
    }
}

fn header(out: &mut Attributes<'_>, message: &Message<'_>, origin: Origin) -> Result<(), Full> {
    if let Some(code) = message.facility {
        out.int("syslog.facility.code", code.into())?;
    }
    if let Some(code) = message.severity {
        out.int("syslog.severity.code", code.into())?;
    }
    if let Some(version) = message.version {
        out.int("syslog.version", version.into())?;
    }
    let number = std::str::from_utf8(message.proc_id).ok().and_then(|id| id.parse::<u32>().ok());
    match number {
        Some(number) => out.int("process.pid", number.into())?,
        None if message.proc_id.is_empty() => {}
        None => out.text_lossy("syslog.proc.id", message.proc_id)?,
    }
    if !message.msg_id.is_empty() {
        out.text_lossy("syslog.msg.id", message.msg_id)?;
    }
    out.text("network.transport", origin.transport)?;
    if let Some(peer) = origin.peer {
        let mut text = [0; 48];
        out.text("network.peer.address", shown(peer.ip().to_canonical(), &mut text))?;
        out.int("network.peer.port", peer.port().into())?;
    }
    Ok(())
}

/// An address as text, without an allocation.
fn shown(address: std::net::IpAddr, text: &mut [u8; 48]) -> &str {
    use std::io::Write as _;
    let mut rest = &mut text[..];
    let _fits = write!(rest, "{address}");
    let left = rest.len();
    let len = text.len() - left;
    text.get(..len).and_then(|text| std::str::from_utf8(text).ok()).unwrap_or_default()
}

/// `syslog.structured_data.ID.NAME`
fn structured(
    out: &mut Attributes<'_>,
    parameter: Parameter<'_>,
    name: &mut String,
    value: &mut Vec<u8>,
) -> Result<(), Full> {
    if parameter.value.len() > MOST_TEXT || parameter.id.len() + parameter.name.len() > MOST_TEXT {
        return Err(Full);
    }
    name.clear();
    name.push_str("syslog.structured_data.");
    for part in [parameter.id, parameter.name] {
        // They are ASCII, or it would be no structured data.
        let part = std::str::from_utf8(part).unwrap_or_default();
        if !part.is_empty() {
            if !name.ends_with('.') {
                name.push('.');
            }
            name.push_str(part);
        }
    }
    value.clear();
    unescaped(parameter.value, |piece| value.extend_from_slice(piece));
    out.text_lossy(name, value)
}
