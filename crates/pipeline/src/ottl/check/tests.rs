//! Tests of the checker: statements that compile, by context, and the texts of errors and warnings.

use super::*;
use crate::ottl::program::{Argument, Expression};
use crate::value::Value;

fn check(text: &str) -> Result<Checked<Statement>, Vec<Diagnostic>> {
    statements(&[text], Scope::ALL, &mut Literals::default())
}

fn condition_of(text: &str) -> Result<Checked<Condition>, Vec<Diagnostic>> {
    conditions(&[text], Scope::ALL, &mut Literals::default())
}

fn marked<'t>(text: &'t str, diagnostic: &Diagnostic) -> &'t str {
    &text[diagnostic.fault.range.clone()]
}

#[test]
fn a_list_has_the_lowest_context_of_its_paths() {
    for (texts, context) in [
        (vec!["set(resource.attributes[\"a\"], 1)"], Context::Resource),
        (vec!["set(resource.attributes[\"a\"], log.body)"], Context::Log),
        (vec!["set(scope.name, \"a\")", "set(resource.attributes[\"a\"], 1)"], Context::Scope),
        (vec!["set(instrumentation_scope.name, \"a\")"], Context::Scope),
        (vec!["set(span.name, \"a\")", "set(spanevent.name, span.name)"], Context::SpanEvent),
        (vec!["set(metric.name, \"a\") where datapoint.flags == 1"], Context::DataPoint),
        (vec!["set(metric.name, resource.attributes[metric.unit])"], Context::Metric),
        // No resource has the enum: the lowest context that has it.
        (vec!["set(resource.attributes[\"a\"], SPAN_KIND_SERVER)"], Context::SpanEvent),
        (vec!["set(resource.attributes[\"a\"], SEVERITY_NUMBER_INFO)"], Context::Log),
    ] {
        let checked = statements(&texts, Scope::ALL, &mut Literals::default()).unwrap();
        assert_eq!(checked.context, context, "{texts:?}");
        assert_eq!(checked.programs.len(), texts.len());
        assert_eq!(checked.uses.len(), texts.len());
    }
}

#[test]
fn a_function_that_one_context_has_says_which_that_is() {
    for (text, context) in [
        ("convert_sum_to_gauge()", Context::Metric),
        ("merge_histogram_buckets(0.5)", Context::DataPoint),
        ("set_semconv_span_name(\"1.37.0\")", Context::Span),
    ] {
        assert_eq!(check(text).unwrap().context, context, "{text}");
    }
    assert_eq!(condition_of("IsRootSpan()").unwrap().context, Context::Span);
    assert_eq!(condition_of("HasAttrKeyOnDatapoint(\"a\")").unwrap().context, Context::Metric);
    let text = "convert_sum_to_gauge() where datapoint.flags == 1";
    let found = check(text).unwrap_err();
    assert_eq!(marked(text, &found[0]), "convert_sum_to_gauge");
    assert_eq!(found[0].fault.help.as_deref(), Some("it exists in `metric`"));
}

#[test]
fn lists_of_messages_are_only_counted() {
    for text in [
        "set(span.attributes[\"a\"], Len(span.events)) where span.links != nil",
        "set(metric.name, \"a\") where nil == metric.data_points and Len(metric.data_points) > 1",
        "set(datapoint.flags, Len(datapoint.exemplars)) where Len(datapoint.quantile_values) == 0",
    ] {
        assert!(check(text).is_ok(), "{text}");
    }
    for (text, path) in [
        ("set(span.attributes[\"a\"], span.events)", "span.events"),
        ("set(span.links, nil)", "span.links"),
        ("set(span.name, String(span.events))", "span.events"),
        ("set(span.name, \"a\") where span.events == span.links", "span.events"),
        ("set(span.name, \"a\") where Len([span.events]) == 1", "span.events"),
        ("set(span.name, \"a\") where Len(span.attributes[Keys(span.events)]) == 1", "span.events"),
    ] {
        let found = check(text).unwrap_err();
        assert_eq!(marked(text, &found[0]), path, "{text}");
        assert!(found[0].fault.message.ends_with("can only be counted"), "{found:?}");
    }
}

#[test]
fn contexts_that_do_not_meet_are_refused() {
    let text = "set(span.name, log.body)";
    let found = check(text).unwrap_err();
    assert_eq!(marked(text, &found[0]), "span.name");
    assert!(found[0].fault.message.contains("`span` cannot be used together with `log`"), "{found:?}");
    let logs = Scope { contexts: &[Context::Resource, Context::Scope, Context::Log], given: None };
    let found = statements(&["set(span.name, \"a\")"], logs, &mut Literals::default()).unwrap_err();
    assert!(found[0].fault.message.contains("no context `span`"), "{found:?}");
    let found = check("set(attributes[\"a\"], 1)").unwrap_err();
    assert_eq!(found[0].fault.message, super::context::NONE);
}

#[test]
fn a_given_context_is_that_of_paths_without_one() {
    let scope = Scope { given: Some(Context::Log), ..Scope::ALL };
    for text in [
        "set(attributes[\"a\"], body)",
        "set(log.attributes[\"a\"], body.string)",
        "set(body, resource.schema_url)",
    ] {
        assert_eq!(
            statements(&[text], scope, &mut Literals::default()).unwrap().context,
            Context::Log,
            "{text}"
        );
    }
    assert!(statements(&["set(span.name, \"a\")"], scope, &mut Literals::default()).is_err());
}

#[test]
fn all_errors_come_at_once_and_point_at_their_cause() {
    let texts = [
        "set(log.atributes[\"a\"], Foo(log.bdy, log.severity_text[1]))",
        "set(log.body",
        "set(log.body, SEVERITY_NUMBER_WARNING) where log.cache[\"a\"] == resource.cache[\"b\"]",
    ];
    let found = statements(&texts, Scope::ALL, &mut Literals::default()).unwrap_err();
    let seen: Vec<_> = found.iter().map(|one| (one.item, marked(texts[one.item], one))).collect();
    assert_eq!(
        seen,
        [
            (0, "atributes[\"a\"]"),
            (0, "Foo"),
            (0, "bdy"),
            (0, "1"),
            (1, ""),
            (2, "SEVERITY_NUMBER_WARNING"),
            (2, "resource.cache[\"b\"]"),
        ],
        "{found:#?}"
    );
    assert_eq!(found[0].fault.help.as_deref(), Some("did you mean `log.attributes`?"));
    assert_eq!(found[2].fault.help.as_deref(), Some("did you mean `log.body`?"));
}

#[test]
fn suggests_what_was_meant() {
    for (text, help) in [
        ("st(log.body, 1)", "did you mean `set`?"),
        ("set(log.body, has_prefix(log.body, \"a\"))", "did you mean `HasPrefix`?"),
        ("set(log.body, HasPrefx(log.body, \"a\"))", "did you mean `HasPrefix`?"),
        ("set(log.severity, 1)", "its paths are"),
        ("set(log.attributes.foo.bar, 1)", "write `log.attributes[\"foo.bar\"]`"),
        (
            "set(log.body, attributes[\"a\"])",
            "write `log.attributes` or `scope.attributes` or `resource.attributes`",
        ),
        ("set(log.body, SEVERITY_NUMBER_WARM)", "did you mean `SEVERITY_NUMBER_WARN`?"),
        ("set(log.body, SPAN_KIND_SERVER)", "it belongs to `spanevent` and `span`"),
        ("set(span.status, 1)", "use `span.status.code`"),
        ("set(log.body, ERROR)", "write strings in double quotes"),
    ] {
        let found = check(text).unwrap_err();
        let helped = found.iter().any(|one| one.fault.help.as_deref().unwrap_or_default().contains(help));
        assert!(helped, "{text}: {found:#?}");
    }
}

#[test]
fn arguments_fit_parameters_as_in_go() {
    for text in [
        "set(target=log.body, value=1)",
        "replace_pattern(log.body, \"a\", \"b\", replacement_format=\"%s\", function=SHA256)",
        "replace_pattern(log.body, \"a\", \"b\", replacementFormat=\"%s\")",
        "keep_keys(log.attributes, [\"a\", log.body.string])",
        "limit(log.attributes, 10, [\"a\"])",
        "set(log.body, Int(\"2\"))",
        "set(log.body, Int(2.7))",
        "set(log.body, Concat([1, nil, {\"a\": 1}], \"-\"))",
        "set(log.body, Concat(log.body, \"-\"))",
        "keep_keys(log.attributes, log.body)",
        "set(log.body, -(5))",
        "append(log.body, values=[1])",
    ] {
        assert!(check(text).is_ok(), "{text}: {:?}", check(text).err());
    }
    for (text, at) in [
        ("set(log.body)", "set(log.body)"),
        ("set(log.body, 1, 2)", "2"),
        ("set(value=1, log.body)", "log.body"),
        ("set(log.body, 1, target=log.body)", "log.body"),
        ("set(1, log.body)", "1"),
        ("set((log.body), 2)", "(log.body)"),
        ("set(log.body, Int(\"2.7\"))", "\"2.7\""),
        ("set(log.body, Int([1]))", "[1]"),
        ("set(log.body, SHA256(1))", "1"),
        ("set(log.body, HasPrefix(log.body, nil))", "nil"),
        ("limit(log.attributes, -1, [\"a\"])", "-1"),
        ("limit(log.attributes, (1), [\"a\"])", "(1)"),
        ("limit(log.attributes, 1, [log.body])", "log.body"),
        ("keep_keys(log.attributes, \"a\", \"b\")", "\"b\""),
        ("keep_keys(log.attributes, \"a\")", "\"a\""),
        ("append(log.body, values=log.body)", "log.body"),
        ("keep_keys(log.attributes, [1])", "1"),
        ("merge_maps(log.attributes, [1], \"insert\")", "[1]"),
        ("replace_pattern(log.body, \"a\", \"b\", Foo)", "Foo"),
        ("set(log.body, Trim(log.body, x=1))", "x"),
        ("set(log.body, {\"a\": [[{}]]})", "{\"a\": [[{}]]}"),
    ] {
        let found = check(text).unwrap_err();
        assert!(found.iter().any(|one| marked(text, one) == at), "{text}: {found:#?}");
    }
}

#[test]
fn warns_of_what_never_does_what_is_meant() {
    for (text, message) in [
        ("set(log.attributes[\"a\"], log.attributes[\"b\"])", "stores an empty value"),
        (
            "set(log.attributes[\"a\"], log.attributes[\"b\"]) where log.attributes[\"c\"] != nil",
            "stores an empty value",
        ),
        ("set(log.attributes[\"a\"], SHA256(log.severity_number))", "always fails"),
        ("set(spanevent.event_index, 1)", "cannot be changed"),
        ("delete_key(log.severity_text, \"a\")", "always fails"),
        ("set(log.body, 1) where log.severity_number == \"ERROR\"", "this is always false"),
        ("set(log.body, 1) where log.severity_text != nil", "this is always true"),
        ("set(log.body, 1) where Split(log.body, \"a\")", "returns no boolean"),
    ] {
        let checked = check(text).unwrap();
        assert!(
            checked.warnings.iter().any(|one| one.fault.message.contains(message)),
            "{text}: {checked:#?}"
        );
        assert!(checked.warnings.iter().all(|one| one.severity == Severity::Warning));
    }
    for text in [
        "set(log.attributes[\"a\"], log.attributes[\"b\"]) where log.attributes[\"b\"] != nil",
        "set(log.attributes[\"a\"], log.body)",
        "set(log.attributes[log.attributes[\"k\"]], log.attributes[\"b\"]) where log.attributes[\"b\"] != nil",
        "set(log.body, 1) where log.severity_number >= SEVERITY_NUMBER_WARN",
        "set(log.body, 1) where log.attributes[\"a\"] == nil and log.severity_number == 1.5",
        "set(log.body, 1) where IsString(log.body) and IsInt(log.severity_text)",
    ] {
        assert_eq!(check(text).unwrap().warnings, [], "{text}");
    }
}

#[test]
fn conditions_compile_alone() {
    for (text, context) in [
        ("log.severity_number < SEVERITY_NUMBER_WARN", Context::Log),
        ("HasPrefix(span.name, \"/health\") or resource.attributes[\"a\"] == nil", Context::Span),
        ("datapoint.value_int + 1 > 2", Context::DataPoint),
    ] {
        assert_eq!(condition_of(text).unwrap().context, context, "{text}");
    }
    for text in ["true", "log.body", "set(log.body, 1)", "log.body == 1 where true"] {
        assert!(condition_of(text).is_err(), "{text}");
    }
}

#[test]
fn says_what_a_text_reads_and_writes() {
    let mut literals = Literals::default();
    let text =
        "set(log.attributes[\"a\"], resource.attributes[\"b\"]) where log.cache[log.body.string] == nil";
    let checked = statements(&[text], Scope::ALL, &mut literals).unwrap();
    let seen: Vec<_> = checked.uses[0]
        .iter()
        .map(|one| (one.context, one.field, one.key.map(|key| literals.get(key)), one.target))
        .collect();
    assert_eq!(
        seen,
        [
            (Context::Log, Field::Attributes, Some(&b"a"[..]), true),
            (Context::Resource, Field::Attributes, Some(&b"b"[..]), false),
            (Context::Log, Field::BodyText, None, false),
            (Context::Log, Field::Cache, None, false),
        ]
    );
}

#[test]
fn equal_literals_share_their_bytes() {
    let mut literals = Literals::default();
    let text = "set(log.attributes[\"same\"], \"same\")";
    let checked = statements(&[text, text], Scope::ALL, &mut literals).unwrap();
    assert_eq!(literals.bytes(), b"same");
    let [_, Argument::Value(Expression::Literal(Value::Text(slice)))] = &*checked.programs[1].call.arguments
    else {
        panic!("{checked:?}");
    };
    assert_eq!(literals.get(*slice), b"same");
}
