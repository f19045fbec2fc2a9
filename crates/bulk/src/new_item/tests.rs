use super::*;
use crate::outcome::Revision;
use proptest::prelude::*;
use serde_json::{Value, json};

fn written(line: NewItem<'_>) -> Vec<u8> {
    let mut buffer = vec![0; line.max_len()];
    let len = line.write(&mut buffer);
    assert!(len <= buffer.len(), "a line is longer than its `max_len`");
    buffer.truncate(len);
    buffer
}

fn lines(bytes: &[u8]) -> Vec<Value> {
    let lines = bytes.split_inclusive(|byte| *byte == b'\n').map(serde_json::from_slice);
    lines.collect::<Result<_, _>>().expect("every line is JSON")
}

/// One caller's names and bytes never reach another caller's lines.
#[test]
fn every_option_is_written_and_a_body_over_several_lines_is_one() {
    let target = Target::new("i\"\n", "\u{1}\\é").routing("r").retry_on_conflict(3);
    let line = NewItem::document(Action::Update, target, b" {\n\"doc\": {}\n}\n").unwrap();
    let action =
        json!({"update": {"_index": "i\"\n", "_id": "\u{1}\\é", "routing": "r", "retry_on_conflict": 3}});
    assert_eq!(lines(&written(line)), [action, json!({"doc": {}})]);

    let revision = Revision { seq_no: 1_234_567_890_123_456_789, primary_term: 0 };
    let line = NewItem::document(Action::Delete, Target::new("i", "1").if_unchanged(revision), b"").unwrap();
    let action =
        json!({"delete": {"_index": "i", "_id": "1", "if_seq_no": revision.seq_no, "if_primary_term": 0}});
    assert_eq!(lines(&written(line)), [action]);

    let line = NewItem::search(Search { index: "a,b-*", query: b"{}" }).unwrap();
    assert_eq!(lines(&written(line)), [json!({"index": "a,b-*"}), json!({})]);
}

/// Items for which servers refuse the whole request are assert_refused before they join one.
#[test]
fn items_that_would_fail_a_whole_request_are_refused() {
    let long = "x".repeat(513);
    let revision = Revision::default();
    let assert_refused = |action, target, body: &[u8]| {
        assert!(matches!(NewItem::document(action, target, body), Err(BulkSubmitError::Invalid(_))));
    };
    assert_refused(Action::Index, Target::new("i", ""), b"{}");
    assert_refused(Action::Index, Target::new("", "1"), b"{}");
    assert_refused(Action::Index, Target::new("i", &long), b"{}");
    assert_refused(Action::Index, Target::new(&long, "1"), b"{}");
    assert_refused(Action::Index, Target::new("i", "1"), b"");
    assert_refused(Action::Index, Target::new("i", "1"), b"{\"a\":1");
    assert_refused(Action::Delete, Target::with_auto_id("i"), b"");
    assert_refused(Action::Create, Target::new("i", "1").if_unchanged(revision), b"{}");
    assert_refused(Action::Update, Target::new("i", "1").if_unchanged(revision).retry_on_conflict(1), b"{}");
    assert!(NewItem::search(Search { index: "i", query: b"{" }).is_err());
}

proptest! {
    /// Names are read back as they were given, whatever is in them.
    #[test]
    fn names_are_read_back(index in "\\PC{1,40}|[\u{0}-\u{20}\"\\\\]{1,9}", id in "\\PC{1,60}|[\u{0}-\u{ff}]{1,20}") {
        prop_assume!(index.len() <= 255 && id.len() <= 512);
        let line = NewItem::document(Action::Index, Target::new(&index, &id), b"{}").unwrap();
        prop_assert_eq!(lines(&written(line)), [json!({"index": {"_index": index, "_id": id}}), json!({})]);
    }
}
