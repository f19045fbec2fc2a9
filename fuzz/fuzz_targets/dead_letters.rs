//! A folder of dead letters, whatever is in its files: what is whole is read, what is not is left out, and the next letter
//! is taken and read as it was written.
#![no_main]

#[path = "../src/folder.rs"]
mod folder;

use folder::Folder;
use libfuzzer_sys::fuzz_target;
use std::sync::OnceLock;
use tidegate_journal::dead_letters::{DeadLetter, DeadLetters, mark_kept, mark_sent, read};
use tidegate_journal::{Encoding, Meta, Protocol, Signal, Tenant};

const MOST: u64 = 16 << 10;

fn letter<'a>(meta: &'a Meta, body: &'a [u8]) -> DeadLetter<'a> {
    DeadLetter { sink: "sink", reason: "400: no such index", meta, body }
}

fn meta() -> Meta {
    Meta {
        tenant: Tenant::new("shop").unwrap_or(Tenant::NONE),
        signal: Signal::Logs,
        protocol: Protocol::Otlp,
        encoding: Encoding::Identity,
        items: 2,
        raw_len: 3,
        received_at_ns: 1,
    }
}

/// Letters in both files, of which one was sent and one refused again.
fn template() -> &'static Vec<(String, Vec<u8>)> {
    static FILES: OnceLock<Vec<(String, Vec<u8>)>> = OnceLock::new();
    FILES.get_or_init(|| {
        let folder = Folder::empty();
        let letters = DeadLetters::open(folder.path(), MOST).expect("an empty folder");
        for number in 0..6_u8 {
            let body = vec![number; 1500];
            letters.add(letter(&meta(), &body)).expect("a letter");
        }
        mark_sent(folder.path(), "sink", 2).expect("marked");
        mark_kept(folder.path(), "sink", 1, &[]).expect("marked");
        folder.files()
    })
}

fuzz_target!(|input: &[u8]| {
    let folder = Folder::of(template(), input);
    for sent_too in [true, false] {
        let Ok(mut letters) = read(folder.path(), sent_too) else { continue };
        for _ in 0..1000 {
            if letters.next().is_none() {
                break;
            }
            if let Ok(body) = letters.body() {
                assert!(body.len() <= 1 << 20);
            }
        }
    }
    let Ok(letters) = DeadLetters::open(folder.path(), MOST) else { return };
    letters.add(letter(&meta(), b"one more")).expect("it takes the next one");
    let mut all = read(folder.path(), true).expect("it can be read");
    let mut last = None;
    while all.next().is_some() {
        last = all.body().ok();
    }
    assert_eq!(last.as_deref(), Some(&b"one more"[..]));
});
