//! One request: connect if need be, stream the batch, read the answer.

use super::Worker;
use super::answer::Answer;
use super::peer::Route;
use crate::class::Signal;
use crate::config::Protocol;
use crate::encode::otlp;
use crate::http::{Body, Connection, Deadline, Failure, read_response};
use crate::ring::{Batch, Counted, EventOutput, Ring};
use crate::sender::Scopes;
use std::time::Instant;

impl Worker {
    /// Sends the batch, as often as a connection that went stale in the meantime makes necessary: once more.
    pub(super) fn request(&mut self, signal: Signal) -> Answer {
        let shared = std::sync::Arc::clone(&self.shared);
        let patience =
            Deadline { until: Instant::now() + shared.peer.timeout, called_off: &shared.work.called_off };
        let route = shared.peer.route(signal);
        loop {
            let slot = self.connections.get_mut(route.connection);
            let reused = slot.and_then(Option::take).filter(|connection| connection.used);
            let stale = reused.is_some();
            match self.exchange(route, reused, patience) {
                Ok(()) => return Answer::of(shared.protocol, &self.response),
                // The peer closed it while it was idle. Nothing was answered, and nothing read.
                Err(Failure::Broken) if stale => shared.ring.counters.retry(),
                Err(_) => return Answer::Later(None),
            }
        }
    }

    /// One request over the given connection or a new one, which is kept if it can be used again.
    fn exchange(
        &mut self,
        route: &Route,
        reused: Option<Connection>,
        patience: Deadline<'_>,
    ) -> Result<(), Failure> {
        let mut connection = match reused {
            Some(connection) => connection,
            None => {
                self.shared.ring.counters.connection();
                Connection::open(
                    &route.endpoint,
                    &mut self.names,
                    #[cfg(feature = "tls")]
                    self.tls.as_ref(),
                    patience,
                )?
            }
        };
        let written = match self.write(route, &mut connection, patience) {
            Ok(()) => true,
            // It may have answered in the middle, to say why it hung up.
            Err(Failure::Broken) => false,
            Err(failure) => return Err(failure),
        };
        let answered = read_response(&mut connection, &mut self.response, patience);
        if !written {
            self.response.reusable = false;
            answered.map_err(|_| Failure::Broken)?;
            // A 2xx to half a request is none.
            return if self.response.status < 300 { Err(Failure::Broken) } else { Ok(()) };
        }
        answered?;
        if self.response.reusable {
            connection.used = true;
            if let Some(slot) = self.connections.get_mut(route.connection) {
                *slot = Some(connection);
            }
        }
        Ok(())
    }

    fn write(
        &mut self,
        route: &Route,
        connection: &mut Connection,
        patience: Deadline<'_>,
    ) -> Result<(), Failure> {
        let (ring, batch) = (&self.shared.ring, &self.batch);
        let preamble = self.shared.adopted().unwrap_or(&self.preamble);
        let mut body = Body::begin(connection, patience, &mut self.buffers, &route.head, route.gzip)?;
        match self.shared.protocol {
            Protocol::ElasticApm => {
                body.put(preamble)?;
                ring.walk(batch, |_, _| true, |piece| body.put(piece))?;
            }
            Protocol::Otlp => {
                write_otlp(&mut body, ring, batch, &self.shared.scopes, preamble, &mut self.sums)?;
            }
        }
        ring.counters.wire(body.end()?);
        Ok(())
    }
}

/// A resource with its scopes, each with its events. All lengths are known before the first byte is written,
/// because each event has its own in front.
fn write_otlp(
    body: &mut Body<'_>,
    ring: &Ring,
    batch: &Batch,
    scopes: &Scopes,
    resource: &[u8],
    sums: &mut [usize],
) -> Result<(), Failure> {
    sums.fill(0);
    let mut add = |scope: u16, len: usize| {
        if let Some(sum) = sums.get_mut(usize::from(scope)) {
            *sum += len;
        }
        false
    };
    ring.walk(batch, &mut add, |_| Ok::<_, Failure>(()))?;
    let used = || sums.iter().copied().enumerate().filter(|(_, sum)| *sum > 0);
    let heads =
        used().map(|(scope, sum)| otlp::scope_head(&mut Counted::default(), scopes.encoded(scope), sum));
    let mut out = Fallible { body, result: Ok(()) };
    otlp::request_head(&mut out, resource, heads.sum());
    for (scope, sum) in used() {
        otlp::scope_head(&mut out, scopes.encoded(scope), sum);
        out.result?;
        ring.walk(batch, |other, _| usize::from(other) == scope, |piece| out.body.put(piece))?;
    }
    out.result
}

/// A body for encoders, which know of no failures: after one, nothing more is written.
struct Fallible<'a, 'b> {
    body: &'a mut Body<'b>,
    result: Result<(), Failure>,
}

impl EventOutput for Fallible<'_, '_> {
    fn put(&mut self, bytes: &[u8]) {
        self.result = self.result.and_then(|()| self.body.put(bytes));
    }
}
