//! The files that sources follow: `tidegate file ls`, the page `/files`, and inputs that change on reload.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use tidegate_tests::{Gateway, SOON, finish, free_address, until};

const TAKEN: &str = "the configuration was read again";
const REFUSED: &str = "the configuration was not changed";

fn append(path: &Path, lines: &[String]) {
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    file.write_all((lines.join("\n") + "\n").as_bytes()).unwrap();
}

fn lines(name: &str, from: u32, to: u32) -> Vec<String> {
    (from..to).map(|n| format!("{name} {n:06} {}", "x".repeat(80))).collect()
}

/// A gateway with a folder for log files, which reads what `inputs` says of it.
struct Follower {
    gateway: Gateway,
    logs: PathBuf,
}

impl Follower {
    fn new() -> Follower {
        let gateway = Gateway::new(json!({}));
        let logs = gateway.folder().join("logs");
        fs::create_dir(&logs).unwrap();
        Follower { gateway, logs }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.logs.join(name)
    }

    fn input(&self, pattern: &str) -> Value {
        json!({"include": [format!("{}/{pattern}", self.logs.display())]})
    }

    fn configure(&self, file: Value) {
        self.gateway.configure(json!({
            "memory": "96MiB",
            "sources": {"file": file},
            "sinks": {"lake": {"type": "lake", "file_age": "1s"}},
        }));
    }

    /// Has the gateway read these inputs, and waits until its log says what became of them.
    fn reload(&mut self, inputs: Value, outcome: &str) {
        let count = |gateway: &Gateway| gateway.log().matches(outcome).count();
        let before = count(&self.gateway);
        self.configure(json!({"inputs": inputs}));
        self.gateway.hangup();
        until(SOON, "the configuration to be read", || count(&self.gateway) > before);
    }

    fn ls(&self, more: &[&str]) -> tidegate_tests::Finished {
        let admin = self.gateway.admin().to_string();
        let args: Vec<&str> =
            ["file", "ls", "--admin", &admin].into_iter().chain(more.iter().copied()).collect();
        finish(&mut tidegate_tests::command(&args))
    }

    /// The files as `--json` prints them.
    fn files(&self, more: &[&str]) -> Vec<Value> {
        let args: Vec<&str> = ["--json"].into_iter().chain(more.iter().copied()).collect();
        let out = self.ls(&args).succeeded();
        out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn texts(&self) -> Vec<String> {
        let rows = self.gateway.lake_rows("logs");
        rows.iter().map(|row| row["body"].as_str().unwrap().to_owned()).collect()
    }

    /// Waits until the lake has as many records, and checks that they are these, once each.
    fn expect(&self, mut expected: Vec<String>) {
        expected.sort();
        until(SOON, "the lines to be read", || self.texts().len() >= expected.len());
        self.gateway.at_rest(SOON);
        let mut found = self.texts();
        found.sort();
        let missing: Vec<_> =
            expected.iter().filter(|text| found.binary_search(text).is_err()).take(3).collect();
        assert!(found == expected, "{} of {}; missing {missing:?}", found.len(), expected.len());
    }
}

/// Each file is listed with its offset and size, and those that are not read with the reason.
#[test]
fn lists_the_files_of_a_running_gateway() {
    let mut follower = Follower::new();
    let text = lines("a", 0, 100);
    append(&follower.path("a.log"), &text);
    append(&follower.path("b.log"), &lines("b", 0, 10));
    fs::write(follower.path("old.log.gz"), b"\x1f\x8b not really compressed").unwrap();
    follower.configure(json!({"inputs": {"web": follower.input("*.log*")}}));
    follower.gateway.start();
    follower.expect([text, lines("b", 0, 10)].concat());
    until(SOON, "the files to be at rest", || {
        let files = follower.files(&[]);
        files.len() == 3 && files.iter().all(|file| file["lag_bytes"] == 0 && file["state"] != "reading")
    });
    let files = follower.files(&["a.log"]);
    let size = fs::metadata(follower.path("a.log")).unwrap().len();
    assert_eq!(files.len(), 1);
    assert_eq!((&files[0]["offset"], &files[0]["size"]), (&json!(size), &json!(size)));
    assert_eq!((&files[0]["records"], &files[0]["input"]), (&json!(100), &json!("web")));
    let skipped = follower.files(&["*.gz"]);
    assert_eq!(skipped[0]["state"], "skipped");
    assert!(skipped[0]["reason"].as_str().unwrap().contains("compressed"), "{skipped:?}");

    let table = follower.ls(&["--sort", "path"]).succeeded();
    let (head, rest) = table.split_once('\n').unwrap();
    assert!(head.starts_with("path") && head.contains("lag") && head.contains("lines/s"), "{table}");
    let place = |name: &str| rest.find(name).unwrap_or_else(|| panic!("{name} in {table}"));
    assert!(place("/a.log") < place("/b.log") && place("/b.log") < place("/old.log.gz"));
    assert!(rest.contains("file: 3 files match of 3 known"), "{table}");

    let page = follower.gateway.page("/files?format=html").text();
    assert!(page.contains("/a.log") && page.contains("old.log.gz"), "{page}");
    let wrong = follower.ls(&["[a"]);
    assert!(wrong.code != Some(0) && wrong.stderr.contains("no pattern of paths"), "{}", wrong.stderr);
}

/// A deleted file that is held is listed with the disk space that it takes.
#[test]
fn a_deleted_file_is_listed_while_it_is_held() {
    let mut follower = Follower::new();
    append(&follower.path("a.log"), &lines("a", 0, 1000));
    follower.configure(json!({"inputs": {"web": follower.input("*.log")}}));
    follower.gateway.start();
    follower.expect(lines("a", 0, 1000));
    let size = fs::metadata(follower.path("a.log")).unwrap().len();
    fs::remove_file(follower.path("a.log")).unwrap();
    until(SOON, "the file to be held", || {
        follower.files(&[]).first().is_some_and(|file| file["state"] == "deleted" && file["size"] == size)
    });
    let table = follower.ls(&[]).succeeded();
    assert!(table.contains("1 files without a name are held, which take"), "{table}");
}

/// With thousands of files each is listed once, a page after the other, and no answer is longer than the console may make it.
#[test]
fn thousands_of_files_are_listed_once_each() {
    const FILES: usize = 3000;
    let mut follower = Follower::new();
    for n in 0..FILES {
        append(&follower.path(&format!("{n}.log")), &[format!("file {n}")]);
    }
    follower.configure(json!({"inputs": {"web": follower.input("*.log")}, "max_files": 4000}));
    follower.gateway.start();
    until(SOON, "all files to be known", || follower.files(&["--all"]).len() == FILES);
    let paths: BTreeSet<String> =
        follower.files(&["--all"]).iter().map(|file| file["path"].as_str().unwrap().to_owned()).collect();
    assert_eq!(paths.len(), FILES);
    assert_eq!(follower.files(&[]).len(), 100);
    let table = follower.ls(&["--limit", "7"]).succeeded();
    assert!(table.contains("2993 more files are not shown"), "{table}");
    let answer = follower.gateway.page("/files.json?sort=none&limit=500").text();
    assert!(answer.len() < 512 << 10);
}

/// The errors say what to do: no gateway, and one that follows no files.
#[test]
fn says_why_there_is_no_list() {
    let mut follower = Follower::new();
    follower.configure(json!({"inputs": {"web": follower.input("*.log")}}));
    let config = follower.gateway.config();
    let nobody = finish(&mut tidegate_tests::command(&["file", "ls", "--config", config.to_str().unwrap()]));
    assert!(nobody.code != Some(0) && nobody.stderr.contains("is it running"), "{}", nobody.stderr);
    follower.configure(json!({}));
    follower.gateway.start();
    let none = follower.ls(&[]);
    assert!(
        none.code != Some(0) && none.stderr.contains("no source of this gateway follows files"),
        "{}",
        none.stderr
    );
}

/// Inputs that are added, removed and changed while lines are written: every line is read once. A refused reload changes nothing.
#[test]
fn inputs_change_on_reload() {
    let mut follower = Follower::new();
    append(&follower.path("a.log"), &lines("a", 0, 100));
    append(&follower.path("b.txt"), &lines("b", 0, 100));
    let log = json!({"logs": follower.input("*.log")});
    let both = json!({"logs": follower.input("*.log"), "texts": follower.input("*.txt")});
    follower.configure(json!({"inputs": log}));
    follower.gateway.start();
    follower.expect(lines("a", 0, 100));

    follower.reload(both.clone(), TAKEN);
    let mut expected = [lines("a", 0, 100), lines("b", 0, 100)].concat();
    follower.expect(expected.clone());

    let mut wrong = both.clone();
    wrong["logs"]["include"] = json!(["relative/*.log"]);
    follower.reload(wrong, REFUSED);
    append(&follower.path("b.txt"), &lines("b", 100, 200));
    expected.extend(lines("b", 100, 200));
    follower.expect(expected.clone());

    follower.reload(log, TAKEN);
    until(SOON, "the files of the removed input to be let go", || follower.files(&["--all"]).len() == 1);
    append(&follower.path("b.txt"), &lines("b", 200, 300));
    append(&follower.path("a.log"), &lines("a", 100, 200));
    expected.extend(lines("a", 100, 200));
    follower.expect(expected.clone());

    // It goes on where it ended.
    follower.reload(both.clone(), TAKEN);
    expected.extend(lines("b", 200, 300));
    follower.expect(expected.clone());

    let mut grouped = both.clone();
    grouped["logs"]["multiline"] = json!({"start_pattern": "^> ", "timeout": "200ms"});
    follower.reload(grouped, TAKEN);
    append(&follower.path("a.log"), &["> one".to_owned(), "more".to_owned(), "> two".to_owned()]);
    expected.extend(["> one\nmore".to_owned(), "> two".to_owned()]);
    follower.expect(expected.clone());

    follower.reload(both.clone(), TAKEN);
    for round in 3..8 {
        append(&follower.path("a.log"), &lines("a", round * 100, round * 100 + 100));
        follower.reload(both.clone(), TAKEN);
        expected.extend(lines("a", round * 100, round * 100 + 100));
        append(&follower.path("b.txt"), &lines("b", round * 100, round * 100 + 100));
        let mut compressed = both.clone();
        compressed["logs"]["compressed"] = json!(true);
        follower.reload(compressed, TAKEN);
        expected.extend(lines("b", round * 100, round * 100 + 100));
    }
    follower.expect(expected.clone());
    follower.gateway.kill9();
    follower.gateway.start();
    append(&follower.path("a.log"), &lines("last", 0, 10));
    expected.extend(lines("last", 0, 10));
    follower.expect(expected);
    follower.gateway.books_close();
}

/// Each input parses its own lines, and a reload changes that.
#[test]
fn an_input_parses_its_own_lines() {
    let mut follower = Follower::new();
    let json_line = r#"{"level":"warn","msg":"from json","tidegate.level":"error"}"#.to_owned();
    append(&follower.path("a.log"), std::slice::from_ref(&json_line));
    append(&follower.path("b.txt"), &["level=error msg=\"from logfmt\"".to_owned()]);
    // Other bytes: a file with those of another is its copy.
    let raw_line = r#"{"level":"info","msg":"left as it is"}"#.to_owned();
    append(&follower.path("c.raw"), std::slice::from_ref(&raw_line));
    let mut inputs = json!({
        "logs": follower.input("*.log"), "texts": follower.input("*.txt"), "raw": follower.input("*.raw"),
    });
    inputs["logs"]["parse"] = json!("json");
    inputs["texts"]["parse"] = json!("logfmt");
    follower.configure(json!({"inputs": inputs}));
    follower.gateway.start();
    follower.expect(vec!["from json".to_owned(), "from logfmt".to_owned(), raw_line.clone()]);
    let rows = follower.gateway.lake_rows("logs");
    let severity = |body: &str| rows.iter().find(|row| row["body"] == body).unwrap()["severity_text"].clone();
    assert_eq!((severity("from json"), severity("from logfmt")), (json!("warn"), json!("error")));

    inputs["raw"]["parse"] = json!("auto");
    follower.reload(inputs, TAKEN);
    append(&follower.path("c.raw"), &[r#"{"level":30,"msg":"parsed now"}"#.to_owned()]);
    follower.expect(["from json", "from logfmt", &raw_line, "parsed now"].map(str::to_owned).to_vec());
}

/// `tidegate check` names the settings with mistakes that would prevent the start.
#[test]
fn check_finds_bad_patterns_and_zones() {
    let gateway = Gateway::new(json!({
        "sources": {
            "file": {"inputs": {
                "a": {"include": ["relative/*.log", "/var/log/[a"], "exclude": ["/x/../y"]},
            }},
            "syslog": {"listeners": {"net": {"address": "udp://127.0.0.1:0", "timezone": "Europe/Nowhere"}}},
        },
    }));
    let config = gateway.config();
    let checked = finish(&mut tidegate_tests::command(&["check", config.to_str().unwrap()]));
    assert!(checked.code != Some(0));
    for text in [
        "`sources.file.inputs.a.include`: \"relative/*.log\"",
        "`sources.file.inputs.a.include`: \"/var/log/[a\"",
        "`sources.file.inputs.a.exclude`",
        "`sources.syslog.listeners.net.timezone`: the system has no time zone `Europe/Nowhere`",
    ] {
        assert!(checked.stderr.contains(text), "{text} in {}", checked.stderr);
    }
    gateway.configure(json!({
        "sources": {"file": {"inputs": {"a": {"include": ["/var/log/*"], "multiline": {"start_pattern": "(a"}}}}},
    }));
    let checked = finish(&mut tidegate_tests::command(&["check", config.to_str().unwrap()]));
    assert!(checked.stderr.contains("sources.file.inputs.a.multiline.start_pattern"), "{}", checked.stderr);
}

/// Pages go through the files of all sources, each once, also where paths alone fill a page.
#[test]
fn the_whole_list_of_two_sources_ends() {
    let mut follower = Follower::new();
    let mut expected = BTreeSet::new();
    for number in 0..3 {
        let path = follower.path(&format!("{number}.log"));
        append(&path, &lines("own", 0, 1));
        expected.insert(path);
    }
    let pods = follower.gateway.folder().join("pods");
    for number in 0..400 {
        let container = pods.join(format!("shop_{}-{number}_uid-{number}/app", "long-name".repeat(10)));
        fs::create_dir_all(&container).unwrap();
        let path = container.join("0.log");
        append(&path, &["2026-01-01T00:00:00.000000000Z stdout F a line".to_owned()]);
        expected.insert(path);
    }
    // Nobody answers there: the records carry what their paths say.
    let api = json!({"url": format!("http://{}", free_address())});
    follower.gateway.configure(json!({
        "memory": "96MiB",
        "sources": {
            "file": {"inputs": {"main": follower.input("*.log")}},
            "kubernetes_logs": {"enabled": true, "node": "a", "path": pods, "metadata_timeout": "0s", "api": api},
        },
        "sinks": {"lake": {"type": "lake", "file_age": "1s"}},
    }));
    follower.gateway.start();
    let listed = |follower: &Follower| -> Vec<PathBuf> {
        let files = follower.files(&["--all"]);
        files.iter().map(|file| PathBuf::from(file["path"].as_str().unwrap())).collect()
    };
    until(SOON, "all files to be known", || listed(&follower).len() >= expected.len());
    let listed = listed(&follower);
    assert_eq!(listed.len(), expected.len(), "each comes once");
    assert_eq!(listed.into_iter().collect::<BTreeSet<_>>(), expected);
}
