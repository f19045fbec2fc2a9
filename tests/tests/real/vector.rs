//! The language of Vector's `remap`: an imported program makes of a record what the original makes of the event.

use serde_json::{Map, Value, json};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tidegate_tests::{binary as tidegate, finish, real_program};

/// How programs begin: the members of a line of JSON become the event, or join it.
const BEGINNINGS: [&str; 2] = [
    ". = parse_json!(string!(.message))\n",
    "parsed, err = parse_json(.message)\nif err == null {\n  . = merge!(., parsed)\n}\n",
];

/// Programs as people write them. None is noted by the import, and those that fail with an event say nothing about it: in Vector the
/// event goes on as it was, here the other statements have their way.
const PROGRAMS: &[&str] = &[
    ".x = upcase(string!(.app))",
    ".x = downcase(.level) ?? \"none\"",
    ".x = to_string(.n) ?? \"q\"",
    ".x = to_string(.f) ?? \"q\"",
    ".x = to_string(.b) ?? \"q\"",
    ".x = to_int(.status) ?? -1",
    ".x = to_int(.f) ?? -1",
    ".x = to_int(.b) ?? -1",
    ".x = to_float(.status) ?? -1.0",
    ".x = to_bool(.b) ?? false",
    ".x = to_bool(.status) ?? false",
    ".x = to_bool(.status) ?? true",
    ".x = to_bool(.yes) ?? false",
    ".x = to_bool(.yes) ?? true",
    ".x = to_bool(.n) ?? false",
    ".x = to_string(.o) ?? \"q\"",
    ".x = to_string(.yes) ?? \"q\"",
    ".x = int(.n) ?? 1",
    ".x = int(.f) ?? 1",
    ".x = string(.app) ?? \"d\"",
    ".x = (.n + 1) ?? 0",
    ".x = (.n * 2) ?? 0",
    ".x = (.n / 2) ?? 0.0",
    ".x = to_int(.status) ?? to_int(.n) ?? 0",
    ".x = .app || \"unknown\"",
    ".x = .b || \"no\"",
    ".x = is_null(.z)",
    ".x = exists(.o.d.e)",
    ".x = .o.d.e",
    ".x = .list[0]",
    ".x = length(.list) ?? 0",
    ".x = length(.s) ?? 0",
    ".x = strip_whitespace(string!(.s))",
    ".x = split(string!(.path), \"/\")",
    ".x = join!(split(string!(.path), \"/\"), \"-\")",
    ".x = starts_with(string!(.path), \"/a\")",
    ".x = ends_with(string!(.path), \"b\")",
    ".x = contains(string!(.level), \"in\", case_sensitive: false)",
    ".x = contains(string!(.level), \"IN\")",
    ".x = replace(string!(.level), \"a\", \"b\")",
    ".x = replace(string!(.s), r'\\s+', \"_\")",
    ".x = replace(string!(.s), r'(?P<letter>\\w)=', \"$letter:\")",
    ".x = slice!(.level, 1, 3)",
    ".x = match(string!(.level), r'(?i)w')",
    "if match(string!(.level), r'^i') { .x = \"i\" } else if .n == 7 { .x = \"seven\" } else { .x = \"z\" }",
    "if .b == true || .n == 7 { .x = 1 } else { .y = 2 }",
    "if !exists(.app) { .app = \"none\" }",
    "if exists(.o.k) { .k = del(.o.k) }",
    ".k = del(.o)",
    "del(.list[0])",
    "del(.o.d)",
    ".o.new = \"v\"",
    ".a.b.c = 1",
    ".list = push(array!(.list), \"q\")",
    ".list = append(array!(.list), [\"q\", \"r\"])",
    ".x = merge(object!(.o), {\"q\": 1})",
    ".x = keys(object!(.o))",
    ".x = parse_int(.status) ?? 5",
    ".x = parse_int(.zero) ?? 5",
    ".x = parse_int(.n) ?? 5",
    ".x = parse_int(.hex, 16) ?? 5",
    "x = parse_json!(string!(.copy))\n.first = x.list[0]",
    ".x = parse_regex(.message, r'^(?P<first>\\w+) (?P<rest>.*)$') ?? {}",
    ".x = md5(string!(.level))",
    ".x = sha1(string!(.level))",
    ".x = sha2(string!(.level), variant: \"SHA-256\")",
    ".x = encode_base64(string!(.level))",
    ".x = decode_base64(\"aGk=\") ?? \"q\"",
    ".x = parse_timestamp(.t, \"%Y-%m-%dT%H:%M:%SZ\") ?? now()\n.x = format_timestamp!(.x, format: \"%Y\")",
    ".x = to_unix_timestamp(parse_timestamp!(\"2024-05-01T10:20:30Z\", \"%+\"))",
    ".x = is_string(.app)\n.y = is_integer(.n)\n.w = is_float(.f)\n.v = is_boolean(.b)\n.u = is_array(.list)\n.t = is_object(.o)",
    ".x = is_nullish(.empty)\n.y = is_empty(.list) ?? true\n.w = is_empty(.s) ?? false",
    ".x = includes(array!(.list), \"x\")",
    ".x = {\"a\": .n, \"b\": [.f, \"c\"]}",
    ".x = [1, \"a\", .n]",
    "x = .n\n.y = x\nx = 5\n.w = x",
    ".x = \"v: \" + (to_string(.n) ?? \"q\")",
    ".n = null",
    ".x = if .n == 7 { \"a\" } else { \"b\" }",
    ".level = downcase(string!(.level))\nif .level == \"warn\" { .severity = 4 } else { .severity = 9 }",
    "if .n == 7 { abort }",
    "if .level == \"info\" { abort }\n.x = 1",
    ".x = snakecase(string!(.app))",
    ".id = uuid_v4()\ndel(.id)",
    ".x = (.status > 100) ?? false",
    "if (.status > 100) ?? false { .x = 1 }",
    ".x = .app == \"shop\" && .n == 7",
    ".x = !(.app == \"shop\")",
    ".x = .app != \"shop\"",
    ".a, err = to_int(.status)\nif err != null { .a = \"bad\" }",
    ".a, err = parse_json(.s)\nif err == null { .ok = true } else { .ok = false }",
    ". = {\"only\": .n, \"message\": .message}",
    ".x = .message",
    ".message = \"new\"",
    "del(.message)",
    ".x = del(.message)",
];

/// Conditions of filters, which are asked of an event made of a line of JSON. One that fails drops the event.
const CONDITIONS: &[&str] = &[
    "int!(.n) >= 5",
    "int!(.f) >= 1",
    ".n == 7",
    ".level == \"info\" || .b == true",
    "exists(.app) && string!(.app) != \"x\"",
    "match(string!(.level), r'^W') ",
    "!contains(string!(.level), \"IN\", case_sensitive: false)",
    "length(array!(.list)) > 0",
    "is_integer(.n)",
    "to_int!(.status) > 201",
    "includes(array!(.list), \"x\")",
    "starts_with(string!(.path), \"/a\")",
    "is_nullish(.empty)",
    "downcase(string!(.level)) == \"warn\"",
];

/// Lines of a log. A `z` that is `null` is absent here.
const LINES: &[&str] = &[
    r#"{"app":"shop","level":"WARN","status":"503","n":7,"f":1.5,"b":true,"z":null,"s":" a b ","list":["x","y",3],"o":{"k":"v","d":{"e":1}},"empty":"","path":"/a/b","yes":"Yes","zero":"010","hex":"1f","copy":"{\"list\":[4]}","message":"hello World"}"#,
    r#"{"level":"info","status":"200","n":-3,"f":2.25,"b":false,"s":"x=1 y=\"2 3\"","list":[],"o":{},"t":"2024-05-01T10:20:30Z","yes":"N","zero":"0x1f","hex":"0x1f"}"#,
    "{}",
    "no json",
];

/// Runs a command with a text on its standard input.
fn piped(command: &mut Command, input: &str) -> String {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    // What is written is less than a pipe holds, so nobody waits for the other.
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// A value without members that are null, and with all numbers as doubles: those of JSON are here.
fn normal(value: &Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(list) => list.iter().map(normal).collect(),
        Value::Object(map) => {
            let members = map.iter().filter(|(_, value)| !value.is_null());
            members.map(|(name, value)| (name.clone(), normal(value))).collect::<Map<_, _>>().into()
        }
        other => other.clone(),
    }
}

/// The value of an attribute of OTLP/JSON.
fn attribute(value: &Value) -> Value {
    let Some((kind, value)) = value.as_object().and_then(|value| value.iter().next()) else {
        return Value::Null;
    };
    match kind.as_str() {
        "intValue" => json!(value.as_str().unwrap().parse::<i64>().unwrap()),
        "arrayValue" => value["values"].as_array().into_iter().flatten().map(attribute).collect(),
        "kvlistValue" => members(&value["values"]).into(),
        _ => value.clone(),
    }
}

fn members(list: &Value) -> Map<String, Value> {
    let all = list.as_array().into_iter().flatten();
    all.map(|member| (member["key"].as_str().unwrap().to_owned(), attribute(&member["value"]))).collect()
}

/// The imported program's event for a line; nothing where it drops it.
fn imported(configuration: &Path, line: &str, pipeline: &str) -> Option<Value> {
    let record = json!({"body": {"stringValue": line}});
    let request = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]});
    let mut command = Command::new(tidegate());
    command.args(["pipeline", "eval", "--pipeline", pipeline, "--config"]).arg(configuration);
    let out = piped(&mut command, &format!("{request}\n"));
    let request: Value = serde_json::from_str(out.lines().next()?).unwrap();
    let record = &request["resourceLogs"][0]["scopeLogs"][0]["logRecords"][0];
    let mut event = members(&record["attributes"]);
    event.insert("message".to_owned(), attribute(&record["body"]));
    Some(normal(&event.into()))
}

/// Has these transforms imported, of which the last is `last`, into a file of this folder.
fn convert(folder: &Path, transforms: &Value, last: &str) -> PathBuf {
    let (original, configuration) = (folder.join("vector.json"), folder.join("tidegate.yaml"));
    let sink = json!({"type": "http", "inputs": [last], "uri": "http://127.0.0.1:1/", "encoding": {"codec": "json"}});
    let vector = json!({
        "sources": {"app": {"type": "file", "include": ["/srv/log/*.log"]}},
        "transforms": transforms,
        "sinks": {"out": sink},
    });
    // A dollar sign begins a variable in the file, and two are one.
    std::fs::write(&original, vector.to_string().replace('$', "$$")).unwrap();
    let converted = finish(Command::new(tidegate()).args(["import", "vector"]).arg(&original));
    assert_eq!(converted.code, Some(0), "{transforms}: {converted:?}");
    assert!(!converted.stderr.contains("transforms."), "{transforms}: {}", converted.stderr);
    std::fs::write(&configuration, converted.stdout).unwrap();
    configuration
}

/// The outcomes of a program in Vector, for each line.
fn outcomes(oracle: &Path, program: &str) -> Vec<Value> {
    let case = |line: &&str| format!("{}\n", json!({"program": program, "event": {"message": line}}));
    let cases: String = LINES.iter().map(case).collect();
    let outcomes = piped(&mut Command::new(oracle), &cases);
    let outcomes: Vec<Value> = outcomes.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(outcomes.iter().all(|outcome| outcome["invalid"].is_null()), "{program}: {outcomes:?}");
    assert_eq!(outcomes.len(), LINES.len());
    outcomes
}

#[test]
#[ignore = "`make test-real` runs it"]
fn imported_programs_do_what_the_originals_do() {
    let Some(oracle) = real_program("vrl", "oracle") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (mut same, mut failed, mut differences) = (0, 0, Vec::new());
    let programs = BEGINNINGS
        .iter()
        .flat_map(|beginning| PROGRAMS.iter().map(move |program| format!("{beginning}{program}")));
    for program in programs {
        let parse = json!({"parse": {"type": "remap", "inputs": ["app"], "source": program}});
        let configuration = convert(folder.path(), &parse, "parse");
        for (line, outcome) in LINES.iter().zip(outcomes(&oracle, &program)) {
            if !outcome["failed"].is_null() {
                failed += 1;
                continue;
            }
            let expected = outcome.get("event").map(normal);
            let found = imported(&configuration, line, "parse");
            if found == expected {
                same += 1;
            } else {
                differences
                    .push(format!("{program}\n  of {line}\n  Vector:   {expected:?}\n  tidegate: {found:?}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    println!("{same} events are the same, and {failed} programs failed with theirs");
    assert!(same > failed, "{same} and {failed}");
}

#[test]
#[ignore = "`make test-real` runs it"]
fn imported_filters_keep_what_the_originals_keep() {
    let Some(oracle) = real_program("vrl", "oracle") else { return };
    let folder = tempfile::tempdir().unwrap();
    let (mut kept, mut dropped, mut differences) = (0, 0, Vec::new());
    let [parse, _] = BEGINNINGS;
    for condition in CONDITIONS {
        let transforms = json!({
            "parse": {"type": "remap", "inputs": ["app"], "source": parse},
            "wanted": {"type": "filter", "inputs": ["parse"], "condition": condition},
        });
        let configuration = convert(folder.path(), &transforms, "wanted");
        let lines = LINES.iter().zip(outcomes(&oracle, &format!("{parse}{condition}")));
        // A line that is no JSON is no event for the condition alone.
        for (line, outcome) in lines.filter(|(line, _)| line.starts_with('{')) {
            let is_kept = outcome["result"] == true;
            *(if is_kept { &mut kept } else { &mut dropped }) += 1;
            if imported(&configuration, line, "wanted").is_some() != is_kept {
                differences.push(format!("{condition} of {line}: {outcome}"));
            }
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    println!("{kept} events are kept, and {dropped} are dropped");
    assert!(kept >= CONDITIONS.len() && dropped >= CONDITIONS.len(), "{kept} and {dropped}");
}
