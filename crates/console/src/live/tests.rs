//! Promise: a frame a second however many pages are open, in at most three windows, and no viewer waits for another.

use super::*;
use crate::console::Console;
use crate::tests::sample::healthy;
use crate::tests::served::gateway_with;
use tidegate_arena::Share;
use tidegate_http1::Content;

struct Page(Box<dyn ContentStream>);

impl Page {
    fn open(live: &Arc<LiveStatus>) -> Page {
        match live.answer().into_content() {
            Content::Stream(stream) => Page(stream),
            other => panic!("{other:?}"),
        }
    }

    async fn next(&mut self) -> String {
        String::from_utf8(self.0.next_piece().await.unwrap().to_vec()).unwrap()
    }
}

fn live_of(status: crate::Status) -> (Arc<LiveStatus>, Arena) {
    let arena = Console::reserve().unwrap();
    (Arc::new(LiveStatus::new(Arc::new(gateway_with(status)), arena.clone(), Arc::default())), arena)
}

fn held(arena: &Arena) -> u64 {
    arena.usage().shares.iter().find(|share| share.share == Share::Egress).map_or(0, |share| share.used)
}

#[tokio::test(start_paused = true)]
async fn every_page_gets_the_same_frame_each_second() {
    let (live, arena) = live_of(healthy());
    let begun = Instant::now();
    let mut pages: Vec<Page> = (0..MOST_VIEWERS).map(|_| Page::open(&live)).collect();
    for second in 0..10 {
        let mut frames = Vec::new();
        for page in &mut pages {
            frames.push(page.next().await);
        }
        assert_eq!(begun.elapsed().as_secs(), second);
        assert!(frames.iter().all(|frame| *frame == frames[0]));
        let data = frames[0]
            .strip_prefix("retry: 1000\ndata: ")
            .and_then(|frame| frame.strip_suffix("\n\n"))
            .unwrap();
        assert!(!data.contains('\n'));
        let status: serde_json::Value = serde_json::from_str(data).unwrap();
        assert_eq!(status["state"], "flowing");
    }
    assert_eq!(live.state().number, 10, "a frame is made once");
    drop(pages);
    assert_eq!(held(&arena), 0, "nobody looks, so nothing is kept");
}

#[tokio::test(start_paused = true)]
async fn pages_beyond_the_limit_are_refused_until_one_closes() {
    let (live, _arena) = live_of(healthy());
    let mut pages: Vec<Page> = (0..MOST_VIEWERS).map(|_| Page::open(&live)).collect();
    let refused = live.answer();
    assert_eq!(refused.status(), 503);
    pages.pop();
    pages.push(Page::open(&live));
    assert_eq!(live.answer().status(), 503);
}

/// Viewers that do not take their frames hold at most the windows that are declared, and the others get newer frames while
/// there is a window left.
#[tokio::test(start_paused = true)]
async fn slow_viewers_hold_no_more_than_the_declared_frames() {
    let (live, arena) = live_of(healthy());
    let mut quick = Page::open(&live);
    let mut slow = Vec::new();
    for held_frames in 1..=FRAMES {
        let mut page = Page::open(&live);
        // It holds this frame until it asks for the next one.
        page.next().await;
        slow.push(page);
        assert!(held(&arena) <= (FRAMES * LONGEST_FRAME) as u64);
        if held_frames < FRAMES {
            quick.next().await;
            quick.next().await;
        }
    }
    let number = live.state().number;
    tokio::time::timeout(Duration::from_secs(60), quick.next()).await.unwrap_err();
    assert_eq!(live.state().number, number, "no window is free");
    slow.pop();
    quick.next().await;
    assert!(live.state().number > number);
}

/// A page connects again after a while, so that one whose credentials were revoked does not look for ever.
#[tokio::test(start_paused = true)]
async fn a_stream_ends_after_ten_minutes() {
    let (live, _arena) = live_of(healthy());
    let mut page = Page::open(&live);
    let mut frames = 0;
    while !page.next().await.is_empty() {
        frames += 1;
    }
    assert!((600..=601).contains(&frames), "{frames} frames");
}

/// While somebody makes an answer there is no new frame, and nobody waits for it.
#[tokio::test(start_paused = true)]
#[expect(clippy::await_holding_lock, reason = "that nobody waits for it is what is tested")]
async fn a_frame_waits_for_no_lock() {
    let (live, _arena) = live_of(healthy());
    let mut page = Page::open(&live);
    page.next().await;
    let making = Arc::clone(&live.making);
    let held = making.lock().unwrap();
    tokio::time::timeout(Duration::from_secs(5), page.next()).await.unwrap_err();
    drop(held);
    page.next().await;
}

#[tokio::test(start_paused = true)]
async fn a_status_too_long_for_a_frame_says_so() {
    let mut status = healthy();
    let line = status.memory.declared[0].clone();
    status.memory.declared = vec![line; 10_000];
    let (live, _arena) = live_of(status);
    assert_eq!(Page::open(&live).next().await, "retry: 1000\ndata: {\"too_long\":true}\n\n");
}
