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

const STOPPING: &str = "the gateway is stopping";

/// Orders that wait.
#[derive(Default)]
pub(crate) struct ConfigurationOrders(Mutex<OrderQueue>);

#[derive(Default)]
struct OrderQueue {
    pending: VecDeque<PendingOrder>,
    /// Nobody follows orders any more.
    is_closed: bool,
}

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
                let mut queue = self.queue();
                // Whoever has left does not need a report.
                queue.pending.retain(|pending| !pending.reply.is_closed());
                if queue.is_closed {
                    return Err(STOPPING.to_owned());
                }
                if queue.pending.len() >= MOST {
                    return Err(BUSY.to_owned());
                }
                queue.pending.push_back(PendingOrder { order, reply });
            }
            signal_hook::low_level::raise(WAKE)
                .map_err(|error| format!("waking the thread that reads configurations: {error}"))?;
            report.await.map_err(|_| STOPPING.to_owned())
        })
    }

    /// The order that was given first, if any waits whose report is still awaited.
    pub(crate) fn next(&self) -> Option<PendingOrder> {
        let mut queue = self.queue();
        while let Some(order) = queue.pending.pop_front() {
            if !order.reply.is_closed() {
                return Some(order);
            }
        }
        None
    }

    /// Takes no more orders, and tells those who wait for a report that there will be none.
    pub(crate) fn close(&self) {
        let mut queue = self.queue();
        queue.is_closed = true;
        queue.pending.clear();
    }

    fn queue(&self) -> MutexGuard<'_, OrderQueue> {
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

#[cfg(test)]
mod tests {
    //! Promise: every order gets a report, or words that there will be none.

    use super::*;
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    #[test]
    fn orders_end_with_the_gateway() {
        // The signal would end the test; a handler makes it harmless, as in the program.
        let _signals = signal_hook::iterator::Signals::new([WAKE]).unwrap();
        let orders = ConfigurationOrders::default();
        let mut context = Context::from_waker(Waker::noop());
        let mut waiting = pin!(orders.give(ConfigurationOrder::Check));
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        {
            let mut left = orders.give(ConfigurationOrder::Reload);
            assert!(left.as_mut().poll(&mut context).is_pending());
        }
        let pending = orders.next().unwrap();
        assert_eq!(pending.order, ConfigurationOrder::Check);
        assert!(orders.next().is_none(), "whoever has left needs no report");
        pending.report(ConfigurationReport { ok: true, ..ConfigurationReport::default() });
        assert!(matches!(waiting.as_mut().poll(&mut context), Poll::Ready(Ok(report)) if report.ok));

        let mut many: Vec<_> = (0..=MOST).map(|_| orders.give(ConfigurationOrder::Check)).collect();
        let polled: Vec<_> = many.iter_mut().map(|order| order.as_mut().poll(&mut context)).collect();
        assert!(polled[..MOST].iter().all(Poll::is_pending));
        assert_eq!(polled[MOST], Poll::Ready(Err(BUSY.to_owned())));
        orders.close();
        for order in many.iter_mut().take(MOST) {
            assert_eq!(order.as_mut().poll(&mut context), Poll::Ready(Err(STOPPING.to_owned())));
        }
        let mut late = orders.give(ConfigurationOrder::Check);
        assert_eq!(late.as_mut().poll(&mut context), Poll::Ready(Err(STOPPING.to_owned())));
    }
}
