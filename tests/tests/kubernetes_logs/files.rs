//! Every line once, through what kubelet and runtimes do to their files.

use crate::node::{Node, append, merge, pod, print};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::fs;
use std::io::Write;
use std::path::Path;
use tidegate_tests::{SOON, tidegate, until};

/// Rotates a log as the kubelet does: the current file gets the time as a suffix, and the one before it is compressed.
fn rotate(folder: &Path, number: usize) {
    let rotated = |number: usize| folder.join(format!("0.log.20260101-00{number:02}00"));
    if let Some(before) = number.checked_sub(1).map(rotated).filter(|path| path.exists()) {
        let temporary = folder.join(format!("{}.tmp", before.file_name().unwrap().display()));
        let mut encoder = GzEncoder::new(fs::File::create(&temporary).unwrap(), Compression::default());
        encoder.write_all(&fs::read(&before).unwrap()).unwrap();
        encoder.finish().unwrap();
        fs::rename(&temporary, format!("{}.gz", before.display())).unwrap();
        fs::remove_file(before).unwrap();
    }
    fs::rename(folder.join("0.log"), rotated(number)).unwrap();
}

/// The kubelet rotates and compresses while the gateway is killed and started; what was compressed meanwhile is read from that.
#[test]
fn every_line_once_through_rotations_and_kills() {
    const ROUNDS: usize = 8;
    let mut node = Node::new(&json!({}));
    let web = pod("web");
    node.api.start();
    node.api.put(web.clone());
    let folder = node.folder(&web, "app");
    let mut all = Vec::new();
    for round in 0..ROUNDS {
        let lines: Vec<String> =
            (0..500).map(|number| format!("{round}/{number:04} {}", "x".repeat(100))).collect();
        let texts: Vec<&str> = lines.iter().map(String::as_str).collect();
        print(&folder.join("0.log"), &texts[..250]);
        match round % 4 {
            1 => node.gateway.start(),
            // For two rounds nobody reads: one file is there only compressed.
            3 => node.gateway.kill9(),
            _ => {}
        }
        print(&folder.join("0.log"), &texts[250..]);
        rotate(&folder, round);
        all.extend(lines);
    }
    node.gateway.start();
    until(SOON, "the lines to be read", || node.gateway.lake_rows("logs").len() >= all.len());
    let lines = node.expect(&all.iter().map(String::as_str).collect::<Vec<_>>());
    assert!(lines.iter().all(|line| line.of("container.id") == "id-web"));
    node.gateway.books_close();
}

/// Each start of a container has a file, and the id that the container had then.
#[test]
fn a_restarted_container_has_the_id_of_each_start() {
    let mut node = Node::new(&json!({}));
    let mut web = pod("web");
    merge(
        &mut web,
        &json!({"status": {"containerStatuses": [{
            "name": "app", "restartCount": 2, "containerID": "containerd://third",
            "lastState": {"terminated": {"containerID": "containerd://second"}},
        }]}}),
    );
    node.api.start();
    node.api.put(web.clone());
    let folder = node.folder(&web, "app");
    for (number, line) in ["of the first", "of the second", "of the third"].iter().enumerate() {
        print(&folder.join(format!("{number}.log")), &[line]);
    }
    node.gateway.start();
    node.wait_for(3);
    let lines = node.expect(&["of the first", "of the second", "of the third"]);
    let ids: Vec<_> =
        lines.iter().map(|line| (line.of("k8s.container.restart_count"), line.of("container.id"))).collect();
    let expected = [("0", ""), ("1", "second"), ("2", "third")];
    assert_eq!(ids, expected.map(|(count, id)| (count.to_owned(), id.to_owned())));
}

/// Parts of lines are joined for each output by itself; Docker's JSON is told apart from the runtime interface's lines file by file,
/// and followed through its link.
#[test]
fn parts_are_joined_and_formats_told_apart() {
    let mut node = Node::new(&json!({}));
    let (web, api) = (pod("web"), pod("api"));
    node.api.start();
    node.api.put(web.clone());
    node.api.put(api.clone());
    let time = "2026-01-31T12:34:56.123456789Z";
    let parts: String = [
        ("stdout", "P", "out one, "),
        ("stderr", "P", "err one, "),
        ("stdout", "P", "two, "),
        ("stderr", "F", "two"),
        ("stdout", "F", "three"),
        ("stdout", "F", "alone"),
    ]
    .map(|(stream, tag, text)| format!("{time} {stream} {tag} {text}\n"))
    .concat();
    append(&node.folder(&web, "app").join("0.log"), &parts);
    let docker = node.gateway.folder().join("docker/abc-json.log");
    let lines: String = [("stdout", "from "), ("stderr", "error\n"), ("stdout", "docker\n")]
        .map(|(stream, log)| {
            json!({"log": log, "stream": stream, "attrs": {"a": "b"}, "time": time}).to_string() + "\n"
        })
        .concat();
    append(&docker, &lines);
    let folder = node.folder(&api, "app");
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(&docker, folder.join("0.log")).unwrap();
    node.gateway.start();
    node.wait_for(5);
    let lines = node.expect(&["alone", "err one, two", "error", "from docker", "out one, two, three"]);
    for line in lines {
        let stream = if line.body.starts_with("err") { "stderr" } else { "stdout" };
        assert_eq!(line.attributes["log.iostream"], stream, "{line:?}");
        let name = if matches!(&*line.body, "error" | "from docker") { "api" } else { "web" };
        assert_eq!(line.of("k8s.pod.name"), name, "{line:?}");
    }
}

/// Stack traces become one record each, for each container by itself.
#[test]
fn lines_are_joined_to_records_per_container() {
    let mut node = Node::new(&json!({"multiline": {"start_pattern": "^\\S", "timeout": "200ms"}}));
    let mut web = pod("web");
    merge(&mut web, &json!({"spec": {"containers": [{"name": "app"}, {"name": "proxy"}]}}));
    node.api.start();
    node.api.put(web.clone());
    node.print(&web, "app", &["Exception", "  at a", "  at b", "next"]);
    node.print(&web, "proxy", &["Error", "  in c"]);
    node.gateway.start();
    node.wait_for(3);
    let lines = node.expect(&["Error\n  in c", "Exception\n  at a\n  at b", "next"]);
    let of: Vec<Value> = lines.iter().map(|line| line.resource["k8s.container.name"].clone()).collect();
    assert_eq!(of, ["proxy", "app", "app"]);
}

/// One output of a container can be left out.
#[test]
fn an_excluded_output_is_left_out() {
    let mut node = Node::new(&json!({}));
    let mut web = pod("web");
    merge(&mut web, &json!({"metadata": {"annotations": {"fluentbit.io/exclude_stderr-app": "true"}}}));
    node.api.start();
    node.api.put(web.clone());
    let time = "2026-01-31T12:34:56.123456789Z";
    let lines = format!("{time} stderr F unwanted\n{time} stdout F wanted\n{time} stderr F unwanted\n");
    append(&node.folder(&web, "app").join("0.log"), &lines);
    node.gateway.start();
    node.wait_for(1);
    node.gateway.kill9();
    append(
        &node.folder(&web, "app").join("0.log"),
        &format!("{time} stderr F unwanted\n{time} stdout F last\n"),
    );
    node.gateway.start();
    node.wait_for(1);
    node.expect(&["last", "wanted"]);
}

/// Where another program has read the files to is where reading begins.
#[test]
fn goes_on_where_promtail_was() {
    let mut node = Node::new(&json!({}));
    let web = pod("web");
    node.api.start();
    node.api.put(web.clone());
    node.print(&web, "app", &["sent before"]);
    let log = node.folder(&web, "app").join("0.log");
    let read = fs::metadata(&log).unwrap().len();
    let positions = node.gateway.folder().join("positions.yaml");
    fs::write(&positions, format!("positions:\n  {}: \"{read}\"\n", log.display())).unwrap();
    let (config, file) = (node.gateway.config(), positions.display().to_string());
    tidegate(&["import", "checkpoints", "promtail", &file, "--config", config.to_str().unwrap()]).succeeded();
    node.print(&web, "app", &["sent here"]);
    node.gateway.start();
    node.wait_for(1);
    node.expect(&["sent here"]);
}
