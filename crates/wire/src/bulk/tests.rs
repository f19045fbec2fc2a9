#![allow(clippy::indexing_slicing, reason = "a test ends where it fails")]

use super::*;
use proptest::prelude::*;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

fn all(body: &[u8]) -> Result<Vec<Item<'_>>, BulkError> {
    items(body).collect()
}

/// Any JSON, with the texts, numbers and nestings that scanners stumble over.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<i32>().prop_map(|eighths| Value::from(f64::from(eighths) / 8.0)),
        "[ -~\\n\\t\\x00-\\x1f\"\\\\é漢😀]{0,40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::vec(("[ -~\"\\\\é]{0,12}", inner), 0..6)
                .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
        ]
    })
}

fn object() -> impl Strategy<Value = Value> {
    prop::collection::vec(("[ -~\"\\\\é]{0,12}", value()), 0..6)
        .prop_map(|pairs| Value::Object(pairs.into_iter().collect()))
}

/// An item as the model knows it.
#[derive(Debug, Clone)]
struct Model {
    kind: Kind,
    fields: serde_json::Map<String, Value>,
    document: Value,
    blank: bool,
}

fn model() -> impl Strategy<Value = Model> {
    let text = "[a-z\"\\\\é<{]{1,12}";
    let fields = (
        prop::option::of(text),
        prop::option::of(prop_oneof![text.prop_map(Value::from), any::<u32>().prop_map(Value::from)]),
        prop::option::of(text),
        prop::option::of(value()),
        prop::option::of(text),
    );
    (0..4usize, fields, object(), any::<bool>()).prop_map(
        |(kind, (index, id, pipeline, other, kept_as), document, blank)| {
            let mut fields = serde_json::Map::new();
            kept_as.map(|kept_as| fields.insert("_type".into(), kept_as.into()));
            index.map(|index| fields.insert("_index".into(), index.into()));
            id.map(|id| fields.insert("_id".into(), id));
            pipeline.map(|pipeline| fields.insert("pipeline".into(), pipeline.into()));
            other.map(|other| fields.insert("dynamic_templates".into(), other));
            Model { kind: Kind::ALL[kind], fields, document, blank }
        },
    )
}

fn written(models: &[Model]) -> String {
    let mut body = String::new();
    for Model { kind, fields, document, blank } in models {
        if *blank {
            body.push_str(" \r\n");
        }
        body.push_str(&format!("{}\n", json!({ kind.name(): fields })));
        if *kind != Kind::Delete {
            body.push_str(&format!("{document}\n"));
        }
    }
    body
}

fn json_of(bytes: Option<&[u8]>) -> Option<Value> {
    bytes.map(|bytes| serde_json::from_slice(bytes).unwrap())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// A body reads back as written.
    #[test]
    fn items_are_read_as_they_were_written(models in prop::collection::vec(model(), 0..8)) {
        let body = written(&models);
        let read = all(body.as_bytes()).unwrap();
        prop_assert_eq!(read.len(), models.len());
        for (item, model) in read.iter().zip(&models) {
            prop_assert_eq!(item.action.kind, model.kind);
            prop_assert_eq!(json_of(item.action.index), model.fields.get("_index").cloned());
            prop_assert_eq!(json_of(item.action.id), model.fields.get("_id").cloned());
            prop_assert_eq!(item.action.has(Field::Pipeline), model.fields.contains_key("pipeline"));
            let document = (model.kind != Kind::Delete).then(|| model.document.clone());
            prop_assert_eq!(json_of(item.document), document);
            prop_assert_eq!(item.check(), Ok(()));
        }
        let joined: Vec<u8> = read.iter().flat_map(|item| item.bytes.to_vec()).collect();
        let blank = |line: &&[u8]| !line.trim_ascii().is_empty();
        let lines = |text: &[u8]| text.split(|byte| *byte == b'\n').filter(blank).map(<[u8]>::to_vec).collect::<Vec<_>>();
        prop_assert_eq!(lines(&joined), lines(body.as_bytes()));
    }

    /// A line is a document exactly where another parser finds a JSON object in it.
    #[test]
    fn documents_are_accepted_as_by_another_parser(document in object(), cut in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let text = document.to_string().into_bytes();
        prop_assert_eq!(json::object(&text), Ok(()));
        let mut damaged = text.clone();
        let at = cut.index(text.len());
        damaged[at] = byte;
        same_verdict(&damaged)?;
        same_verdict(&text[..at])?;
    }

    /// However a body is cut, its pieces are bodies that have all of its items in order, and none is longer than
    /// allowed but a single item.
    #[test]
    fn pieces_are_bodies(models in prop::collection::vec(model(), 0..12), most in 1..600usize, count in 1..5usize) {
        let body = written(&models);
        let pieces: Vec<Piece<'_>> = Split::new(body.as_bytes(), most, count).collect();
        let mut seen = 0;
        for piece in &pieces {
            prop_assert!(piece.items == 1 || piece.bytes.len() <= most);
            prop_assert!(piece.items <= count);
            prop_assert_eq!(all(piece.bytes).unwrap().len(), piece.items);
            seen += piece.items;
        }
        prop_assert_eq!(seen, models.len());
        let joined: Vec<u8> = pieces.iter().flat_map(|piece| piece.bytes.to_vec()).collect();
        prop_assert!(body.as_bytes().starts_with(&joined));
    }

    /// An item with more fields is the same item with more fields, and without a type.
    #[test]
    fn fields_are_added_to_what_is_there(model in model()) {
        let body = written(std::slice::from_ref(&model));
        let item = all(body.as_bytes()).unwrap()[0];
        let mut out = Vec::new();
        item.write(&[b"\"x\":1", b"", b"\"y\":{}"], &mut out).unwrap();
        let most = item.written_len(b"\"x\":1,\"y\":{}".len());
        prop_assert!(out.len() <= most);
        let wanted = Model { fields: with(&model.fields), blank: false, ..model };
        let read = all(&out).unwrap();
        prop_assert_eq!(json_of(Some(read[0].line)).unwrap(), json!({ wanted.kind.name(): wanted.fields }));
        prop_assert_eq!(read[0].document, item.document);
    }

    /// Nothing that comes from outside makes it panic.
    #[test]
    fn any_bytes_are_read_without_a_panic(body in prop::collection::vec(any::<u8>(), 0..200)) {
        for item in items(&body).chain(checked_items(&body)).flatten() {
            _ = item.check();
        }
        _ = Split::new(&body, 10, 3).count();
    }
}

fn with(fields: &serde_json::Map<String, Value>) -> serde_json::Map<String, Value> {
    let mut fields = fields.clone();
    fields.remove("_type");
    fields.extend([("x".to_owned(), json!(1)), ("y".to_owned(), json!({}))]);
    fields
}

fn same_verdict(text: &[u8]) -> Result<(), TestCaseError> {
    let body = [b"{\"index\":{}}\n", text, b"\n"].concat();
    // A line feed makes it two lines, which is another matter.
    if text.contains(&b'\n') {
        return Ok(());
    }
    let item = all(&body).unwrap()[0];
    let text = item.document.unwrap();
    let is_object = text.trim_ascii().starts_with(b"{");
    let theirs =
        str::from_utf8(text).is_ok() && is_object && serde_json::from_slice::<IgnoredAny>(text).is_ok();
    prop_assert_eq!(item.check().is_ok(), theirs, "{}", String::from_utf8_lossy(text));
    Ok(())
}

#[test]
fn an_error_names_the_line_and_the_reason() {
    let table: [(&[u8], u64, &str); 11] = [
        (b"{\"index\":{}}\n{}", 2, "line 2: the request must be terminated by a newline [\\n]"),
        (b"{\"index\":{}}\n", 2, "line 1: there is no document behind the action `index`"),
        (b"{\"index\":{}}\n{}\n[]\n", 3, "line 3: malformed action/metadata line: no JSON object at byte 0"),
        (
            b"\n{\"put\":{}}\n",
            2,
            "line 2: malformed action/metadata line: none of `index`, `create`, `update` and `delete` at byte 1",
        ),
        (
            b"{\"index\":{}} x\n{}\n",
            1,
            "line 1: malformed action/metadata line: something behind the end of the object at byte 13",
        ),
        (
            b"{\"index\":{},\"create\":{}}\n{}\n",
            1,
            "line 1: malformed action/metadata line: more than one action at byte 11",
        ),
        (
            b"{\"index\":{\"_id\":1,\"_id\":2}}\n{}\n",
            1,
            "line 1: malformed action/metadata line: a field that was given before at byte 23",
        ),
        (
            b"{\"index\":{\"_index\":\"\"}}\n{}\n",
            1,
            "line 1: malformed action/metadata line: an `_index` that is no name at byte 19",
        ),
        (
            b"{\"index\":{\"_id\":[]}}\n{}\n",
            1,
            "line 1: malformed action/metadata line: an `_id` that is no text at byte 16",
        ),
        (
            b"{\"index\":{\"x\":01}}\n{}\n",
            1,
            "line 1: malformed action/metadata line: neither a comma nor the end of what is open at byte 15",
        ),
        (
            b"{\"delete\":{\"_id\":\"\xff\"}}\n",
            1,
            "line 1: malformed action/metadata line: bytes that are not UTF-8 at byte 0",
        ),
    ];
    for (body, _, words) in table {
        assert_eq!(all(body).unwrap_err().to_string(), words, "{}", String::from_utf8_lossy(body));
    }
}

#[test]
fn blank_lines_and_carriage_returns_are_passed_over() {
    let body = b"\r\n{ \"create\" : { } }\r\n{\"a\":1}\r\n \n{\"delete\":{\"_id\":\"1\",\"_index\":\"i\"}}\n";
    let read = all(body).unwrap();
    assert_eq!(read.len(), 2);
    assert_eq!(read[0].document, Some(&b"{\"a\":1}"[..]));
    assert_eq!((read[0].number, read[1].number), (2, 5));
    assert_eq!((read[1].document, read[1].action.id), (None, Some(&b"\"1\""[..])));
}

/// Deep nesting neither overflows the stack nor passes.
#[test]
fn nesting_has_a_bound() {
    let nested = |levels: usize| format!("{}1{}", "{\"a\":".repeat(levels), "}".repeat(levels));
    assert_eq!(json::object(nested(1000).as_bytes()), Ok(()));
    assert!(json::object(nested(1001).as_bytes()).is_err());
    assert!(json::object(format!("{{\"a\":{}", "[".repeat(100_000)).as_bytes()).is_err());
}

/// A body is walked without an allocation.
#[test]
fn nothing_is_allocated() {
    let body = "{\"create\":{\"_index\":\"logs\",\"_id\":\"1\"}}\n{\"message\":\"a\\n\\u00e9é\",\"n\":[1,2.5e3,null,true,{}]}\n".repeat(100);
    let measured = allocation_counter::measure(|| {
        let count = items(body.as_bytes())
            .filter(|item| item.as_ref().is_ok_and(|item| item.check().is_ok()))
            .count();
        assert_eq!(count, 100);
        assert_eq!(Split::new(body.as_bytes(), 10_000, 10).count(), 10);
    });
    assert_eq!(measured.count_total, 0);
}

/// The accepted part reports its written length, and the length of its largest item.
#[test]
fn accepted_items_are_measured() {
    let body = b"{\"index\":{}}\n{\"a\":1}\n{\"delete\":{\"_id\":\"12345678901234567890\"}}\n";
    let mut counts = Counts::default();
    for item in items(body) {
        counts.count(&item.unwrap(), 0);
    }
    assert_eq!(counts.items, 2);
    assert!(counts.bytes >= body.len() && counts.bytes <= body.len() + 2, "{counts:?}");
    assert!((41..44).contains(&counts.largest_item), "{counts:?}");
}
