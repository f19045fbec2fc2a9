//! The elements of an answer are those that `serde_json` finds, whatever pieces it comes in; what is no answer is
//! never read past its end.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use tidegate_bulk::response::{ElementScanner, read_bulk_item, read_mget_document, read_msearch_response};

const KEY: &[u8] = b"\"items\"";

fuzz_target!(|input: (u8, &[u8])| {
    let (piece, body) = (usize::from(input.0).max(1), input.1);
    let (found, complete) = elements(body, piece);
    assert_eq!((&found, complete), (&elements(body, usize::MAX).0, elements(body, usize::MAX).1));
    assert!(found.iter().map(Vec::len).sum::<usize>() <= body.len());
    for element in &found {
        let _ = (read_mget_document(element), read_msearch_response(element));
        if let Some(error) = read_bulk_item(element).and_then(|item| item.error) {
            assert!(error.message().len() <= 2048);
        }
    }
    // A key that is written with escapes, or twice, is nothing that servers send.
    let keys = body.windows(KEY.len()).filter(|window| *window == KEY).count();
    let Ok(Value::Object(answer)) = serde_json::from_slice::<Value>(body) else { return };
    if let (1, Some(Value::Array(items))) = (keys, answer.get("items")) {
        let read: Vec<Value> = found.iter().map(|element| serde_json::from_slice(element).unwrap()).collect();
        assert_eq!(&read, items);
        assert!(complete);
    }
});

fn elements(body: &[u8], piece: usize) -> (Vec<Vec<u8>>, bool) {
    let (mut found, mut elements) = (Vec::<Vec<u8>>::new(), ElementScanner::new("items"));
    for piece in body.chunks(piece) {
        elements.feed(piece, |part| {
            if part.first {
                found.push(Vec::new());
            }
            found.last_mut().unwrap().extend_from_slice(part.bytes);
        });
    }
    (found, elements.is_complete())
}
