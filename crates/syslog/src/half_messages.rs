//! Memory of the messages whose end has not come.
//!
//! All listeners of the source share a part of the memory for requests; the rest is left to whole messages. Who finds that part
//! in use waits for another half message to end, in order of arrival: with a buffer of its listener in hand, so for a time, and
//! beside few others. Further connections are closed.

use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::{Arena, Charge, ChargeError, Share};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Of the memory for requests, half messages take at most one part of so many.
const PART: u64 = 2;

/// The memory that half messages may take. Clones share it.
#[derive(Clone)]
pub struct HalfMessages {
    arena: Arena,
    free: Arc<Semaphore>,
    most: u32,
}

/// The beginning of a message, whose memory is charged.
pub(crate) struct HalfMessage {
    pub(crate) bytes: Box<[u8]>,
    /// How long the peer may still take for the rest.
    pub(crate) patience: Duration,
    _charge: Charge,
    _part: OwnedSemaphorePermit,
}

impl HalfMessages {
    /// Half messages whose memory is charged to `arena`.
    #[must_use]
    pub fn new(arena: Arena) -> HalfMessages {
        let most = u32::try_from(arena.ceiling(Share::Ingest) / PART).unwrap_or(u32::MAX);
        let free = Arc::new(Semaphore::new(usize::try_from(most).unwrap_or(Semaphore::MAX_PERMITS)));
        HalfMessages { arena, free, most }
    }

    /// Keeps `bytes`, as soon as there is memory for them.
    ///
    /// # Errors
    /// When there will never be.
    pub(crate) async fn keep(&self, bytes: &[u8], patience: Duration) -> Result<HalfMessage, ChargeError> {
        let len = bytes.len() as u64;
        let never = ChargeError::Never { wanted: len, most: u64::from(self.most) };
        let wanted = u32::try_from(len).ok().filter(|wanted| *wanted <= self.most).ok_or(never)?;
        let part = Arc::clone(&self.free).acquire_many_owned(wanted).await.map_err(|_| never)?;
        let charge = self.arena.charge(Share::Ingest, len).await?;
        Ok(HalfMessage { bytes: bytes.into(), patience, _charge: charge, _part: part })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::pin::pin;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    use std::task::{Context, Poll, Wake, Waker};
    use tidegate_arena::Floors;

    #[derive(Default)]
    struct Wakes(AtomicUsize);

    impl Wake for Wakes {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Relaxed);
        }
    }

    /// Without a timer: there is no runtime that has one. The wait ends with the memory that another gives back.
    #[test]
    fn a_wait_ends_with_the_memory_of_another() {
        let arena = Arena::new(1 << 20, Floors::NONE.with(Share::Ingest, 1 << 20), 1 << 20, 4, 4).unwrap();
        let half = HalfMessages::new(arena.clone());
        let wakes = Arc::new(Wakes::default());
        let waker = Waker::from(Arc::clone(&wakes));
        let mut context = Context::from_waker(&waker);

        let bytes = vec![0; 400 << 10];
        let first = pin!(half.keep(&bytes, Duration::ZERO));
        let Poll::Ready(Ok(first)) = first.poll(&mut context) else { panic!("there is memory") };
        let mut second = pin!(half.keep(bytes.split_at(200 << 10).0, Duration::ZERO));
        assert!(second.as_mut().poll(&mut context).is_pending(), "half of the memory is for others");
        let whole = arena.try_charge(Share::Ingest, 600 << 10).expect("others are not kept out");
        drop(first);
        assert_eq!(wakes.0.swap(0, Relaxed), 1, "the end of the first wakes the second");
        let Poll::Ready(Ok(_second)) = second.poll(&mut context) else { panic!("there is memory") };

        let all = arena.try_charge(Share::Ingest, arena.free(Share::Ingest)).unwrap();
        let mut third = pin!(half.keep(b"half", Duration::ZERO));
        assert!(third.as_mut().poll(&mut context).is_pending());
        drop((all, whole));
        assert_eq!(wakes.0.load(Relaxed), 1, "memory that anybody gives back wakes it");
        assert!(third.poll(&mut context).is_ready());
    }

    #[test]
    fn a_message_that_never_fits_is_refused_at_once() {
        let arena = Arena::new(64 << 10, Floors::NONE.with(Share::Ingest, 64 << 10), 64 << 10, 4, 4).unwrap();
        let half = HalfMessages::new(arena);
        let never = pin!(half.keep(&[0; 40 << 10], Duration::ZERO));
        let polled = never.poll(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Ready(Err(ChargeError::Never { .. }))));
    }
}
