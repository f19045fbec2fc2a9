//! Orders about the configuration that the console gives to the thread that handles signals, which is the one that reads
//! configurations.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tidegate_console::{ConfigurationFuture, ConfigurationOrder, ConfigurationReport};
use tokio::sync::oneshot;

/// The signal that wakes that thread. Sent by somebody else it does nothing.
pub(crate) const WAKE: i32 = signal_hook::consts::SIGUSR1;

/// The most orders that wait.
const MOST: usize = 4;
const BUSY: &str = "other orders about the configuration are being worked on; try again";

/// Orders that wait.
#[derive(Default)]
pub(crate) struct ConfigurationOrders(Mutex<VecDeque<PendingOrder>>);

/// An order, and where its report is awaited.
pub(crate) struct PendingOrder {
    pub(crate) order: ConfigurationOrder,
    reply: oneshot::Sender<ConfigurationReport>,
}

impl ConfigurationOrders {
    /// Gives an order; the report comes when the thread has followed it.
    pub(crate) fn give(&self, order: ConfigurationOrder) -> ConfigurationFuture<'_> {
        Box::pin(async move {
            let (reply, report) = oneshot::channel();
            {
                let mut pending = self.pending();
                if pending.len() >= MOST {
                    return Err(BUSY.to_owned());
                }
                pending.push_back(PendingOrder { order, reply });
            }
            signal_hook::low_level::raise(WAKE)
                .map_err(|error| format!("waking the thread that reads configurations: {error}"))?;
            report.await.map_err(|_| "the gateway is stopping".to_owned())
        })
    }

    /// The order that was given first, if any waits whose report is still awaited.
    pub(crate) fn next(&self) -> Option<PendingOrder> {
        let mut pending = self.pending();
        while let Some(order) = pending.pop_front() {
            if !order.reply.is_closed() {
                return Some(order);
            }
        }
        None
    }

    fn pending(&self) -> MutexGuard<'_, VecDeque<PendingOrder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl PendingOrder {
    /// Gives the report to whoever waits.
    pub(crate) fn report(self, report: ConfigurationReport) {
        // Whoever has left does not need it.
        let _left = self.reply.send(report);
    }
}

impl fmt::Debug for ConfigurationOrders {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ConfigurationOrders")
    }
}
