//! Leaving allocates nothing, and staying next to nothing.
#![allow(clippy::unwrap_used, reason = "a test ends where it fails")]

use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use tidegate_arena::heap::{CountingAllocator, JEMALLOC, Jemalloc, allocations_of_this_thread};
use tidegate_arena::{Arena, Floors, Share};
use tidegate_bulk::{Bulk, Settings, Target, Transport, TransportError, TransportRequest, TransportResponse};

#[global_allocator]
static ALLOCATOR: CountingAllocator<Jemalloc> = CountingAllocator::new(JEMALLOC);

const ITEMS: usize = 64;

/// Answers with as many items as it was sent, or never.
struct Canned {
    answer: String,
    stalled: bool,
}

impl Canned {
    fn new(stalled: bool) -> Canned {
        let item = "{\"index\":{\"_id\":\"1\",\"_version\":1,\"result\":\"created\",\"_seq_no\":1,\"_primary_term\":1,\"status\":201}}";
        Canned { answer: format!("{{\"items\":[{}]}}", [item; ITEMS].join(",")), stalled }
    }
}

impl Transport for Canned {
    async fn send(
        &self,
        _request: TransportRequest,
        answer: &mut (dyn FnMut(&[u8]) -> ControlFlow<()> + Send),
    ) -> Result<TransportResponse, TransportError> {
        if self.stalled {
            std::future::pending::<()>().await;
        }
        let _ = answer(self.answer.as_bytes());
        Ok(TransportResponse { status: 200, ..TransportResponse::default() })
    }
}

fn engine() -> (Bulk, tidegate_bulk::Driver) {
    let settings = Settings::new(Share::Forward, 32 << 20);
    let arena = Arena::new(32 << 20, Floors::NONE, 8 << 20, 64, 16).unwrap();
    Bulk::new(Settings { batch_items: ITEMS as u32, ..settings }, arena)
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap()
}

/// How many allocations `deed` makes.
fn allocations(deed: impl FnOnce()) -> u64 {
    let before = allocations_of_this_thread();
    deed();
    allocations_of_this_thread() - before
}

/// Handing over, waiting and leaving before anything is sent.
#[test]
fn leaving_before_sending_allocates_nothing() {
    let (bulk, _driver) = engine();
    let waker = Waker::noop();
    let come_and_go = |id: usize| {
        let names = ["a", "b", "c", "d"];
        let mut ticket = pin!(bulk.index(Target::new("i", names[id % 4]), b"{\"a\":1}").unwrap());
        assert!(ticket.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
    };
    let stays = bulk.index(Target::new("i", "stays"), b"{}").unwrap();
    (0..8).for_each(come_and_go);
    assert_eq!(allocations(|| (0..1000).for_each(come_and_go)), 0);
    drop(stays);
    (0..8).for_each(come_and_go);
    assert_eq!(allocations(|| (0..1000).for_each(come_and_go)), 0, "also when nobody else is there");
}

/// Leaving while the answer is awaited. (Sending allocates for each request, so only leaving is counted.)
#[test]
fn leaving_while_under_way_allocates_nothing() {
    let (bulk, driver) = engine();
    let server = Canned::new(true);
    runtime().block_on(async {
        let mut run = pin!(driver.run(&server, std::future::pending()));
        let mut tickets: Vec<_> =
            (0..ITEMS).map(|id| bulk.index(Target::new("i", &id.to_string()), b"{}").unwrap()).collect();
        poll_fn(|context| {
            assert!(run.as_mut().poll(context).is_pending());
            tickets.iter_mut().for_each(|ticket| assert!(Pin::new(ticket).poll(context).is_pending()));
            Poll::Ready(())
        })
        .await;
        assert_eq!(allocations(|| tickets.drain(..).for_each(drop)), 0);
        assert_eq!(bulk.depth(), ITEMS as u32, "they are under way");
    });
}

/// The whole way of an item takes less than one allocation: those are for the request.
#[test]
fn an_item_takes_less_than_one_allocation() {
    let (bulk, driver) = engine();
    let server = Canned::new(false);
    runtime().block_on(async {
        let ids: Vec<String> = (0..ITEMS).map(|id| id.to_string()).collect();
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let mut run = pin!(driver.run(&server, async move { drop(stopped.await) }));
        let mut tickets = Vec::with_capacity(ITEMS);
        let mut taken = 0;
        for round in 0..20 {
            let before = allocations_of_this_thread();
            tickets.extend(ids.iter().map(|id| bulk.index(Target::new("i", id), b"{}").unwrap()));
            poll_fn(|context| {
                let _ = run.as_mut().poll(context);
                tickets.retain_mut(|ticket| match Pin::new(ticket).poll(context) {
                    Poll::Ready(answer) => answer.is_err(),
                    Poll::Pending => true,
                });
                if tickets.is_empty() { Poll::Ready(()) } else { Poll::Pending }
            })
            .await;
            if round >= 10 {
                taken += allocations_of_this_thread() - before;
            }
        }
        println!("{} allocations for {} items in 10 requests", taken, 10 * ITEMS);
        assert!(taken < 10 * ITEMS as u64 / 4, "{taken}");
        drop(stop);
        run.await;
    });
}
