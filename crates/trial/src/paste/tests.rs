use super::*;

fn shape(pasted: &Pasted) -> Vec<(Format, Vec<usize>)> {
    pasted.bodies.iter().map(|body| (body.format, body.lines.clone())).collect()
}

fn problems(pasted: &Pasted) -> Vec<(usize, &str)> {
    pasted.problems.iter().map(|problem| (problem.line, problem.message.as_str())).collect()
}

const SERIES: Format = Format::RemoteWrite(Version::V1);
const LOGS: Format = Format::Otlp(Signal::Logs);
const TRACES: Format = Format::Otlp(Signal::Traces);
const METRICS: Format = Format::Otlp(Signal::Metrics);

#[test]
fn each_form_is_recognised() {
    assert_eq!(shape(&read("up{job=\"a\"} 1\n\n# TYPE up gauge\nup\n")), [(SERIES, vec![1, 4])]);
    assert_eq!(shape(&read("{\"http.requests\",job=\"a\"}")), [(SERIES, vec![1])]);
    let items = "{\"body\": \"a\"}\n{\"signal\": \"logs\", \"body\": \"b\"}\n{\"name\": \"GET /\", \"kind\": \"server\"}\n{\"name\": \"m\", \"value\": 1}";
    assert_eq!(shape(&read(items)), [(LOGS, vec![1, 2]), (TRACES, vec![3]), (METRICS, vec![4])]);
    let request = "\n{\"resourceLogs\": [{\"scopeLogs\": [{\"logRecords\": [\n {\"body\": {\"stringValue\": \"a\"}}, {}]}]}]}\n{\"body\": \"b\"}";
    assert_eq!(shape(&read(request)), [(LOGS, vec![2, 2]), (LOGS, vec![4])]);
    assert_eq!(shape(&read("[{\"body\": \"a\"},\n {\"body\": \"b\"}]")), [(LOGS, vec![1, 1])]);
    assert_eq!(shape(&read("{\"body\": \"a\"},\n{\"body\": \"b\"}\n")), [(LOGS, vec![1, 2])]);
    assert_eq!(shape(&read(" \n")), []);
}

/// A mistake in one line is said with its line, and the others are read.
#[test]
fn what_cannot_be_read_is_named_by_its_line() {
    let pasted = read("up{job=\"a\"}\nup{job=}\nup");
    assert_eq!(shape(&pasted), [(SERIES, vec![1, 3])]);
    assert_eq!(problems(&pasted), [(2, "`up{job=}` is no series; write `up{job=\"a\"}`")]);

    let pasted = read(
        "{\"body\": \"a\"}\n{\"body\": \n{\"body\": \"c\", \"atributes\": {\"a\": 1}}\n{\"body\": \"d\"}",
    );
    assert_eq!(shape(&pasted), [(LOGS, vec![1, 4])]);
    let [(3, misspelt), (line, json)] = problems(&pasted)[..]
        .try_into()
        .map(|mut found: [_; 2]| {
            found.sort_by_key(|(_, words): &(usize, &str)| !words.contains("atributes"));
            found
        })
        .unwrap()
    else {
        panic!("{:?}", pasted.problems)
    };
    assert!(misspelt.contains("`atributes` is no member of a log record"), "{misspelt}");
    assert!((2..=4).contains(&line) && json.starts_with("this is no JSON"), "{line}: {json}");

    for (text, words) in [
        ("{\"signal\": \"lgos\"}", "there is no signal `lgos`"),
        ("{\"at\": \"source:otlp\", \"received\": \"2026-01-01T00:00:00Z\"}", "a line of `tidegate tap`"),
        ("{\"resourceLogs\": 1}", "OTLP/JSON"),
        ("[1]", "a group of members"),
        ("{\"a\": ", "this is no JSON"),
    ] {
        let pasted = read(text);
        assert!(pasted.bodies.is_empty(), "{text}");
        assert!(problems(&pasted)[0].1.contains(words), "{text}: {:?}", pasted.problems);
    }
}

#[test]
fn only_so_many_items_are_read() {
    for text in ["up\n".repeat(MOST_ITEMS + 5), "{\"body\":1}\n".repeat(MOST_ITEMS + 5)] {
        let pasted = read(&text);
        assert_eq!(pasted.bodies.iter().map(|body| body.lines.len()).sum::<usize>(), MOST_ITEMS);
        assert!(problems(&pasted)[0].1.starts_with("these are 1005 items"), "{:?}", pasted.problems);
    }
}

/// No text makes it panic, or loses a line without a word.
#[test]
fn no_text_is_lost_in_silence() {
    for text in [
        "{",
        "[",
        "{}",
        "[[]]",
        "{\"a\":1}}",
        "{]",
        "\"x\"",
        "1 2",
        "null",
        "{\"resourceSpans\":[]}",
        "é{",
        "{\u{0}",
    ] {
        let pasted = read(text);
        assert!(!pasted.bodies.is_empty() || !pasted.problems.is_empty(), "{text}");
    }
}
