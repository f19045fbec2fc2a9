//! Each action, on labels: cases in our own words after what Prometheus and vmagent document and test.

use super::*;

/// Applies a single rule.
fn check(fields: &[(&str, &str)], given: &str, expected: &str) {
    let rules = compile(&[rule(fields)]);
    let left = relabeled(&rules, &labels(given)).map_or("dropped".into(), |left| joined(&left));
    assert_eq!(left, expected, "{fields:?} on {given}");
}

#[test]
fn replace_sets_a_label_to_what_matched() {
    let host: &[_] = &[("source_labels", "a,b"), ("regex", "f(.*);(.*)r"), ("target_label", "c")];
    check(host, "a=foo,b=bar", "a=foo,b=bar,c=oo");
    check(host, "a=boo,b=bar", "a=boo,b=bar");
    let template: &[_] = &[
        ("source_labels", "a"),
        ("regex", "some-([^-]+)-([^,]+)"),
        ("replacement", "${2}"),
        ("target_label", "${1}"),
    ];
    check(template, "a=some-job2-boo", "a=some-job2-boo,job2=boo");
    check(template, "a=some-4-boo", "4=boo,a=some-4-boo");
    let empty: &[_] =
        &[("source_labels", "a"), ("regex", "(f).*"), ("target_label", "b"), ("replacement", "$2")];
    check(empty, "a=foo,b=bar", "a=foo");
    check(&[("target_label", "c"), ("replacement", "x")], "a=1", "a=1,c=x");
    check(&[("target_label", "a"), ("replacement", "")], "a=1,b=2", "b=2");
    check(&[("source_labels", "a"), ("target_label", "b")], "a=1", "a=1,b=1");
    check(&[("source_labels", "missing"), ("target_label", "b")], "a=1,b=2", "a=1");
    check(&[("source_labels", "a,b"), ("separator", "-"), ("target_label", "c")], "a=1,b=2", "a=1,b=2,c=1-2");
    check(&[("source_labels", "a"), ("regex", "x(y)?"), ("target_label", "$1")], "a=x", "a=x");
    check(
        &[("source_labels", "a"), ("regex", "(.)(.)"), ("replacement", "$2$1"), ("target_label", "a")],
        "a=éß",
        "a=ßé",
    );
    check(
        &[("source_labels", "a"), ("regexes", "b,c"), ("replacement", "yes"), ("target_label", "d")],
        "a=c",
        "a=c,d=yes",
    );
}

#[test]
fn replacements_refer_to_labels_as_in_vmagent() {
    let refers: &[_] = &[("target_label", "c"), ("replacement", "{{a}}-{{b}}/{{missing}}.")];
    check(refers, "a=1,b=2", "a=1,b=2,c=1-2/.");
    let both: &[_] =
        &[("source_labels", "a"), ("regex", "(.)(.)"), ("target_label", "c"), ("replacement", "$2{{b}}$1")];
    check(both, "a=xy,b=$1", "a=xy,b=$1,c=y$1x");
    check(&[("target_label", "c"), ("replacement", "{{a")], "a=1", "a=1,c={{a");
    let unmatched: &[_] =
        &[("source_labels", "a"), ("regex", "no"), ("target_label", "c"), ("replacement", "{{a}}")];
    check(unmatched, "a=1", "a=1");
}

#[test]
fn keep_and_drop_look_at_whole_values() {
    check(&[("source_labels", "a"), ("regex", ".*o.*"), ("action", "drop")], "a=foo", "dropped");
    check(&[("source_labels", "a"), ("regex", "o"), ("action", "drop")], "a=foo", "a=foo");
    check(&[("source_labels", "a"), ("regex", "f|foo"), ("action", "KEEP")], "a=foo", "a=foo");
    check(&[("source_labels", "a"), ("regex", "no-match"), ("action", "keep")], "a=foo", "dropped");
    check(&[("source_labels", "z"), ("regex", ""), ("action", "keep")], "a=foo", "a=foo");
    check(&[("source_labels", "a"), ("target_label", "b"), ("action", "keepequal")], "a=1,b=1", "a=1,b=1");
    check(&[("source_labels", "a"), ("target_label", "b"), ("action", "keepequal")], "a=1,b=2", "dropped");
    check(&[("source_labels", "a"), ("target_label", "b"), ("action", "dropequal")], "a=1,b=1", "dropped");
    check(&[("source_labels", "x"), ("target_label", "y"), ("action", "dropequal")], "a=1", "dropped");
}

#[test]
fn labels_are_mapped_dropped_and_kept_by_name() {
    check(
        &[("regex", "(b.*)"), ("replacement", "bar_${1}"), ("action", "labelmap")],
        "a=1,b1=2",
        "a=1,b1=2,bar_b1=2",
    );
    check(&[("regex", "__meta_(m.*)"), ("action", "labelmap")], "__meta_my=x,a=1", "__meta_my=x,a=1,my=x");
    check(&[("regex", "a(x)?"), ("action", "labelmap")], "a=1", "a=1");
    check(&[("regex", "(b.*)"), ("action", "labeldrop")], "a=1,b1=2,b2=3", "a=1");
    check(&[("regex", "(b.*)"), ("action", "labelkeep")], "a=1,b1=2,b2=3", "b1=2,b2=3");
    check(&[("regex", ".*"), ("action", "labeldrop")], "a=1", "");
    let renames: &[_] = &[("regex", "\\."), ("replacement", "_"), ("action", "labelmap_all")];
    check(renames, "a.b.c=1,d=2", "a_b_c=1,d=2");
}

#[test]
fn cases_and_hashes_are_set() {
    check(
        &[("source_labels", "a"), ("target_label", "b"), ("action", "uppercase")],
        "a=bAr1",
        "a=bAr1,b=BAR1",
    );
    check(&[("source_labels", "a"), ("target_label", "a"), ("action", "lowercase")], "a=ÄR", "a=är");
    let hash: &[_] =
        &[("source_labels", "c"), ("target_label", "d"), ("action", "hashmod"), ("modulus", "1000")];
    check(hash, "c=baz", "c=baz,d=976");
}

#[test]
fn the_actions_of_vmagent_are_there() {
    let all: &[_] = &[
        ("source_labels", "a"),
        ("target_label", "a"),
        ("regex", "-"),
        ("replacement", "_"),
        ("action", "replace_all"),
    ];
    check(all, "a=-x-y-", "a=_x_y_");
    check(all, "b=1", "b=1");
    let empty: &[_] = &[
        ("source_labels", "a"),
        ("target_label", "b"),
        ("regex", "x*"),
        ("replacement", "."),
        ("action", "replace_all"),
    ];
    check(empty, "a=axé", "a=axé,b=.a.é.");
    let equal = |action| [("source_labels", "a,b,c"), ("action", action)];
    check(&equal("keep_if_equal"), "a=1,b=1,c=1", "a=1,b=1,c=1");
    check(&equal("keep_if_equal"), "a=1,b=1", "dropped");
    check(&equal("drop_if_equal"), "a=1,b=1,c=1", "dropped");
    check(&equal("drop_if_equal"), "a=1,b=1,c=2", "a=1,b=1,c=2");
    let contains = |action| [("source_labels", "a,b"), ("target_label", "t"), ("action", action)];
    check(&contains("keep_if_contains"), "a=x,b=y,t=-x-y-", "a=x,b=y,t=-x-y-");
    check(&contains("keep_if_contains"), "a=x,b=z,t=-x-y-", "dropped");
    check(&contains("drop_if_contains"), "a=x,t=-x-", "dropped");
    check(&[("regex", "up|go_.*"), ("action", "keep_metrics")], "__name__=go_gc", "__name__=go_gc");
    check(&[("regex", "up|go_.*"), ("action", "keep_metrics")], "__name__=x", "dropped");
    check(&[("regexes", "up,go_.*"), ("action", "drop_metrics")], "__name__=up", "dropped");
    check(&[("if", "up"), ("action", "drop_metrics")], "__name__=up", "dropped");
}

#[test]
fn conditions_select_series() {
    let drop = |selector: &str, given: &str| {
        let rules = compile(&[rule(&[("if", selector), ("action", "drop")])]);
        relabeled(&rules, &labels(given)).is_none()
    };
    let series = "__name__=up,job=api,zone=eu-1";
    for (selector, expected) in [
        ("up", true),
        ("down", false),
        ("up{}", true),
        ("{}", true),
        (r#"up{job="api"}"#, true),
        (r#" { job = 'api' , zone=~"eu-.", } "#, true),
        (r#"{job!="api"}"#, false),
        (r#"{job=~"a"}"#, false),
        (r#"{zone!~"us-.*"}"#, true),
        (r#"{missing=""}"#, true),
        (r#"{missing!=""}"#, false),
        (r#"{missing=~"|x"}"#, true),
        (r#"{job="x" or zone="eu-1"}"#, true),
        (r#"up{job="x" or zone="us"}"#, false),
        (r#"{"up",job="api"}"#, true),
        (r#"{__name__=~"u.+"}"#, true),
        (r#"{"job"=`api`}"#, true),
        (r#"{zone=~"eu-\\d"}"#, true),
    ] {
        assert_eq!(drop(selector, series), expected, "{selector}");
    }
    // One of several is enough; `keep` drops what no condition selects.
    check(&[("if", "a"), ("if", "b"), ("action", "drop")], "__name__=b", "dropped");
    check(&[("if", "a"), ("action", "keep")], "__name__=b", "dropped");
    check(&[("if", "b"), ("action", "keep")], "__name__=b", "__name__=b");
    check(&[("if", "a"), ("target_label", "x"), ("replacement", "1")], "__name__=b", "__name__=b");
}

#[test]
fn what_each_rule_did_can_be_seen() {
    let rules = compile(&[
        rule(&[("target_label", "c"), ("replacement", "x")]),
        rule(&[("regex", "a"), ("action", "labeldrop")]),
        rule(&[("source_labels", "c"), ("regex", "x"), ("action", "drop")]),
        rule(&[("target_label", "never"), ("replacement", "x")]),
    ]);
    let applied = explain(&rules, &labels("a=1"));
    let left: Vec<_> = applied.iter().map(|rule| rule.labels.as_deref().map(joined)).collect();
    assert_eq!(left, [Some("a=1,c=x".into()), Some("c=x".into()), None]);
    assert_eq!(
        applied.iter().map(|rule| (rule.step, rule.rule)).collect::<Vec<_>>(),
        [(0, 0), (0, 1), (0, 2)]
    );
}

/// A rule that would make more than receivers accept fails and leaves the series as it was.
#[test]
fn a_rule_that_makes_too_much_fails() {
    let rules = compile(&[rule(&[
        ("source_labels", "a"),
        ("regex", "(.*)"),
        ("target_label", "b"),
        ("replacement", "$1$1"),
    ])]);
    let given = vec![("a".to_string(), "x".repeat(40 << 10))];
    let applied = explain(&rules, &given);
    assert_eq!(applied[0].labels.as_ref(), Some(&given));
    assert_eq!(applied[0].failure.as_deref(), Some("the result is too large"));
}
