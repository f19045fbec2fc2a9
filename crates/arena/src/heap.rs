//! The allocator for everything that is not payload: jemalloc, and counters that show what it holds.

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering::Relaxed};

/// jemalloc, told to give memory back soon: two arenas, freed pages kept for 10 ms, no huge pages. What is hot
/// lives in the arena, and nothing on the way of a request over HTTP/1.1 allocates.
pub type Jemalloc = tikv_jemallocator::Jemalloc;

/// The value of [`Jemalloc`], for `CountingAllocator::new`.
pub const JEMALLOC: Jemalloc = tikv_jemallocator::Jemalloc;

/// jemalloc reads its options here when it starts, before `main`.
// SAFETY: the name and the type are what jemalloc's documentation asks for ("TUNING": a global string
// pointer `malloc_conf`, with this build's prefix); the string is static and ends with a zero byte.
#[used]
#[unsafe(export_name = "_rjem_malloc_conf")]
static MALLOC_CONF: ConfPointer = ConfPointer(
    c"background_thread:true,dirty_decay_ms:10,muzzy_decay_ms:0,narenas:2,thp:never,tcache_max:4096".as_ptr(),
);

#[repr(transparent)]
struct ConfPointer(*const std::ffi::c_char);

// SAFETY: it points at a constant that nobody writes.
unsafe impl Sync for ConfPointer {}

/// A global allocator that counts: `#[global_allocator] static A: CountingAllocator<Jemalloc> = CountingAllocator::new(JEMALLOC);`
///
/// The counters are striped over threads, so counting costs about a nanosecond.
pub struct CountingAllocator<A> {
    inner: A,
}

impl<A> CountingAllocator<A> {
    /// Counts what goes through `inner`.
    pub const fn new(inner: A) -> Self {
        CountingAllocator { inner }
    }
}

/// Totals of the counting allocator. All zero when it is not installed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heap {
    /// Bytes allocated and not freed.
    pub live: u64,
    /// Allocations and reallocations so far.
    pub allocations: u64,
}

/// Bytes on the heap of the whole process.
pub fn heap() -> Heap {
    let live: i64 = STRIPES.iter().map(|stripe| stripe.live.load(Relaxed)).sum();
    let allocations = STRIPES.iter().map(|stripe| stripe.allocations.load(Relaxed)).sum();
    Heap { live: u64::try_from(live).unwrap_or(0), allocations }
}

/// How many allocations the calling thread has made so far: for tests that assert there are none.
pub fn allocations_of_this_thread() -> u64 {
    ALLOCATIONS.try_with(Cell::get).unwrap_or(0)
}

const STRIPE_COUNT: usize = 16;

#[repr(align(128))]
struct Stripe {
    live: AtomicI64,
    allocations: AtomicU64,
}

static STRIPES: [Stripe; STRIPE_COUNT] =
    [const { Stripe { live: AtomicI64::new(0), allocations: AtomicU64::new(0) } }; STRIPE_COUNT];
static NEXT_STRIPE: AtomicU32 = AtomicU32::new(0);

thread_local! {
    static STRIPE: Cell<u32> = const { Cell::new(u32::MAX) };
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count(bytes: i64, allocations: u64) {
    let stripe = STRIPE
        .try_with(|stripe| {
            if stripe.get() == u32::MAX {
                stripe.set(NEXT_STRIPE.fetch_add(1, Relaxed) % STRIPE_COUNT as u32);
            }
            stripe.get()
        })
        .unwrap_or(0);
    if let Some(stripe) = STRIPES.get(stripe as usize) {
        stripe.live.fetch_add(bytes, Relaxed);
        if allocations > 0 {
            stripe.allocations.fetch_add(allocations, Relaxed);
            // At a thread's end its locals are gone before its last frees.
            let _ = ALLOCATIONS.try_with(|mine| mine.set(mine.get() + allocations));
        }
    }
}

// SAFETY: every call is passed on unchanged; counting touches no memory but static counters and
// thread-locals that are initialised without allocating and have no destructor.
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountingAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64, 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64, 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64), 0);
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        count(new_size as i64 - layout.size() as i64, 1);
        // SAFETY: the caller's promise is passed on.
        unsafe { self.inner.realloc(pointer, layout, new_size) }
    }
}
