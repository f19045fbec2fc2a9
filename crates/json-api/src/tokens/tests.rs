use super::*;
use proptest::prelude::*;
use serde_json::Value;

/// The tokens, written down.
fn tokens(text: &[u8], chunk: usize) -> Result<Vec<String>, SyntaxError> {
    let (mut tokenizer, mut out) = (Tokenizer::default(), Vec::new());
    for chunk in text.chunks(chunk.max(1)) {
        tokenizer.feed(chunk, |token| {
            out.push(format!("{token:?}"));
            Ok::<_, SyntaxError>(())
        })?;
    }
    if !tokenizer.is_between_values() {
        out.push("unfinished".to_owned());
    }
    Ok(out)
}

/// The tokens of a value that `serde_json` has read.
fn expected(value: &Value, out: &mut Vec<String>) {
    let text = |text: &str| format!("{:?}", Token::String(Text { text, is_cut: false }));
    match value {
        Value::Object(fields) => {
            out.push(format!("{:?}", Token::ObjectStart));
            for (key, value) in fields {
                out.push(format!("{:?}", Token::Key(Text { text: key, is_cut: false })));
                expected(value, out);
            }
            out.push(format!("{:?}", Token::ObjectEnd));
        }
        Value::Array(values) => {
            out.push(format!("{:?}", Token::ArrayStart));
            values.iter().for_each(|value| expected(value, out));
            out.push(format!("{:?}", Token::ArrayEnd));
        }
        Value::String(string) => out.push(text(string)),
        other => out.push(format!("{:?}", Token::Scalar(&other.to_string()))),
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 40, 6, |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            proptest::collection::btree_map(".{0,8}", inner, 0..6)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

proptest! {
    /// The tokens of an object are those of a whole parser, wherever the chunks end, escaped or not.
    #[test]
    fn tokens_are_those_of_serde_json(values in proptest::collection::vec(value(), 0..4), chunk in 1usize..40) {
        let value = Value::from(values);
        let text = serde_json::to_string_pretty(&value).unwrap();
        let mut wanted = Vec::new();
        expected(&value, &mut wanted);
        prop_assert_eq!(tokens(text.as_bytes(), chunk).unwrap(), wanted);
        let all_escaped: String = text.encode_utf16().map(|unit| match unit {
            0..0x80 => char::from(unit as u8).to_string(),
            _ => format!("\\u{unit:04x}"),
        }).collect();
        prop_assert_eq!(tokens(all_escaped.as_bytes(), chunk).unwrap(), tokens(text.as_bytes(), usize::MAX).unwrap());
    }

    /// Whatever comes, the chunks make no difference, and a text that is cut off is noticed.
    #[test]
    fn chunks_make_no_difference(text in "[\\[\\]{}:,\"\\\\ud8a0-9tnfe. \n-]{0,60}", chunk in 1usize..10) {
        prop_assert_eq!(tokens(text.as_bytes(), chunk), tokens(text.as_bytes(), usize::MAX));
        if let Ok(Value::Object(_) | Value::Array(_)) = serde_json::from_str::<Value>(&text) {
            prop_assert!(!tokens(text.as_bytes(), chunk).unwrap().contains(&"unfinished".to_owned()));
            let cut = text.trim_end().len() - 1;
            let found = tokens(&text.as_bytes()[..cut], chunk).unwrap();
            prop_assert_eq!(found.last().map(String::as_str), Some("unfinished"));
        }
    }
}

#[test]
fn long_strings_are_cut_within_no_character() {
    let text = format!("[\"{}\"]", "é".repeat(LONGEST_TEXT));
    let mut tokenizer = Tokenizer::default();
    let mut found = None;
    let take = |token: Token<'_>| {
        if let Token::String(Text { text, is_cut }) = token {
            found = Some((text.len(), is_cut));
        }
        Ok::<_, SyntaxError>(())
    };
    tokenizer.feed(format!("{text} {{").as_bytes(), take).unwrap();
    assert_eq!(found, Some((LONGEST_TEXT, true)));
    assert!(tokenizer.text.capacity() <= 2 * LONGEST_TEXT);
}

#[test]
fn depth_has_an_end() {
    let deep = |depth: usize| tokens("[".repeat(depth).as_bytes(), 7).map(|tokens| tokens.len());
    assert_eq!(deep(128), Ok(129));
    assert_eq!(deep(129), Err(SyntaxError::TooDeep));
}

#[test]
fn what_is_not_json_is_refused() {
    for text in ["<html>", "[1 2]", "{\"a\" 1}", "[}", "{]", "{\"a\":}", "[tru]", "[\"\\x\"]", "nul "] {
        assert!(tokens(text.as_bytes(), 3).is_err(), "{text}");
    }
}
