//! The numbers that real parts give.

use crate::{DeclaredLine, Payload};
use tidegate_arena::{Arena, Floors, Reservation, Share};

/// An arena's shares are shown with what they hold; those that can hold nothing are left out.
#[test]
fn an_arena_is_shown_by_share() {
    let floors = Floors::NONE.with(Share::Ingest, 64 << 10).with(Share::Egress, 128 << 10);
    let arena = Arena::new(256 << 10, floors, 64 << 10, 4, 4).unwrap();
    let window = arena.try_window(Share::Ingest, 8 << 10).unwrap();
    let payload = Payload::of(&arena);
    let names: Vec<&str> = payload.shares.iter().map(|share| share.name.as_str()).collect();
    assert_eq!(names, ["ingest", "egress"]);
    assert_eq!(payload.used(), window.charged() as u64);
    assert_eq!(payload.shares[0].at_most, 128 << 10);
    drop(window);
    assert_eq!(Payload::of(&arena).used(), 0);
    assert_eq!(Payload::of(&arena).shares[0].peak, 8 << 10);
}

#[test]
fn a_line_of_the_plan_knows_its_use_when_told() {
    let declared = Reservation { owner: "o", what: "w", count: 3, each: 5, setting: None };
    let line = DeclaredLine::of(&declared);
    assert_eq!((line.declared, line.used, line.peak), (15, None, None));
    let line = line.using(7, Some(9));
    assert_eq!((line.used, line.peak), (Some(7), Some(9)));
}
