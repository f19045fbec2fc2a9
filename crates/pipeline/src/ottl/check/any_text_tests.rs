//! Any text compiles, or is refused with places that are within it.

use super::super::field::Context;
use super::*;
use proptest::prelude::*;

/// Words that statements are made of, so that many texts get far.
fn word() -> impl Strategy<Value = String> {
    let known = proptest::sample::select(vec![
        "set(",
        "delete_key(",
        "IsMatch(",
        "Concat(",
        "log.attributes",
        "log.body",
        "span.name",
        "resource.",
        "attributes[\"ä\"]",
        "[",
        "]",
        "(",
        ")",
        "{",
        "}",
        ",",
        ":",
        "=",
        "==",
        "!=",
        "<",
        "+",
        "-",
        "*",
        "where",
        "and",
        "or",
        "not",
        "nil",
        "true",
        "\"a\"",
        "\"(\"",
        "\"é\\\"\"",
        "1",
        "2.5",
        "0xff",
        "0x1",
        "08",
        "SEVERITY_NUMBER_INFO",
        "Foo",
        "_",
        "=>",
        ".",
        " ",
        "\n",
    ]);
    prop_oneof![8 => known.prop_map(str::to_owned), 1 => "\\PC{0,3}"]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn places_are_within_the_text(words in prop::collection::vec(word(), 0..30), spaces in any::<bool>(), given in any::<bool>()) {
        let text = words.join(if spaces { " " } else { "" });
        let scope = Scope { given: given.then_some(Context::Log), ..Scope::ALL };
        let mut literals = Literals::default();
        let mut found = Vec::new();
        match statements(&[&text], scope, &mut literals) {
            Ok(checked) => found.extend(checked.warnings),
            Err(errors) => {
                prop_assert!(errors.iter().any(|one| one.severity == Severity::Error), "{text}");
                found.extend(errors);
            }
        }
        match conditions(&[&text], scope, &mut literals) {
            Ok(checked) => found.extend(checked.warnings),
            Err(errors) => found.extend(errors),
        }
        for one in found {
            prop_assert!(text.get(one.fault.range.clone()).is_some(), "{text}: {one:?}");
            prop_assert!(!one.fault.message.is_empty());
        }
    }
}
