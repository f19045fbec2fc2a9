//! Serialises expensive decodes on each thread.
//!
//! Decompressing some megabytes takes milliseconds, in which nothing else happens on the thread. The runtime polls the
//! sockets only after dozens of tasks: if each of them decompressed megabytes, a request of a few bytes would wait for
//! all. So one such body is decoded at a time, and the thread polls its sockets before each.

use std::sync::Arc;
use tokio::sync::Semaphore;

thread_local! {
    static MAX_TURNS: Arc<Semaphore> = Arc::new(Semaphore::new(1));
}

/// The turn of one body. Dropping it, on whatever thread, passes the turn on.
#[derive(Debug)]
pub(crate) struct DecodeTurn(Arc<Semaphore>);

impl DecodeTurn {
    /// Waits for this body's turn, in order of arrival, and until other ready tasks and sockets were polled.
    pub(crate) async fn acquire() -> DecodeTurn {
        let turns = MAX_TURNS.with(Arc::clone);
        let waits = match turns.try_acquire() {
            Ok(permit) => {
                permit.forget();
                false
            }
            Err(_) => true,
        };
        // The semaphore is never closed.
        if waits && let Ok(permit) = turns.acquire().await {
            permit.forget();
        }
        let turn = DecodeTurn(turns);
        // Tasks that yield are woken after the sockets have been looked at.
        tokio::task::yield_now().await;
        turn
    }
}

impl Drop for DecodeTurn {
    fn drop(&mut self) {
        self.0.add_permits(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::task::Poll;

    /// One at a time, in order; and what was ready before runs before each of them.
    #[tokio::test]
    async fn ready_tasks_run_between_two_turns() {
        let seen = RefCell::new(Vec::new());
        let heavy = |name| {
            let seen = &seen;
            async move {
                let _turn = DecodeTurn::acquire().await;
                seen.borrow_mut().push(name);
            }
        };
        let light = async {
            for _ in 0..3 {
                seen.borrow_mut().push("light");
                tokio::task::yield_now().await;
            }
        };
        tokio::join!(heavy("first"), heavy("second"), heavy("third"), light);
        let seen = seen.into_inner();
        let order: Vec<_> = seen.iter().filter(|name| **name != "light").copied().collect();
        assert_eq!(order, ["first", "second", "third"]);
        let between = seen.windows(2).filter(|pair| !pair.contains(&"light")).count();
        assert!(between <= 1, "{seen:?}");
    }

    #[tokio::test]
    async fn an_abandoned_wait_takes_no_turn() {
        let turn = DecodeTurn::acquire().await;
        {
            let mut waiting = std::pin::pin!(DecodeTurn::acquire());
            let polled = std::future::poll_fn(|context| Poll::Ready(waiting.as_mut().poll(context))).await;
            assert!(polled.is_pending());
        }
        drop(turn);
        drop(DecodeTurn::acquire().await);
        assert_eq!(MAX_TURNS.with(|turns| turns.available_permits()), 1);
    }
}
