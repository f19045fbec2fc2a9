//! Promises: letters come back as they were put; the bound holds and the newest stay; a torn letter does not
//! hide the others.

#![allow(clippy::unwrap_used)]

use super::*;
use crate::tests::meta;

fn add(letters: &DeadLetters, reason: &str, body: &[u8]) {
    letters.add(DeadLetter { sink: "upstream", reason, meta: &meta(3), body }).unwrap();
}

fn bytes_in(dir: &Path) -> u64 {
    std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
}

#[test]
fn dead_letters_read_back_unchanged_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    add(&DeadLetters::open(dir.path(), DEFAULT_MAX).unwrap(), "400: out of bounds", b"first");
    let long = "ä".repeat(REASON_MAX);
    add(&DeadLetters::open(dir.path(), DEFAULT_MAX).unwrap(), &long, &[7; 60_000]);
    let mut letters = read(dir.path(), false).unwrap();
    let first = letters.next().unwrap();
    assert_eq!((first.id, first.sink.as_str(), first.reason.as_str()), (1, "upstream", "400: out of bounds"));
    assert_eq!((first.meta, first.body_len), (meta(3), 5));
    assert!(first.at_ns > 0);
    assert_eq!(letters.body().unwrap(), b"first");
    let second = letters.next().unwrap();
    assert_eq!((second.id, second.reason), (2, "ä".repeat(REASON_MAX / 2)));
    assert_eq!(letters.body().unwrap(), [7; 60_000]);
    assert_eq!(letters.next(), None);
}

#[test]
fn the_bound_holds_and_the_newest_stay() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path(), 20_000).unwrap();
    for number in 0..100u8 {
        add(&letters, "no", &[number; 900]);
        assert!(bytes_in(dir.path()) <= 20_000);
    }
    let ids: Vec<u64> = read(dir.path(), false).unwrap().map(|letter| letter.id).collect();
    assert!(ids.len() >= 9 && ids.last() == Some(&100), "{ids:?}");
    assert!(ids.is_sorted());
    let too_large = DeadLetter { sink: "s", reason: "no", meta: &meta(1), body: &[0; 10_000] };
    assert_eq!(letters.add(too_large).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
}

#[test]
fn a_sent_dead_letter_is_not_listed() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(read(dir.path(), false).unwrap().count(), 0);
    let letters = DeadLetters::open(dir.path(), DEFAULT_MAX).unwrap();
    for _ in 0..3 {
        add(&letters, "no", b"body");
    }
    letters.add(DeadLetter { sink: "other", reason: "no", meta: &meta(1), body: b"body" }).unwrap();
    let left = || read(dir.path(), false).unwrap().map(|letter| letter.id).collect::<Vec<_>>();
    mark_sent(dir.path(), "upstream", 2).unwrap();
    mark_sent(dir.path(), "upstream", 1).unwrap();
    assert_eq!(left(), [3, 4]);
    mark_sent(dir.path(), "other", 4).unwrap();
    assert_eq!(left(), [3], "one sink's mark says nothing about another's letters");
    assert_eq!(read(dir.path(), true).unwrap().count(), 4);
    assert!(mark_sent(dir.path(), "../other", 4).is_err());
}

/// A letter that is refused again stays, whatever is sent after it, until it is sent itself.
#[test]
fn a_dead_letter_refused_again_stays_listed() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path(), DEFAULT_MAX).unwrap();
    let letters_left = || read(dir.path(), false).unwrap().map(|letter| letter.id).collect::<Vec<_>>();
    let last = 3 + MOST_KEPT as u64;
    (1..=last).for_each(|_| add(&letters, "no", b"body"));
    mark_kept(dir.path(), "upstream", 1, &[]).unwrap();
    mark_sent(dir.path(), "upstream", 2).unwrap();
    assert_eq!(letters_left().first_chunk(), Some(&[1, 3]));
    mark_sent(dir.path(), "upstream", 1).unwrap();
    assert_eq!(letters_left().first(), Some(&3));
    let all: Vec<u64> = (3..last).collect();
    mark_sent_but(dir.path(), "upstream", last, &all).unwrap();
    assert_eq!(letters_left(), all, "what was passed over is there");
    add(&letters, "no", b"body");
    // What somebody else has discarded meanwhile does not come back.
    discard(dir.path(), "upstream", Some(3)).unwrap();
    mark_sent_but(dir.path(), "upstream", last, &[3]).unwrap();
    assert_eq!(letters_left().first(), Some(&4));
    mark_kept(dir.path(), "upstream", 3, &[]).unwrap();
    let error = mark_kept(dir.path(), "upstream", last + 1, &[]).unwrap_err();
    assert!(error.to_string().contains("no more can be"), "{error}");
    assert_eq!(letters_left().len(), MOST_KEPT + 1, "none is forgotten for another");
}

/// Up to a number, with those that were refused again; another sink's and newer ones stay.
#[test]
fn dead_letters_are_discarded_up_to_a_number() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path(), DEFAULT_MAX).unwrap();
    (1..=4).for_each(|_| add(&letters, "no", b"body"));
    letters.add(DeadLetter { sink: "other", reason: "no", meta: &meta(1), body: b"body" }).unwrap();
    let left = || read(dir.path(), false).unwrap().map(|letter| letter.id).collect::<Vec<_>>();
    mark_kept(dir.path(), "upstream", 1, &[]).unwrap();
    mark_sent(dir.path(), "upstream", 2).unwrap();
    assert_eq!(left(), [1, 3, 4, 5]);
    let discarded = |letters, items, kept| Discarded { letters, items, kept };
    assert_eq!(discard(dir.path(), "upstream", Some(3)).unwrap(), discarded(2, 6, 1));
    assert_eq!(left(), [4, 5]);
    assert_eq!(discard(dir.path(), "upstream", None).unwrap(), discarded(1, 3, 0));
    assert_eq!(discard(dir.path(), "nobody", None).unwrap(), discarded(0, 0, 0));
    assert_eq!(left(), [5]);
}

/// Marks that are made at the same time are all there afterwards.
#[test]
fn no_mark_is_lost_to_another() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path(), DEFAULT_MAX).unwrap();
    (1..=40).for_each(|_| add(&letters, "no", b"body"));
    std::thread::scope(|scope| {
        for first in 1..=4 {
            let dir = dir.path();
            scope.spawn(move || {
                (first..=40).step_by(4).for_each(|id| mark_kept(dir, "upstream", id, &[]).unwrap());
            });
        }
    });
    assert_eq!(read(dir.path(), false).unwrap().count(), 40);
}

/// A body is read into memory of its length, and no other.
#[test]
fn a_body_is_read_into_memory_of_the_caller() {
    let dir = tempfile::tempdir().unwrap();
    add(&DeadLetters::open(dir.path(), DEFAULT_MAX).unwrap(), "no", &[7; 60_000]);
    let mut letters = read(dir.path(), false).unwrap();
    assert_eq!(letters.body_into(&mut []).unwrap_err().kind(), io::ErrorKind::NotFound);
    let mut body = vec![0; letters.next().unwrap().body_len as usize];
    assert_eq!(letters.body_into(&mut body[1..]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    letters.body_into(&mut body).unwrap();
    assert_eq!(body, [7; 60_000]);
}

#[test]
fn a_torn_dead_letter_is_truncated_and_a_damaged_one_skipped() {
    let dir = tempfile::tempdir().unwrap();
    let letters = DeadLetters::open(dir.path(), DEFAULT_MAX).unwrap();
    for number in 0..3u8 {
        add(&letters, "no", &[number; 500]);
    }
    drop(letters);
    let path = dir.path().join(NEWER);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes.truncate(bytes.len() - 100);
    bytes[20] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let letters = DeadLetters::open(dir.path(), DEFAULT_MAX).unwrap();
    add(&letters, "no", &[9; 500]);
    let mut letters = read(dir.path(), false).unwrap();
    assert_eq!(letters.next().unwrap().id, 2);
    assert_eq!(letters.body().unwrap(), [1; 500]);
    assert_eq!(letters.next().unwrap().id, 3);
    assert_eq!(letters.body().unwrap(), [9; 500]);
}
