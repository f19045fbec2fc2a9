//! Connections of a source that has listeners of its own, as the acceptor serves them.

use crate::gateway::acceptor::Serve;
use std::sync::Arc;
use tidegate_http1::{ConnectionEnd, Reply};
use tidegate_log_intake::{ConnectionService, Shutdown};
use tidegate_tls::{AcceptError, TlsAcceptor};
use tokio::net::TcpStream;

/// Without TLS.
pub(super) struct SourceConnections(Arc<dyn ConnectionService>);

/// With TLS.
pub(super) struct SourceTlsConnections {
    connections: SourceConnections,
    acceptor: Arc<TlsAcceptor>,
    shutdown: Shutdown,
}

impl SourceConnections {
    pub(super) fn new(service: Arc<dyn ConnectionService>) -> SourceConnections {
        SourceConnections(service)
    }
}

impl Serve for SourceConnections {
    async fn serve(&self, _worker: usize, stream: TcpStream) -> ConnectionEnd {
        // Unix sockets have none.
        let peer = stream.peer_addr().ok();
        self.0.serve(Box::new(stream), peer).await;
        ConnectionEnd::ByClient
    }

    /// Such protocols have no answers that are known before anything was agreed on.
    fn one_too_many(&self) -> Option<Reply> {
        None
    }

    fn count_turned_away(&self) {
        self.0.count_refused();
    }

    async fn turn_away(&self, _worker: usize, _stream: TcpStream) {}
}

impl SourceTlsConnections {
    pub(super) fn new(
        connections: SourceConnections,
        acceptor: Arc<TlsAcceptor>,
        shutdown: Shutdown,
    ) -> SourceTlsConnections {
        SourceTlsConnections { connections, acceptor, shutdown }
    }

    async fn serve_tls(&self, stream: TcpStream) -> ConnectionEnd {
        let peer = stream.peer_addr().ok();
        let entered = tokio::select! {
            biased;
            entered = Box::pin(self.acceptor.accept(stream)) => entered,
            () = self.shutdown.begun() => return ConnectionEnd::Shutdown,
        };
        match entered {
            Ok(stream) => {
                self.connections.0.serve(Box::new(stream), peer).await;
                ConnectionEnd::ByClient
            }
            Err(failure) => {
                self.tell(&failure, peer);
                ConnectionEnd::Lost
            }
        }
    }

    fn tell(&self, failure: &AcceptError, peer: Option<std::net::SocketAddr>) {
        let (reason, failures) = self.acceptor.note(failure);
        let Some(failures) = failures else { return };
        let error = match failure {
            AcceptError::Lost(error) => Some(error.to_string()),
            _ => None,
        };
        tracing::warn!(
            peer = peer.map(|peer| peer.ip().to_string()),
            reason = reason.name(),
            error,
            failures,
            "TLS handshakes fail, this is the last of them: {}",
            reason.advice()
        );
    }
}

impl Serve for SourceTlsConnections {
    async fn serve(&self, _worker: usize, stream: TcpStream) -> ConnectionEnd {
        Box::pin(self.serve_tls(stream)).await
    }

    fn one_too_many(&self) -> Option<Reply> {
        None
    }

    fn count_turned_away(&self) {
        self.connections.count_turned_away();
    }

    async fn turn_away(&self, _worker: usize, stream: TcpStream) {
        tidegate_tls::reject(stream).await;
    }
}
