//! The connection to one receiver.

use super::divide::Refusals;
use super::message::Form;
use super::protocol::RoutedProtocol;
use crate::delivery::EndpointError;
use crate::delivery::compressor::Compressor;
use crate::egress_budget::{BudgetError, EgressBudget};
use crate::endpoints::Peer as _;
use crate::otlp::Settings;
use crate::otlp::answer::OtlpAnswer;
use crate::otlp::outbound_request::write_prefix;
use crate::otlp::peer::{self as connection, PREFIX, Request};
use crate::spread::{MemberPeer, RequestHead, Verdict};
use bytes::Bytes;
use hyper::Uri;
use std::sync::Arc;
use tidegate_journal::{Encoding, Tenant};
use tokio::sync::Mutex;

/// One request is in flight at a time, and another one while it is given up.
const IN_FLIGHT: usize = 2;

/// A receiver, as requests are sent to it.
pub(super) struct Peer {
    connection: connection::Peer,
    /// All receivers take turns to compress: the state of an encoder is larger than most requests.
    compressor: Arc<Mutex<Compressor>>,
    pub(super) refusals: Refusals,
}

/// The settings of a connection to one receiver.
pub(super) fn settings(settings: Settings) -> Settings {
    Settings { endpoints: Vec::new(), max_in_flight: IN_FLIGHT, ..settings }
}

/// The memory of the connection to a receiver, in bytes.
pub(super) fn bytes(settings: &Settings, is_secure: bool) -> usize {
    let scheme = if is_secure { "https" } else { "http" };
    let uri = Uri::builder().scheme(scheme).authority("member:1").path_and_query("/").build();
    let endpoints = vec![uri.unwrap_or_default()];
    connection::bytes(&Settings { endpoints, max_in_flight: IN_FLIGHT, ..settings.clone() })
}

impl Peer {
    /// The receiver at the URL `target`, without connections yet.
    ///
    /// # Errors
    /// When the URL or the TLS settings cannot be used.
    pub(super) fn new(target: &str, protocol: &RoutedProtocol) -> Result<Peer, EndpointError> {
        let uri: Uri = target.parse().map_err(|_| EndpointError::Address(Uri::default()))?;
        let connection = connection::Peer::new(&uri, &protocol.settings)?;
        Ok(Peer { connection, compressor: Arc::clone(&protocol.compressor), refusals: Refusals::default() })
    }

    /// A request as it goes out.
    ///
    /// # Errors
    /// When there is no memory to compress it now.
    async fn compressed(&self, room: &EgressBudget, raw: &[u8]) -> Result<(Bytes, Encoding), BudgetError> {
        let mut compressor = self.compressor.lock().await;
        // The usual ratio of telemetry; the window grows where it is exceeded.
        let mut frame = room.window(PREFIX + raw.len() / 4).await?;
        frame.skip(PREFIX);
        compressor.encode(raw, &mut frame).await?;
        let encoding = compressor.encoding();
        write_prefix(&mut frame, encoding);
        Ok((Bytes::from_owner(frame), encoding))
    }

    async fn is_compressed(&self) -> bool {
        self.compressor.lock().await.encoding() != Encoding::Identity
    }
}

impl Peer {
    /// Sends [`PREFIX`] bytes and a message once.
    pub(super) async fn post(&self, room: &EgressBudget, head: &RequestHead<Form>, raw: Bytes) -> OtlpAnswer {
        let (mut frame, mut encoding) = (raw, Encoding::Identity);
        if self.is_compressed().await {
            let message = frame.get(PREFIX..).unwrap_or_default();
            // Where memory is short, it goes as it is.
            if let Ok(compressed) = Box::pin(self.compressed(room, message)).await {
                (frame, encoding) = compressed;
            }
        }
        let Form(signal) = head.form;
        let request = Request { signal, tenant: head.tenant, encoding, frame };
        match Box::pin(self.connection.send(&request)).await {
            // Somebody has to mend the credentials; what was acknowledged waits for that. One tenant's may not hold up the others.
            OtlpAnswer::Refused { reason, .. }
                if reason.status.is_unauthenticated() && head.tenant == Tenant::NONE =>
            {
                OtlpAnswer::Later { reason, after: None }
            }
            answer => answer,
        }
    }
}

impl MemberPeer<RoutedProtocol> for Peer {
    async fn send(&self, room: &EgressBudget, head: &RequestHead<Form>, raw: Bytes) -> Verdict {
        self.deliver(room, head, raw).await
    }

    fn hang_up(&self) {
        self.connection.hang_up();
    }

    async fn close(&self) {
        self.connection.close().await;
    }
}
