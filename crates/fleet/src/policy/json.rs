//! JSON as text: without blanks, and line by line. Nothing is made of it but text, so it costs no more memory than that.

/// The deepest nesting of a policy.
const DEEPEST: usize = 64;
/// Lines that are looked at: an indented policy has hundreds.
const MOST_LINES: usize = 20_000;

/// Appends a valid JSON text without the blanks between its tokens; false when it is nested too deeply.
pub(super) fn compact(json: &str, out: &mut String) -> bool {
    let (mut in_string, mut is_escaped) = (false, false);
    let (mut depth, mut deepest) = (0_usize, 0);
    out.extend(json.chars().filter(|sign| {
        let is_kept = in_string || !sign.is_ascii_whitespace();
        match sign {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = in_string,
            '"' => in_string = !in_string,
            '{' | '[' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            '}' | ']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_kept
    }));
    deepest <= DEEPEST
}

/// The lines of a compact JSON text when it is indented, without commas at their ends; at most [`MOST_LINES`].
pub(crate) fn lines(json: &str) -> Vec<String> {
    let (mut lines, mut line, mut depth) = (Vec::new(), String::new(), 0_usize);
    let (mut in_string, mut is_escaped) = (false, false);
    let mut end = |line: &mut String, depth: usize| {
        if !line.trim().is_empty() && lines.len() < MOST_LINES {
            lines.push(std::mem::take(line));
        }
        *line = "  ".repeat(depth);
    };
    for sign in json.chars() {
        if in_string {
            line.push(sign);
            match sign {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match sign {
            '{' | '[' => {
                depth += 1;
                line.push(sign);
                end(&mut line, depth);
            }
            '}' | ']' => {
                depth = depth.saturating_sub(1);
                end(&mut line, depth);
                line.push(sign);
            }
            ',' => end(&mut line, depth),
            ':' => line.push_str(": "),
            '"' => {
                in_string = true;
                line.push(sign);
            }
            _ => line.push(sign),
        }
    }
    end(&mut line, 0);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::Value;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            ".*".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec((".{0,4}", inner), 0..4)
                    .prop_map(|pairs| Value::Object(pairs.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// Without blanks it is the same JSON, and as short as it can be.
        #[test]
        fn compact_text_is_the_same_json(value in any_json()) {
            let mut out = String::new();
            prop_assert!(compact(&serde_json::to_string_pretty(&value).unwrap(), &mut out));
            prop_assert_eq!(out, value.to_string());
        }

        /// The lines are those of the indented text, but for empty lists and the commas.
        #[test]
        fn lines_are_those_of_indented_text(value in any_json()) {
            let text = value.to_string();
            let joined: String = lines(&text).concat().split("  ").collect();
            let expected: String = serde_json::to_string_pretty(&value).unwrap();
            let bare = |text: &str| text.chars().filter(|sign| !" ,\n".contains(*sign)).collect::<String>();
            prop_assert_eq!(bare(&joined), bare(&expected));
        }
    }

    #[test]
    fn each_member_has_a_line() {
        assert_eq!(
            lines("{\"a\":[1,{\"b\":\"x,y\"}],\"c\":{}}"),
            [
                "{",
                "  \"a\": [",
                "    1",
                "    {",
                "      \"b\": \"x,y\"",
                "    }",
                "  ]",
                "  \"c\": {",
                "  }",
                "}"
            ]
        );
    }
}
