use super::super::vocabulary::{Origin, Vocabulary};
use super::{Translated, condition, parse, translate};
use proptest::prelude::*;

fn program(text: &str) -> Translated {
    translate(text, &parse(text), &Vocabulary::new(Origin::Lines))
}

fn lines(text: &str) -> Vec<String> {
    program(text).lines.into_iter().map(|line| line.text).collect()
}

#[test]
fn programs_become_statements() {
    for (vrl, ottl) in [
        (r#".env = "prod""#, vec![r#"set(log.attributes["env"], "prod")"#]),
        (
            "del(.a.\"b c\")",
            vec![r#"delete_key(log.attributes["a"], "b c") where IsMap(log.attributes["a"])"#],
        ),
        (
            ".b = del(.a)",
            vec![
                r#"set(log.attributes["b"], log.attributes["a"]) where log.attributes["a"] != nil"#,
                r#"delete_key(log.attributes, "a")"#,
            ],
        ),
        (r#".message = upcase(.message)"#, vec!["set(log.body, ToUpperCase(log.body))"]),
        (
            ".n = to_int!(.n); .f = to_float(.f) ?? .f",
            vec![
                r#"set(log.cache["value_1"], Int(log.attributes["n"]))"#,
                r#"set(log.cache["value_1"], 0) where log.attributes["n"] == nil"#,
                r#"set(log.attributes["n"], log.cache["value_1"]) where log.cache["value_1"] != nil"#,
                r#"set(log.cache["value_2"], Double(log.attributes["f"]))"#,
                r#"set(log.cache["value_2"], 0.0) where log.attributes["f"] == nil"#,
                r#"set(log.attributes["f"], log.cache["value_2"]) where log.cache["value_2"] != nil"#,
            ],
        ),
        (
            r#". |= parse_key_value!(.message, field_delimiter: ",")"#,
            vec![
                r#"merge_maps(log.attributes, ParseKeyValue(log.body, "=", ","), "upsert")"#,
                r#"set(log.body, log.attributes["message"]) where log.attributes["message"] != nil"#,
                r#"delete_key(log.attributes, "message")"#,
            ],
        ),
        (
            r#"if exists(.a) { .b = 1 }"#,
            vec![r#"set(log.attributes["b"], 1) where log.attributes["a"] != nil"#],
        ),
        (
            r#".timestamp = parse_timestamp!(.t, "%Y-%m-%d %T")"#,
            vec![r#"set(log.time, Time(log.attributes["t"], "%Y-%m-%d %T"))"#],
        ),
        (
            r#".host = get_env_var!("HOSTNAME")"#,
            vec![r#"set(resource.attributes["host.name"], "${HOSTNAME}")"#],
        ),
        (
            r#".x = .x || "none""#,
            vec![
                r#"set(log.attributes["x"], "none") where log.attributes["x"] == nil or log.attributes["x"] == false"#,
            ],
        ),
        (".x = keys(.o)", vec![r#"set(log.attributes["x"], Sort(Keys(log.attributes["o"])))"#]),
        // Attributes hold the texts of times.
        (
            r#".x = format_timestamp!(.t, format: "%Y")"#,
            vec![
                r#"set(log.attributes["x"], FormatTime(Time(log.attributes["t"], "%Y-%m-%dT%H:%M:%SZ"), "%Y"))"#,
            ],
        ),
        // Of what is no list, `is_empty` fails, so the other value is taken.
        (
            ".x = is_empty(.l) ?? true",
            vec![
                r#"set(log.cache["value_2"], true) where Len(log.attributes["l"]) == 0"#,
                r#"set(log.cache["value_2"], false) where not (Len(log.attributes["l"]) == 0)"#,
                r#"set(log.cache["value_1"], log.cache["value_2"])"#,
                r#"set(log.cache["value_1"], true) where log.cache["value_1"] == nil"#,
                r#"set(log.attributes["x"], log.cache["value_1"])"#,
            ],
        ),
    ] {
        assert_eq!(lines(vrl), ottl, "{vrl}");
    }
}

#[test]
fn conditions_become_conditions() {
    for (vrl, ottl) in [
        (r#".level == "error""#, r#"log.attributes["level"] == "error""#),
        (
            r#"!contains(string!(.message), "a.b") && .n > 1"#,
            r#"IsString(log.body) and not (IsMatch(log.body, "a\\.b")) and log.attributes["n"] > 1"#,
        ),
        (
            r#"includes(["a", "b"], .x) || is_null(.y)"#,
            r#"(log.attributes["x"] == "a" or log.attributes["x"] == "b") or log.attributes["y"] == nil"#,
        ),
        ("match(.message, r'^\\d+$')", r#"IsString(log.body) and IsMatch(log.body, "^\\d+$")"#),
        // A field in what is no map is null, and functions that fail make no condition true.
        (".a.b != 1", r#"not (IsMap(log.attributes["a"]) and not (log.attributes["a"]["b"] != 1))"#),
        (
            "exists(.a) && length(array!(.tags)) > 0",
            r#"log.attributes["a"] != nil and IsList(log.attributes["tags"]) and Len(log.attributes["tags"]) > 0"#,
        ),
        // `&&` and `||` are of one level.
        (
            ".a == 1 || .b == 2 && .c == 3",
            r#"(log.attributes["a"] == 1 or log.attributes["b"] == 2) and log.attributes["c"] == 3"#,
        ),
    ] {
        assert_eq!(condition(vrl, &Vocabulary::new(Origin::Lines)).as_deref(), Ok(ottl), "{vrl}");
    }
}

/// A conversion of an absent field has a value in VRL, and fulfils no comparison here: where it would, the condition is refused.
#[test]
fn conditions_that_an_absent_field_fulfils_are_refused() {
    let of = |text: &str| condition(text, &Vocabulary::new(Origin::Lines));
    for text in [
        "to_int!(.status) < 500",
        "to_int!(.status) != 7",
        "to_float!(.x) <= 0",
        "to_string!(.x) == \"\"",
        "to_string!(.x) != \"a\"",
        "to_int!(.x) > -1",
        "to_int!(.x) == .y",
        "to_bool!(.x)",
    ] {
        assert!(of(text).is_err(), "{text}: {:?}", of(text));
    }
    for text in ["to_int!(.status) >= 500", "to_float!(.x) > 0.5", "to_string!(.x) == \"a\""] {
        assert!(of(text).is_ok(), "{text}: {:?}", of(text));
    }
}

/// Functions that OTTL has with another meaning are not translated.
#[test]
fn functions_that_differ_are_refused() {
    for text in [
        ".a = camelcase(.b)",
        ".a = encode_json(.b)",
        ".a = strlen(.b)",
        ".a = parse_url!(.b).host",
        r#".a = "\u{1b}[0m""#,
        r#".a = "\{{ b }}""#,
        ".a = merge(.b, .c, deep: true)",
        ".a = .list[-1]",
        "x = parse_json!(.message)\n.a = x.list[-1]",
        "x = {}\nx.list[-1] = 1",
        ".a = values(.o)",
        "if .a == 1 { x, err = parse_json(.b)\n y, err = parse_json(.c) }",
    ] {
        assert!(!program(text).notes.is_empty(), "{text}: {:?}", lines(text));
    }
    for text in [". |= parse_logfmt!(.message)", ".a = parse_key_value!(.b)"] {
        assert!(
            program(text).notes.iter().any(|(_, note)| note.contains("word that has no value")),
            "{text}"
        );
    }
}

/// Branches in branches that change what their conditions look at are not translated again and again.
#[test]
fn nested_branches_are_bounded() {
    for depth in [8, 20, 200] {
        let text = format!("{}.a = 1{}", "if .a == 0 { .a = 2; ".repeat(depth), "\n}".repeat(depth));
        assert!(program(&text).lines.len() < 1000, "{depth}");
    }
    let chain = format!("if .a == 0 {{ .a = 1 }}{}", " else if .a == 1 { .a = 2 }".repeat(5000));
    assert_eq!(program(&chain).lines.len(), 1);
}

/// A statement that is not understood stays, with the place and the reason, and does not swallow the next line.
#[test]
fn unknown_statements_stay() {
    let translated = program(".a = 1\n.b = unnest(.c)\nfor_each(.d) -> |k, v| {\n  .e = k\n}\n.f = 2");
    let texts: Vec<&str> = translated.lines.iter().map(|line| line.text.as_str()).collect();
    let expected = [
        r#"set(log.attributes["a"], 1)"#,
        ".b = unnest(.c)",
        "for_each(.d) -> |k, v| { .e = k }",
        r#"set(log.attributes["f"], 2)"#,
    ];
    assert_eq!(texts, expected);
    assert_eq!(translated.notes.len(), 2);
    // Texts may be secrets, and notes go to terminals and tickets.
    let translated = program(r#".a = hmac(.message, "hunter2", algorithm: s'x')"#);
    let note = translated.notes.first().map(|(_, note)| note.as_str()).unwrap_or_default();
    assert!(
        note.contains(r#"hmac(.message, "***", algorithm: "***")"#) && !note.contains("hunter2"),
        "{note}"
    );
}

#[test]
fn errors_and_branches_keep_their_order() {
    let text = "x, err = parse_json(.message)\nif err != null { .bad = true } else { .x = x.y }";
    let expected = [
        r#"set(log.cache["x"], ParseJSON(log.body))"#,
        r#"set(log.attributes["bad"], true) where log.cache["x"] == nil"#,
        r#"set(log.attributes["x"], log.cache["x"]["y"]) where not (log.cache["x"] == nil) and IsMap(log.cache["x"]) and log.cache["x"]["y"] != nil"#,
    ];
    assert_eq!(lines(text), expected);
    // The first statement changes what the condition looks at.
    let expected = [
        r#"set(log.cache["value_1"], 1) where log.attributes["a"] == 1"#,
        r#"set(log.attributes["a"], 2) where log.cache["value_1"] == 1"#,
        r#"set(log.attributes["b"], 3) where log.cache["value_1"] == 1"#,
    ];
    assert_eq!(lines("if .a == 1 { .a = 2; .b = 3 }"), expected);
}

proptest! {
    /// No program makes it panic, and each is bounded.
    #[test]
    fn any_text_is_read(text in "[a-z.!?=|(){}\\[\\]\"'\\\\ ,:;0-9\n$#é-]{0,60}") {
        let _ = (program(&text), condition(&text, &Vocabulary::new(Origin::Syslog)));
    }
}
