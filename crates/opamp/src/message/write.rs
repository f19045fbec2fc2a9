//! What an agent gets.

use super::{agent_capability, server_capability};
use tidegate_wire::proto::write::Varint;

/// What this server can do.
const CAPABILITIES: u64 = server_capability::ACCEPTS_STATUS
    | server_capability::OFFERS_REMOTE_CONFIG
    | server_capability::ACCEPTS_EFFECTIVE_CONFIG;
/// The agent is asked for all that it has to say.
const REPORT_FULL_STATE: u64 = 1;

/// A configuration as agents get it: a field of the answer, made once for all of them.
#[derive(Debug)]
pub(crate) struct EncodedConfig {
    field: Vec<u8>,
    /// Of its body.
    pub(crate) hash: [u8; 16],
}

/// Where an agent is to send its own telemetry.
#[derive(Debug, Clone)]
pub(crate) struct TelemetryOffer {
    /// The URL of an OTLP receiver, without the path of a signal.
    pub(crate) url: String,
}

/// The kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ErrorKind {
    /// The message cannot be read.
    BadRequest,
    /// Try again after so many seconds.
    Unavailable(u64),
}

/// A message for an agent, being put together.
#[derive(Debug, Default)]
pub(crate) struct ServerToAgent(Vec<u8>);

impl EncodedConfig {
    pub(crate) fn new(body: &[u8], hash: [u8; 16]) -> EncodedConfig {
        let (mut file, mut entry, mut map, mut config) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        bytes(&mut file, 1, body);
        bytes(&mut file, 2, b"text/yaml");
        // The one file, whose name is empty as the specification has it for that.
        bytes(&mut entry, 1, b"");
        bytes(&mut entry, 2, &file);
        bytes(&mut map, 1, &entry);
        bytes(&mut config, 1, &map);
        bytes(&mut config, 2, &hash);
        let mut field = Vec::new();
        bytes(&mut field, 3, &config);
        EncodedConfig { field, hash }
    }

    /// Its bytes, to be put behind those of a [`ServerToAgent`].
    pub(crate) fn field(&self) -> &[u8] {
        &self.field
    }
}

impl ServerToAgent {
    /// A message for the agent with this uid.
    pub(crate) fn to(uid: &[u8]) -> ServerToAgent {
        let mut message = ServerToAgent::default();
        bytes(&mut message.0, 1, uid);
        message
    }

    /// What the server can do.
    pub(crate) fn capabilities(&mut self, offers_telemetry: bool) {
        let offers = if offers_telemetry { server_capability::OFFERS_CONNECTION_SETTINGS } else { 0 };
        varint(&mut self.0, 7, CAPABILITIES | offers);
    }

    pub(crate) fn report_full_state(&mut self) {
        varint(&mut self.0, 6, REPORT_FULL_STATE);
    }

    /// The agent is to take this uid.
    pub(crate) fn new_uid(&mut self, uid: &[u8]) {
        let mut identification = Vec::new();
        bytes(&mut identification, 1, uid);
        bytes(&mut self.0, 8, &identification);
    }

    /// The agent is to restart. Nothing else may be in the message.
    pub(crate) fn restart(&mut self) {
        // Its type is 0, which is not written.
        bytes(&mut self.0, 9, &[]);
    }

    /// Where the agent is to send what it can of its own telemetry.
    pub(crate) fn offer(&mut self, offer: &TelemetryOffer, capabilities: u64) {
        let mut settings = Vec::new();
        bytes(&mut settings, 1, offer.url.as_bytes());
        let signals = [
            (3, agent_capability::REPORTS_OWN_METRICS, "metrics"),
            (4, agent_capability::REPORTS_OWN_TRACES, "traces"),
            (5, agent_capability::REPORTS_OWN_LOGS, "logs"),
        ];
        for (field, capability, signal) in signals {
            if capabilities & capability != 0 {
                let mut destination = Vec::new();
                bytes(
                    &mut destination,
                    1,
                    format!("{}/v1/{signal}", offer.url.trim_end_matches('/')).as_bytes(),
                );
                bytes(&mut settings, field, &destination);
            }
        }
        bytes(&mut self.0, 4, &settings);
    }

    /// The message with an error, which stands alone.
    pub(crate) fn error(uid: &[u8], kind: ErrorKind, text: &str) -> ServerToAgent {
        let mut error = Vec::new();
        varint(&mut error, 1, if kind == ErrorKind::BadRequest { 1 } else { 2 });
        bytes(&mut error, 2, text.as_bytes());
        if let ErrorKind::Unavailable(seconds) = kind {
            let mut retry = Vec::new();
            varint(&mut retry, 1, seconds.saturating_mul(1_000_000_000));
            bytes(&mut error, 3, &retry);
        }
        let mut message = ServerToAgent::to(uid);
        bytes(&mut message.0, 2, &error);
        message
    }

    pub(crate) fn into_bytes(self) -> Vec<u8> {
        self.0
    }
}

pub(crate) fn bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
    out.extend_from_slice(Varint::new(u64::from(field) << 3 | 2).as_bytes());
    out.extend_from_slice(Varint::new(value.len() as u64).as_bytes());
    out.extend_from_slice(value);
}

pub(crate) fn varint(out: &mut Vec<u8>, field: u32, value: u64) {
    out.extend_from_slice(Varint::new(u64::from(field) << 3).as_bytes());
    out.extend_from_slice(Varint::new(value).as_bytes());
}
