//! The source behind its listeners.

use crate::connection::Connection;
use crate::handshake::Authentication;
use crate::records::RecordEncoder;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tidegate_log_intake::{ConnectionService, LogIntake, Serving, Stream, TaskGroup};

/// How connections are served.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The longest message, as sent and decompressed, in bytes.
    pub max_message: usize,
    /// The longest record as OTLP, in bytes.
    pub max_record: usize,
    /// The members of records that become the body: the first that is there.
    pub body_keys: Vec<String>,
    /// The clients that may send. Default: everybody.
    pub authentication: Option<Authentication>,
    /// How long a peer may take for the rest of a message, and for reading an acknowledgement.
    pub timeout: Duration,
}

impl Settings {
    /// The memory that the source takes beside payload, in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        RecordEncoder::bytes(self.max_record)
    }
}

/// Counts what connections do.
#[derive(Debug, Default)]
pub struct ForwardMeters {
    messages: AtomicU64,
    acknowledgements: AtomicU64,
    malformed_messages: AtomicU64,
    failed_handshakes: AtomicU64,
}

impl ForwardMeters {
    /// Messages whose records are durable.
    pub fn messages(&self) -> u64 {
        self.messages.load(Relaxed)
    }

    /// Acknowledgements that were sent.
    pub fn acknowledgements(&self) -> u64 {
        self.acknowledgements.load(Relaxed)
    }

    /// Messages that could not be read, or were too long: their connections were closed.
    pub fn malformed_messages(&self) -> u64 {
        self.malformed_messages.load(Relaxed)
    }

    /// Clients that had another key or password.
    pub fn failed_handshakes(&self) -> u64 {
        self.failed_handshakes.load(Relaxed)
    }

    pub(crate) fn count_messages(&self, messages: u64) {
        self.messages.fetch_add(messages, Relaxed);
    }

    pub(crate) fn count_acknowledgements(&self, acknowledgements: u64) {
        self.acknowledgements.fetch_add(acknowledgements, Relaxed);
    }

    /// How many there are now.
    pub(crate) fn count_malformed(&self) -> u64 {
        self.malformed_messages.fetch_add(1, Relaxed) + 1
    }

    /// How many there are now.
    pub(crate) fn count_failed_handshake(&self) -> u64 {
        self.failed_handshakes.fetch_add(1, Relaxed) + 1
    }
}

/// Serves connections that the gateway accepts. Clones are the same source.
#[derive(Clone)]
pub struct ForwardService(Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) settings: Settings,
    pub(crate) intake: LogIntake,
    pub(crate) meters: Arc<ForwardMeters>,
    /// Encoding waits for nothing, so the connections share its memory.
    encoder: Mutex<RecordEncoder>,
    tasks: TaskGroup,
}

impl ForwardService {
    /// A source that gives its records to `intake`. Connections are counted in `tasks`.
    #[must_use]
    pub fn new(
        settings: Settings,
        intake: LogIntake,
        meters: Arc<ForwardMeters>,
        tasks: TaskGroup,
    ) -> ForwardService {
        let encoder = Mutex::new(RecordEncoder::new(settings.body_keys.clone(), settings.max_record));
        ForwardService(Arc::new(Shared { settings, intake, meters, encoder, tasks }))
    }
}

impl Shared {
    /// The encoder, for as long as nothing is waited for.
    pub(crate) fn encoder(&self) -> MutexGuard<'_, RecordEncoder> {
        self.encoder.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ConnectionService for ForwardService {
    fn serve(&self, stream: Box<dyn Stream>, peer: Option<SocketAddr>) -> Serving {
        let shared = Arc::clone(&self.0);
        let counted = shared.tasks.count();
        Box::pin(async move {
            let _counted = counted;
            Connection::new(shared, stream, peer).serve().await;
        })
    }

    fn count_refused(&self) {
        self.0.intake.refuse_connection();
    }
}
