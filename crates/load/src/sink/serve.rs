//! The sink's server: one task that accepts, and one per connection.

use std::net::{SocketAddr, TcpListener as Listener};
use std::sync::Arc;

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Behaviour, BehaviourChange, Check, State};
use crate::http::{RequestError, answer, read_body, read_head};
use crate::listener::{accept, hold, listen_again};
use crate::remote_write::{self, RequestTotals, Version};

/// The largest body, as sent and decompressed.
const MAX_BODY: usize = 256 << 20;

/// Serves until nobody is left to give orders.
pub(super) async fn serve(
    first: Listener,
    address: SocketAddr,
    mut orders: watch::Receiver<BehaviourChange>,
    state: Arc<State>,
) {
    let mut listener = TcpListener::from_std(first).ok();
    // While nobody listens the port stays taken, so that nobody else is given it.
    let mut held = None;
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            stream = accept(listener.as_ref()) => {
                let (orders, state) = (orders.clone(), Arc::clone(&state));
                connections.spawn(async move {
                    // However a connection ends, the peer has noticed.
                    let _ended = Box::pin(connection(stream, orders, state)).await;
                });
            }
            changed = orders.changed() => {
                if changed.is_err() {
                    return;
                }
                let order = *orders.borrow_and_update();
                if order.behaviour == Behaviour::Refuse {
                    listener = None;
                    held = held.or_else(|| hold(address).ok());
                    connections.shutdown().await;
                } else if listener.is_none() {
                    listener = Some(listen_again(held.take(), address).await);
                }
                state.record(|seen| seen.obeyed = order.number);
            }
            Some(_ended) = connections.join_next() => {}
        }
    }
}

async fn connection(
    mut stream: TcpStream,
    mut orders: watch::Receiver<BehaviourChange>,
    state: Arc<State>,
) -> Result<(), RequestError> {
    stream.set_nodelay(true)?;
    let mut rest = Vec::new();
    let mut body = Vec::new();
    while let Some(head) = read_head(&mut stream, &mut rest).await? {
        let behaviour = orders.borrow_and_update().behaviour;
        if behaviour == Behaviour::Stall {
            state.record(|seen| seen.arrivals.stalled += 1);
            let _ended = orders.changed().await;
            return Ok(());
        }
        let pace = match behaviour {
            Behaviour::Slow { bytes_per_second } => Some(bytes_per_second),
            _ => None,
        };
        body.clear();
        read_body(&mut stream, &mut rest, &head, &mut body, MAX_BODY, pace).await?;
        let version = Version::of_content_type(head.header("content-type").unwrap_or_default());
        let (status, headers) = verdict(behaviour, version, &body, &state);
        state.record(|seen| *seen.arrivals.requests.entry(status).or_default() += 1);
        answer(&mut stream, status, &headers).await?;
        if head.closes() {
            return Ok(());
        }
    }
    Ok(())
}

/// Records the body if the behaviour is to take it; the status and headers of the answer.
fn verdict(behaviour: Behaviour, version: Option<Version>, body: &[u8], state: &State) -> (u16, String) {
    let Some(version) = version else { return (415, String::new()) };
    match behaviour {
        Behaviour::Status { code, retry_after } => {
            let header = retry_after.map(|seconds| format!("Retry-After: {seconds}\r\n"));
            return (code, header.unwrap_or_default());
        }
        Behaviour::OnlyV1 if version == Version::V2 => return (415, String::new()),
        Behaviour::Oblivious if version == Version::V2 => return (204, String::new()),
        _ => {}
    }
    match take(version, body, state) {
        Ok(_) if behaviour == Behaviour::Oblivious => (204, String::new()),
        Ok(totals) => (204, written(&totals)),
        Err(()) => (400, written(&RequestTotals::default())),
    }
}

fn take(version: Version, body: &[u8], state: &State) -> Result<RequestTotals, ()> {
    let timeline = match state.check {
        Check::Nothing => {
            state.record(|seen| seen.arrivals.record(version, body.len(), &RequestTotals::default()));
            return Ok(RequestTotals::default());
        }
        Check::Timed(timeline) => Some(timeline),
        Check::Everything => None,
    };
    // All or nothing, as a receiver with transactions.
    let mut samples = Vec::new();
    let decoded = remote_write::decode(version, body, MAX_BODY, &mut |arrival| samples.push(arrival));
    let mut outcome = Err(());
    state.record(|seen| match decoded {
        Ok(totals) => {
            samples.into_iter().for_each(|sample| seen.arrivals.record_sample(sample, timeline));
            seen.arrivals.record(version, body.len(), &totals);
            outcome = Ok(totals);
        }
        Err(fault) => seen.arrivals.record_fault(fault.to_string()),
    });
    outcome
}

fn written(totals: &RequestTotals) -> String {
    let RequestTotals { samples, histograms, exemplars, .. } = totals;
    format!(
        "X-Prometheus-Remote-Write-Samples-Written: {samples}\r\n\
         X-Prometheus-Remote-Write-Histograms-Written: {histograms}\r\n\
         X-Prometheus-Remote-Write-Exemplars-Written: {exemplars}\r\n"
    )
}
