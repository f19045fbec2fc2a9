//! Rules do what Prometheus' own `model/relabel` does.

use super::random::{self, Random};
use super::*;
use std::io::Write as _;
use std::process::{Command, Stdio};

const CASES: usize = 100_000;

fn json(rule: &RuleDefinition) -> serde_json::Value {
    let mut out = serde_json::Map::new();
    let texts = [
        ("separator", &rule.separator),
        ("target_label", &rule.target_label),
        ("replacement", &rule.replacement),
        ("action", &rule.action),
    ];
    for (field, text) in texts {
        if let Some(text) = text {
            out.insert(field.into(), text.clone().into());
        }
    }
    if !rule.source_labels.is_empty() {
        out.insert("source_labels".into(), rule.source_labels.clone().into());
    }
    if let [regex] = &*rule.regex {
        out.insert("regex".into(), regex.clone().into());
    }
    if let Some(modulus) = rule.modulus {
        out.insert("modulus".into(), modulus.into());
    }
    out.into()
}

/// A hundred thousand random cases: equal labels, equal drops, equal refusals of rules.
#[test]
fn rules_do_what_prometheus_does() {
    let Some(oracle) =
        std::env::var_os("TIDEGATE_TEST_PIPELINE_ORACLE").filter(|path| std::path::Path::new(path).exists())
    else {
        eprintln!(
            "SKIPPED: rules are not compared with Prometheus: TIDEGATE_TEST_PIPELINE_ORACLE names no program"
        );
        return;
    };
    let mut random = Random(0x5eed_1234_5678_9abc);
    let mut cases = Vec::new();
    while cases.len() < CASES {
        let rules: Vec<RuleDefinition> =
            (0..1 + random.below(5)).map(|_| random::rule(&mut random)).collect();
        for _ in 0..20 {
            cases.push((rules.clone(), random::labels(&mut random)));
        }
    }
    let mut child =
        Command::new(oracle).arg("relabel").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let lines: Vec<String> = cases
        .iter()
        .map(|(rules, labels)| {
            let rules = serde_json::Value::from(rules.iter().map(json).collect::<Vec<_>>()).to_string();
            let labels: serde_json::Map<_, _> =
                labels.iter().map(|(name, value)| (name.clone(), value.clone().into())).collect();
            serde_json::json!({"rules": rules, "labels": labels}).to_string()
        })
        .collect();
    let writer = std::thread::spawn(move || {
        for line in lines {
            writeln!(input, "{line}").unwrap();
        }
    });
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let answers: Vec<serde_json::Value> =
        serde_json::Deserializer::from_slice(&output.stdout).into_iter().map(Result::unwrap).collect();
    assert_eq!(answers.len(), cases.len());
    let (mut refused, mut dropped, mut kept) = (0, 0, 0);
    type Compiled<'a> = (&'a [RuleDefinition], Result<Rules, Vec<Problem>>);
    let mut compiled: Option<Compiled<'_>> = None;
    for ((definitions, given), answer) in cases.iter().zip(&answers) {
        if compiled.as_ref().is_none_or(|(known, _)| known != definitions) {
            let step = StepRules { step: 0, on_error: ErrorMode::Ignore, rules: definitions };
            compiled = Some((definitions, Rules::compile(&[step]).map(|(rules, _)| rules)));
        }
        let Some((_, result)) = &compiled else { unreachable!() };
        let context = || format!("{definitions:#?}\non {given:?}\nPrometheus: {answer}");
        let error = answer.get("error");
        let rules = match (result, error) {
            (Err(_), Some(_)) => {
                refused += 1;
                continue;
            }
            (Ok(rules), None) => rules,
            (Err(problems), None) => panic!("refused: {problems:?}\n{}", context()),
            (Ok(_), Some(_)) => panic!("accepted\n{}", context()),
        };
        let ours = relabeled(rules, given);
        let theirs = (answer["keep"] == true).then(|| {
            let labels = answer.get("labels").and_then(serde_json::Value::as_object);
            let pairs = labels.into_iter().flatten();
            // A label without a name, which no receiver accepts, is not made.
            let mut labels: Vec<(String, String)> = pairs
                .filter(|(name, _)| !name.is_empty())
                .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().into()))
                .collect();
            labels.sort();
            labels
        });
        assert_eq!(ours, theirs, "{}", context());
        *(if ours.is_some() { &mut kept } else { &mut dropped }) += 1;
    }
    assert!(refused > 1_000 && dropped > 1_000 && kept > 10_000, "{refused} {dropped} {kept}");
}
