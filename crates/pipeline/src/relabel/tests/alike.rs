//! Series that are like others of their body become what they become alone.

use super::bodies::{Series, check};
use super::random::{self, Random};
use super::*;
use tidegate_wire::remote_write::Version;

/// Bodies of few kinds of series, which differ in some values: with the rules of Prometheus and with those of vmagent.
#[test]
fn series_that_are_alike_change_as_each_does_alone() {
    let mut random = Random(0x0dd_ba11_cafe_d00d);
    let own = [
        rule(&[("action", "drop"), ("if", r#"{a=~"foo.*", job!="up"}"#)]),
        rule(&[("target_label", "b"), ("replacement", "{{job}}-{{a}}")]),
        rule(&[("target_label", "le"), ("if", "up"), ("replacement", "x")]),
        rule(&[("action", "keep_if_contains"), ("source_labels", "a"), ("target_label", "job")]),
        rule(&[("action", "drop_if_equal"), ("source_labels", "a,b")]),
        rule(&[
            ("action", "replace_all"),
            ("source_labels", "job"),
            ("regex", "o"),
            ("target_label", "ab"),
            ("replacement", "0"),
        ]),
        rule(&[("action", "labelmap_all"), ("regex", "_"), ("replacement", "-")]),
    ];
    let (mut compiled, mut with_recipes) = (0, 0);
    while compiled < 400 {
        let mut definitions: Vec<_> = (0..1 + random.below(4)).map(|_| random::rule(&mut random)).collect();
        if random.chance(40) {
            let place = random.below(definitions.len() + 1);
            definitions.insert(place, own[random.below(own.len())].clone());
        }
        let step = StepRules { step: 0, on_error: ErrorMode::Ignore, rules: &definitions };
        let Ok((rules, _)) = Rules::compile(&[step]) else { continue };
        compiled += 1;
        with_recipes += usize::from(rules.traits.reads.is_some());
        let kinds: Vec<_> = (0..3).map(|_| random::labels(&mut random)).collect();
        let all: Vec<Series> = (0..60)
            .map(|_| {
                let mut labels = kinds[random.below(kinds.len())].clone();
                random::change(&mut random, &mut labels);
                Series { labels, samples: 1 + random.below(3), exemplars: random.below(2), scattered: false }
            })
            .filter(|series| !series.labels.is_empty())
            .collect();
        check(Version::V1, &rules, &all);
        check(Version::V2, &rules, &all);
    }
    assert!(with_recipes > 200, "{with_recipes}");
}
