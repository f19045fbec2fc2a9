//! The Collector accepts ⇔ this crate accepts: generated statements and conditions, valid and broken, against `pkg/ottl` itself
//! (`tests/oracles/pipeline`). The differences that are meant are listed in `docs/pipelines.md`, and in [`is_meant`].

mod generate;
mod public;

use super::check::{self, Scope};
use super::diagnostic::Diagnostic;
use super::field::Context;
use super::literals::Literals;
use generate::{Case, Generator};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

/// How many cases one run compares; `TIDEGATE_ORACLE_CASES` sets another number.
const CASES: u64 = 20_000;

#[test]
fn accepts_what_the_collector_accepts() {
    let number =
        std::env::var("TIDEGATE_ORACLE_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(CASES);
    let seed = std::env::var("TIDEGATE_ORACLE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut generator = Generator::new(seed);
    let cases: Vec<Case> = (0..number).map(|_| generator.case()).collect();
    let accepted = compare(&cases);
    if let Some(accepted) = accepted {
        // A generator whose statements are all refused would prove little.
        assert!(accepted > cases.len() / 5, "{accepted} of {} were accepted", cases.len());
    }
}

#[test]
fn accepts_statements_of_the_collectors_documentation() {
    compare(&public::cases());
}

/// Compares all cases; returns how many were accepted, and `None` without the oracle.
fn compare(cases: &[Case]) -> Option<usize> {
    let answers = ask(cases)?;
    assert_eq!(answers.len(), cases.len());
    let mut differences = Vec::new();
    let mut accepted = 0;
    for (case, answer) in cases.iter().zip(answers) {
        let theirs = answer["context"].as_str().filter(|context| !context.is_empty());
        let ours = check(case);
        accepted += usize::from(ours.is_ok());
        let same = match (&ours, theirs) {
            (Ok(context), Some(theirs)) => context.name() == theirs,
            (Err(_), None) => true,
            (Err(found), Some(_)) => found.iter().any(is_meant),
            (Ok(_), None) => is_more(case, answer["error"].as_str().unwrap_or_default()),
        };
        if !same {
            differences.push(format!("{case:?}\n  here: {ours:?}\n  there: {answer}"));
        }
    }
    let shown: Vec<_> = differences.iter().take(12).map(String::as_str).collect();
    assert!(differences.is_empty(), "{} differences:\n{}", differences.len(), shown.join("\n"));
    Some(accepted)
}

fn check(case: &Case) -> Result<Context, Vec<Diagnostic>> {
    let scope = Scope { contexts: case.signal.contexts(), given: None };
    let literals = &mut Literals::default();
    match case.condition {
        true => check::conditions(&[&case.text], scope, literals).map(|checked| checked.context),
        false => check::statements(&[&case.text], scope, literals).map(|checked| checked.context),
    }
}

/// Whether the Collector may accept what is refused with this error.
fn is_meant(diagnostic: &Diagnostic) -> bool {
    let message = &diagnostic.fault.message;
    let help = diagnostic.fault.help.as_deref().unwrap_or_default();
    [
        // Patterns are compiled when the configuration is read.
        "has to be a string literal",
        // XML, lambdas, profiles.
        "is not supported",
        // Lists of messages.
        "can only be counted",
        // Recursion and programs are bounded.
        "nests deeper than",
        "more than 64 operators",
        // The Collector accepts any function, and fails on each record.
        "is no function of one string",
        // It would be known to fail on each record.
        "has to be a list, not",
        "has no named group",
        "unknown variant",
        "needs `.` or `,` before it",
        "a path needs at least one key",
        "the mapping has to be a literal map",
        "the criteria of a level",
        "a criterion is a map",
        "`equals` is a list",
        "unknown range",
        "of a range is an integer",
        "a range needs",
        "is no delimiter",
        // The Collector prints errors into the text, or digits that stand for a fraction.
        "has no precision here",
        "a width or precision",
        "needs `.` or `,` before it",
        // Some encodings, and names of months in other languages, are left out.
        "unknown encoding",
        "unknown type",
        "contains itself",
        "in English only",
        // The Collector does not look at the arguments of `Now()` and its like.
        "takes at most 0 arguments",
        // The Collector lets the last value win, or lets the parameter be empty, and fails on each record.
        "has two values for its parameter",
        "needs a value for",
    ]
    .iter()
    .any(|part| message.contains(part))
        || help.contains("cannot be read or changed")
        || help.starts_with("use ")
        || help.contains("does not exist here")
}

/// Whether more is accepted here on purpose.
fn is_more(case: &Case, error: &str) -> bool {
    // Names may have blanks in them.
    let text = case.text.replace(char::is_whitespace, "");
    // The old name of `scope` is one in every place.
    text.contains("instrumentation_scope") && error.contains("instrumentation_scope")
        // The Collector derives names of parameters from its own, so that `source_ip` is `source_i_p` there, and `uri` is `u_r_i`.
        || (text.contains("CommunityID") || text.contains("URL")) && error.contains("no such parameter")
        // A function that only one context has says which one that is.
        || text.contains("IsRootSpan") && error.contains("unable to infer context")
}

/// The oracle's answers; `None`, said loudly, where it was not built.
fn ask(cases: &[Case]) -> Option<Vec<Value>> {
    let Some(oracle) = std::env::var_os("TIDEGATE_TEST_PIPELINE_ORACLE").filter(|path| !path.is_empty())
    else {
        eprintln!("SKIPPED: TIDEGATE_TEST_PIPELINE_ORACLE is not set; `make test` sets it");
        return None;
    };
    let mut command = Command::new(oracle);
    command.arg("ottl-check").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().expect("the oracle starts");
    let mut input = process.stdin.take().unwrap();
    let lines: Vec<String> = cases.iter().map(|case| case_json(case).to_string()).collect();
    let writer = std::thread::spawn(move || {
        for line in lines {
            writeln!(input, "{line}").unwrap();
        }
    });
    let output = BufReader::new(process.stdout.take().unwrap());
    let answers = output.lines().map(|line| serde_json::from_str(&line.unwrap()).unwrap()).collect();
    writer.join().unwrap();
    assert!(process.wait().unwrap().success());
    Some(answers)
}

fn case_json(case: &Case) -> Value {
    let texts = if case.condition { "conditions" } else { "statements" };
    json!({"signal": case.signal.name(), texts: [case.text]})
}
