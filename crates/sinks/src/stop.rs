//! The order to stop, which every wait of a sink listens to.

use tokio::sync::watch;

/// Gives the order. Dropping it gives it too.
#[derive(Debug)]
pub struct StopSender(watch::Sender<bool>);

/// Hears the order. Clones hear the same.
#[derive(Debug, Clone)]
pub struct StopSignal(watch::Receiver<bool>);

impl StopSender {
    /// An order that has not been given, and who hears it.
    pub fn new() -> (StopSender, StopSignal) {
        let (sender, receiver) = watch::channel(false);
        (StopSender(sender), StopSignal(receiver))
    }

    /// Gives the order.
    pub fn stop(&self) {
        self.0.send_replace(true);
    }
}

impl StopSignal {
    /// Whether the order was given.
    pub fn is_given(&self) -> bool {
        *self.0.borrow() || self.0.has_changed().is_err()
    }

    /// The outcome of `future`, or nothing when the order comes first.
    pub(crate) async fn or<F: Future>(&self, future: F) -> Option<F::Output> {
        let mut receiver = self.0.clone();
        tokio::select! {
            biased;
            _given = receiver.wait_for(|given| *given) => None,
            output = future => Some(output),
        }
    }
}
