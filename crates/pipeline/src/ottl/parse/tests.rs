//! The grammar's quirks, and where errors point.

use super::*;
use crate::ottl::syntax::ValueKind;

fn accepts(text: &str) -> bool {
    statement(text).is_ok()
}

#[test]
fn parses_what_the_collector_parses() {
    for text in [
        "set(a, b)",
        "set(a.b[\"c\"][0].d, b) where true and not false or x == 1",
        "set(a, {\"x\": 1 \"y\": [1, \"2\", nil]})",
        "set(a, {\"x\": 1, \"y\": {},})",
        "set(a, Is Match(b, \"c\"))",
        "de lete_key(a)",
        "set(a, -1 + 2 * (3 - x) / .5)",
        "set(a, Split(b, \",\")[0][x + 1])",
        "replace_pattern(a, \"x\", \"$$1\", SHA256, replacement_format=\"%s\")",
        "replace_pattern(a, \"x\", \"$$1\", function=ToLowerCase)",
        "f() where (a == 1)",
        "f() where ((1 + 2)) == 3",
        "f() where not (IsMatch(a, \"b\") and (a < b or true))",
        "f() where [1] == a[1.5]",
        "f() where where == where",
        "set(a, 0x1F)",
        "set(a, 010)",
    ] {
        assert!(accepts(text), "{text}: {:?}", statement(text).err());
    }
}

#[test]
fn refuses_what_the_collector_refuses() {
    for text in [
        "",
        "a",
        "set",
        "set(",
        "set(a,)",
        "set(a b)",
        "set(a, b) c",
        "set(a, b)[1]",
        "Set(a)",
        "set(a, foo(b))",
        "set(a, b[1 + 2])",
        "set(a, b[])",
        "set(a, [1,])",
        "set(a, {,})",
        "set(a, 08)",
        "set(a, 9223372036854775808)",
        "set(a, 0x123)",
        "set(a, 1e5)",
        "set(a, - - 1)",
        "set(a, Foo)\" where",
        "set(a, [Foo])",
        "set(a, b) where a",
        "set(a, b) where not not true",
        "set(a, b) where (a)",
        "set(a, b) where a == (b == c)",
        "set(a, b) where a == b == c",
        "set(a, (x) => x)",
        "set(a, () => 1)",
        "set(a, =1)",
        "set(a, b=c=1)",
        "set(a., 1)",
    ] {
        assert!(!accepts(text), "{text}");
    }
}

#[test]
fn points_at_what_is_wrong_and_says_what_was_expected() {
    for (text, range, message, help) in [
        ("set(a, b", 8..8, "expected `.`, `,` or `)`, found the end", None),
        ("set(a b)", 6..7, "expected", None),
        ("set(a, b) wher x", 10..14, "found `wher`", None),
        ("set(a, b) where c = 1", 18..19, "found `=`", Some("compare with `==`")),
        ("set(a, b) where c matches \"x\"", 18..25, "found `matches`", Some("write `IsMatch")),
        ("set(a, 0x123)", 7..12, "even number", None),
        ("set(a, 08)", 7..9, "not a number", Some("a leading 0 means base 8")),
        ("set(a, (k, v) => v)", 7..16, "lambda expressions are not supported", None),
        ("set(a, b ? c : d)", 9..10, "unexpected '?'", Some("two statements")),
        ("set(a, \"\\d\")", 8..10, "escape", Some("`\\\\d` for a digit")),
    ] {
        let fault = statement(text).unwrap_err();
        assert_eq!(fault.range, range, "{text}: {fault:?}");
        assert!(fault.message.contains(message), "{text}: {fault:?}");
        if let Some(help) = help {
            assert!(fault.help.as_deref().unwrap_or_default().contains(help), "{text}: {fault:?}");
        }
    }
}

#[test]
fn numbers_are_read_as_go_reads_them() {
    for (text, expected) in [("0", 0), ("010", 8), ("9223372036854775807", i64::MAX), ("00", 0)] {
        let tree = statement(&format!("f({text})")).unwrap();
        let value = &tree.editor.arguments[0].value;
        assert!(matches!(value.kind, ValueKind::Int(value) if value == expected), "{text}: {value:?}");
        assert_eq!(value.range, 2..2 + text.len());
    }
}

#[test]
fn nothing_nests_deeper_than_the_bound() {
    let nested = |open: &str, close: &str, times: usize| {
        format!("f() where a == {}1{}", open.repeat(times), close.repeat(times))
    };
    for (open, close) in [("(", ")"), ("[", "]"), ("A(", ")"), ("{\"a\":", "}"), ("x[", "]")] {
        assert!(accepts(&nested(open, close, DEEPEST - 1)), "{open}");
        for times in [DEEPEST + 1, 100_000] {
            let fault = statement(&nested(open, close, times)).unwrap_err();
            assert!(fault.message.contains("deeper"), "{open}: {fault:?}");
        }
    }
    assert!(!accepts(&format!("f() where {}true{}", "(".repeat(100_000), ")".repeat(100_000))));
    assert!(!accepts(&format!("f(1{})", "+1".repeat(DEEPEST + 1))));
    assert!(accepts(&format!("f() where true{}", " or true".repeat(10_000))));
}
