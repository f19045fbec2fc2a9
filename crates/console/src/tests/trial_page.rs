//! The page of pipelines: the form, and the report of a trial.

use super::golden::assert_golden;
use super::sample::healthy;
use crate::trial::Fragment;
use crate::{
    ChangeReport, ItemReport, LONGEST_ANSWER, ListedPipeline, PipelineStep, SourcePipeline, StatementReport,
    Status, TextProblem, TrialAnswer, TrialForm, TrialReport, pipelines_page,
};
use serde_json::{Value, json};

/// Some configured pipelines.
pub(super) fn pipelines() -> Vec<ListedPipeline> {
    let listed = |name: &str, sources: &[&'static str], sinks: &[&str], steps: Option<&str>| ListedPipeline {
        name: name.to_owned(),
        sources: sources.to_vec(),
        sinks: sinks.iter().map(|sink| (*sink).to_owned()).collect(),
        steps: steps.map(str::to_owned),
    };
    vec![
        listed(
            "clean",
            &[],
            &["lake", "upstream"],
            Some("- drop: log.body == \"<x>\"\n- edit:   # \"why\"\n    - set(log.body, \"${SALT}\")"),
        ),
        listed("names", &["otlp"], &["upstream"], None),
        listed("spare", &[], &[], Some("- relabel: []")),
    ]
}

/// A gateway with them.
pub(super) fn status() -> Status {
    let mut status = healthy();
    let step = |step: &str, filtered, failures| PipelineStep {
        pipeline: "clean".to_owned(),
        step: step.to_owned(),
        items: 12_345,
        filtered,
        sampled_out: 0,
        failures,
    };
    status.sinks[0].pipeline = vec![step("quiet", 45, 0), step("2", 0, 3)];
    status.sinks[1].pipeline = vec![step("quiet", 45, 0)];
    let step = PipelineStep { pipeline: "names".to_owned(), items: 777, ..step("1", 7, 0) };
    status.source_pipelines = vec![SourcePipeline { source: "otlp".to_owned(), steps: vec![step] }];
    status
}

fn report() -> TrialReport {
    let statement = |step: &str, what: &str, changed, dropped, failed| StatementReport {
        step: step.to_owned(),
        what: what.to_owned(),
        changed,
        dropped,
        failed,
        explained: true,
    };
    let change = |statement, path: &str, was: Value, now: Value| ChangeReport {
        statement,
        path: path.to_owned(),
        was: Some(was).filter(|was| !was.is_null()),
        now: Some(now).filter(|now| !now.is_null()),
    };
    let item = |line, kind, before: Value, after: Option<Value>, changes| ItemReport {
        line,
        kind,
        before,
        after,
        dropped_by: None,
        changes,
    };
    TrialReport {
        notes: vec!["Took 2 items.".to_owned()],
        warnings: vec!["line 2, column 3: this <is> never true".to_owned()],
        items_problems: vec![TextProblem {
            line: 7,
            column: 0,
            width: 0,
            excerpt: "up{job=}".to_owned(),
            message: "`up{job=}` is no series".to_owned(),
            help: String::new(),
        }],
        statements: vec![
            statement("1", "drop log.body == \"b\"", 0, 1, 0),
            statement("names", "set(log.attributes[\"env\"], \"prod\")", 1, 0, 1),
            StatementReport { explained: false, ..statement("3", "relabel rule 1: labeldrop", 0, 0, 0) },
        ],
        items: vec![
            item(
                1,
                "log record",
                json!({"body": "a <b>", "attributes": {"n": 1}}),
                Some(json!({"body": "a <b>", "attributes": {"n": 1, "env": "prod"}})),
                vec![change(1, "attributes.env", Value::Null, json!("prod"))],
            ),
            ItemReport {
                dropped_by: Some(0),
                ..item(2, "log record", json!({"body": "b"}), None, Vec::new())
            },
            item(
                3,
                "series",
                json!("up{job=\"a\",replica=\"0\"}"),
                Some(json!("up{env=\"prod\",job=\"a\"}")),
                Vec::new(),
            ),
            item(4, "span", json!({"name": "same"}), Some(json!({"name": "same"})), Vec::new()),
        ],
        made: vec![json!({"name": "new"})],
        ..TrialReport::default()
    }
}

/// The page as it stands with this part of it.
fn page(part: &str) -> String {
    let mut out = String::new();
    pipelines_page::begin(&status(), Some(&pipelines()), &mut out).unwrap();
    out.push_str(part);
    pipelines_page::end(&mut out).unwrap();
    out
}

fn answer(form: &TrialForm, report: &TrialReport, most: usize) -> String {
    let answer = TrialAnswer::page(form, report, &["clean".to_owned()], most);
    String::from_utf8(answer.bytes().to_vec()).unwrap()
}

fn example() -> TrialForm {
    TrialForm {
        steps: "\n- drop: log.body == \"b\"\n".to_owned(),
        items: "{\"body\": \"a <b>\"}\n</textarea>&amp;".to_owned(),
    }
}

#[test]
fn the_page_is_as_it_was() {
    let answer = answer(&example(), &report(), LONGEST_ANSWER);
    assert_golden("pipelines.html", &page(answer.strip_prefix("200\n").unwrap()));
    let problems = TrialReport {
        steps_problems: vec![TextProblem {
            line: 12,
            column: 9,
            width: 3,
            excerpt: "- edit: sett(log.body, 1)".to_owned(),
            message: "there is no function `sett`".to_owned(),
            help: "did you mean `set`?".to_owned(),
        }],
        ..TrialReport::default()
    };
    let answer = self::answer(&TrialForm::default(), &problems, LONGEST_ANSWER);
    assert_golden("pipelines-problems.html", answer.strip_prefix("200\n").unwrap());
}

/// Nothing is fetched and nothing runs; every control has a name; what was pasted comes back as it was.
#[test]
fn the_page_stands_alone_and_is_named() {
    let html = page(&answer(&example(), &report(), LONGEST_ANSWER));
    for outside in [
        "<script",
        "<link",
        "<img",
        "@import",
        "url(",
        "javascript:",
        " onload",
        " onclick",
        "http:",
        "https:",
    ] {
        assert!(!html.contains(outside), "{outside}");
    }
    for name in ["steps", "items"] {
        assert!(
            html.contains(&format!("<label for=\"{name}\">")) && html.contains(&format!("id=\"{name}\"")),
            "{name}"
        );
        assert!(
            html.contains(&format!("aria-describedby=\"{name}-hint\""))
                && html.contains(&format!("id=\"{name}-hint\""))
        );
    }
    assert_eq!(html.matches("</textarea>").count(), 2);
    assert!(html.contains("\n{\"body\": \"a &lt;b&gt;\"}\n&lt;/textarea&gt;&amp;amp;</textarea>"));
}

/// No text of a report is markup.
#[test]
fn no_text_of_a_report_is_markup() {
    let hostile = "<i>\"'&\u{202e}\u{1b}";
    let mut report = report();
    report.notes = vec![hostile.to_owned()];
    report.warnings = vec![hostile.to_owned()];
    let count = |report: &TrialReport| {
        let html = answer(&TrialForm::default(), report, LONGEST_ANSWER);
        assert!(!html.contains("<i>") && !html.contains('\u{202e}') && !html.contains('\u{1b}'), "{html}");
        html.matches('<').count()
    };
    let before = count(&report);
    for it in &mut report.statements {
        (it.step, it.what) = (hostile.to_owned(), hostile.to_owned());
    }
    report.items_problems[0].excerpt = hostile.to_owned();
    report.items_problems[0].message = hostile.to_owned();
    report.items[0].changes[0].path = hostile.to_owned();
    report.items[0].changes[0].was = Some(json!(hostile));
    report.items[1].before = json!({hostile: hostile});
    assert_eq!(count(&report), before);
}

/// Items that do not fit are left out whole, and the page says so.
#[test]
fn an_answer_keeps_its_bound() {
    let mut report = report();
    report.items = vec![report.items[0].clone(); 2_000];
    for most in [20_000, 100_000] {
        let html = answer(&example(), &report, most);
        assert!(html.len() <= most && html.ends_with("</section>\n"), "{} of {most}", html.len());
        assert!(html.contains("more items not shown: the page would be too long"), "{most}");
        assert_eq!(html.matches("<article").count(), html.matches("</article>").count());
        let json = TrialAnswer::json(&report, most);
        let parsed: Value = serde_json::from_slice(&json.bytes()[4..]).unwrap();
        let shown = parsed["items"].as_array().unwrap().len();
        assert!(json.bytes().len() <= most && shown > 0);
        assert_eq!(shown + usize::try_from(parsed["items_not_shown"].as_u64().unwrap()).unwrap(), 2_000);
    }
    let signs = TrialForm { steps: "- x".to_owned(), items: "<".repeat(100_000) };
    let html = answer(&signs, &TrialReport::default(), 100_000);
    assert!(
        html.len() <= 100_000 && html.contains("- x</textarea>") && html.contains("cannot show them again")
    );
    assert!(Fragment::new(3).push("abc") && !Fragment::new(3).push("abcd"));
}
