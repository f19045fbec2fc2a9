//! `tidegate doctor` beside real gateways: it tells each kind of trouble, changes nothing, and gives away no secret.

#![allow(clippy::unwrap_used, reason = "a test")]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tidegate_tests::http::request;
use tidegate_tests::{
    Finished, Gateway, MOUNT, SOON, binary, certificates, finish, free_address, skip, tidegate, until,
};

const PAGE: &str = include_str!("../../docs/doctor.md");
const AT_RISK: i32 = 3;
const BROKEN: i32 = 4;
/// Telemetry that must not be in an archive.
const TELEMETRY: &str = "telemetry-of-mine";
/// What a client sends.
const BODY: &[u8] =
    br#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"telemetry-of-mine"}}]}]}]}"#;

/// The doctor's report on this gateway's configuration, and its exit code.
fn doctor(gateway: &Gateway, more: &[&str]) -> (Value, i32) {
    let config = gateway.config();
    let args = ["doctor", "--config", config.to_str().unwrap(), "--format", "json"];
    report(&tidegate(&[&args, more].concat()))
}

fn report(finished: &Finished) -> (Value, i32) {
    let report = serde_json::from_str(&finished.stdout);
    (report.unwrap_or_else(|error| panic!("{error}: {finished:?}")), finished.code.unwrap())
}

/// Whether there is a finding of this check and severity whose sentence has these words.
fn has(report: &Value, check: &str, severity: &str, words: &str) -> bool {
    report["findings"].as_array().unwrap().iter().any(|finding| {
        finding["check"] == check
            && finding["severity"] == severity
            && finding["what"].as_str().unwrap().contains(words)
    })
}

#[track_caller]
fn tells(report: &Value, check: &str, severity: &str, words: &str) {
    assert!(has(report, check, severity, words), "no finding {check} {severity} `{words}` in {report:#}");
}

/// The findings that are broken, but for those of this check.
fn broken(report: &Value) -> Vec<&Value> {
    report["findings"].as_array().unwrap().iter().filter(|finding| finding["severity"] == "broken").collect()
}

fn settings() -> Value {
    json!({"memory": "128MiB", "journal": {"quota": "64MiB", "segment": "1MiB"}, "sinks": {"lake": {"type": "lake", "file_age": "1s", "file_bytes": "16MiB", "retention": {"bytes": "64MiB"}}}})
}

fn send(gateway: &Gateway) {
    let head = ["POST /v1/logs HTTP/1.1", "Content-Type: application/json"];
    assert_eq!(request(gateway.http(), &head, BODY).unwrap().status, 200);
}

/// The content of every file below a folder.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut folders, mut found) = (vec![folder.to_owned()], BTreeMap::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.insert(path.clone(), fs::read(&path).unwrap());
            }
        }
    }
    found
}

/// A peer that answers every request so.
fn peer(status: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream, status));
        }
    });
    address
}

/// Repeats the request, its body too, as peers do in their errors.
fn answer(mut stream: TcpStream, status: &str) -> Option<()> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte).ok()?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse().ok())?
    });
    let mut content = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut content).ok()?;
    // The telemetry in it first, because only the beginning of an error is kept.
    let words = if String::from_utf8_lossy(&content).contains(TELEMETRY) { TELEMETRY } else { "" };
    let body = format!("{words} no handler for: {head}");
    let date = "Date: Thu, 01 Jan 2015 00:00:00 GMT";
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{date}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .ok()
}

fn write_to(address: SocketAddr) -> Value {
    json!({
        "type": "prometheus_remote_write",
        "url": format!("http://{address}/write?api_key=hunter2-key"),
        "headers": {"authorization": "Bearer hunter3-token"},
    })
}

/// Beside a running gateway with data: its state is told, nothing is broken, and not a byte has changed.
#[test]
fn changes_nothing_beside_a_running_gateway() {
    let mut gateway = Gateway::started(settings());
    send(&gateway);
    until(SOON, "the lake to have a file", || gateway.lake_rows("logs").len() == 1);
    gateway.at_rest(SOON);
    let before = contents(&gateway.data());
    let (report, _) = doctor(&gateway, &[]);
    // The gateway itself writes down how far its sinks are, now and then.
    let unchanged = |files: &BTreeMap<PathBuf, Vec<u8>>| {
        let is_data = |path: &&PathBuf| !path.to_string_lossy().contains("cursor");
        files
            .iter()
            .filter(|(path, _)| is_data(path))
            .map(|(path, bytes)| (path.clone(), bytes.clone()))
            .collect::<Vec<_>>()
    };
    assert!(unchanged(&before) == unchanged(&contents(&gateway.data())), "files have changed");
    assert!(broken(&report).is_empty(), "{:#?}", broken(&report));
    let pid = gateway.process().pid().to_string();
    tells(&report, "disk", "note", &pid);
    tells(&report, "gateway", "fine", "takes data, and its sinks keep up");
    tells(&report, "ports", "fine", "is the gateway's");
    tells(&report, "journal", "fine", "sound while a gateway writes it");
    tells(&report, "lake", "fine", "the lake is sound");
    assert_eq!(gateway.term(), 0, "it is as well as before");
}

/// A configuration that cannot be read is told as `check` tells it.
#[test]
fn a_wrong_configuration_is_broken() {
    let gateway = Gateway::new(json!({}));
    gateway.configure_text("memroy: 128MiB\nlisten:\n  http: nowhere\n");
    let (report, code) = doctor(&gateway, &[]);
    assert_eq!(code, BROKEN);
    tells(&report, "configuration", "broken", "tidegate.yaml:1:1");
    tells(&report, "configuration", "broken", "tidegate.yaml:3:");
    let missing = tidegate(&["doctor", "--config", "/no/such.yaml"]);
    assert_eq!(missing.code, Some(BROKEN), "{missing:?}");
    assert!(missing.stdout.contains("BROKEN") && missing.stdout.contains("/no/such.yaml"), "{missing:?}");
}

/// Memory that is too little for what is configured, and a folder that cannot be one.
#[test]
fn a_configuration_that_cannot_start_is_broken() {
    let gateway = Gateway::new(json!({"memory": "16MiB", "data": "/proc/nope"}));
    let (report, code) = doctor(&gateway, &["--offline"]);
    assert_eq!(code, BROKEN);
    tells(&report, "configuration", "broken", "memory");
    tells(&report, "configuration", "broken", "`data` is /proc/nope");
}

#[test]
fn peers_that_fail_are_told_by_the_step_that_failed() {
    let nobody = free_address();
    let hole = TcpListener::bind("127.0.0.1:0").unwrap();
    let otlp = |url: String| json!({"type": "otlp", "protocol": "http", "endpoints": [url]});
    let gateway = Gateway::new(json!({"memory": "128MiB", "sinks": {
        "refuses": write_to(peer("401 Unauthorized")),
        "overloaded": otlp(format!("http://{}", peer("429 Too Many Requests"))),
        "gone": otlp(format!("http://{nobody}")),
        "hole": otlp(format!("http://{}", hole.local_addr().unwrap())),
        "nameless": otlp("http://nowhere.invalid:4318".to_owned()),
        "tls": otlp(format!("https://{}", peer("200 OK"))),
        "well": {"type": "elasticsearch", "endpoints": [format!("http://{}", peer("200 OK"))], "api_key": "hunter4-key"},
    }}));
    let (report, code) = doctor(&gateway, &[]);
    assert_eq!(code, BROKEN);
    tells(&report, "peers", "broken", "`sinks.refuses`: ");
    tells(&report, "peers", "at_risk", "`sinks.overloaded`: ");
    tells(&report, "peers", "broken", "`sinks.gone`: ");
    tells(&report, "peers", "broken", "`sinks.hole`: ");
    tells(&report, "peers", "broken", "`sinks.nameless`: the name");
    tells(&report, "peers", "broken", "`sinks.tls`: TLS to");
    tells(&report, "peers", "fine", "`sinks.well`: ");
    tells(&report, "clocks", "at_risk", "differ by");
    let text = report.to_string();
    assert!(text.contains("no handler for: POST /write?***"), "{report:#}");
    assert!(!text.contains("hunter"), "{report:#}");
    let (report, _) = doctor(&gateway, &["--offline"]);
    tells(&report, "peers", "note", "NO PEER WAS ASKED");
    assert!(!has(&report, "peers", "broken", ""), "{report:#}");
}

#[test]
fn a_port_that_is_taken_is_broken() {
    let gateway = Gateway::new(settings());
    let _taken = TcpListener::bind(gateway.http()).unwrap();
    let (report, code) = doctor(&gateway, &[]);
    assert_eq!(code, BROKEN);
    tells(&report, "ports", "broken", &format!("in use by process {}", std::process::id()));
}

/// Few open files: at risk; too few: broken.
#[test]
fn limits_on_files_are_told() {
    let gateway = Gateway::new(settings());
    let config = gateway.config();
    let limited = |files: u32| {
        let script = format!("ulimit -n {files} && exec \"$0\" \"$@\"");
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(script)
            .arg(binary())
            .args(["doctor", "--format", "json", "--config"])
            .arg(&config);
        report(&finish(&mut command)).0
    };
    tells(&limited(200), "files", "at_risk", "limits.connections");
    tells(&limited(40), "files", "broken", "the limit on open files is 40");
}

#[test]
fn certificates_and_their_files_are_told() {
    let gateway = Gateway::new(json!({}));
    let folder = gateway.folder().to_owned();
    certificates::authority(&folder, "ca");
    certificates::sign(&folder, "ca", "server", "/CN=server");
    certificates::sign(&folder, "ca", "other", "/CN=other");
    let path = |name: &str| folder.join(name).display().to_string();
    let with_key = |key: &str| {
        gateway.configure(json!({"memory": "128MiB", "listen": {
            "http": free_address(), "grpc": free_address(), "admin": free_address(),
            "tls": {"cert_file": path("server.pem"), "key_file": path(key)},
        }}));
        doctor(&gateway, &[]).0
    };
    fs::set_permissions(folder.join("server.key"), Permissions::from_mode(0o644)).unwrap();
    let report = with_key("server.key");
    tells(&report, "certificates", "at_risk", "expires in");
    tells(&report, "configuration", "at_risk", "holds secrets");
    let report = with_key("other.key");
    tells(&report, "certificates", "broken", "is not that of the certificate");
    let report = with_key("missing.key");
    tells(&report, "configuration", "broken", "missing.key");
}

/// After a crash that damaged the journal: a flipped byte, a sink that was renamed, and records of another version.
#[test]
fn a_damaged_journal_and_a_forgotten_cursor_are_told() {
    let nobody = free_address();
    let mut gateway = Gateway::started(
        json!({"memory": "128MiB", "sinks": {"up": {"type": "otlp", "protocol": "http", "endpoints": [format!("http://{nobody}")]}}}),
    );
    for _ in 0..3 {
        send(&gateway);
    }
    gateway.kill9();
    let folder = gateway.data().join("journal");
    let segment = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
    let segment = segment.into_iter().find(|path| path.extension().is_some_and(|it| it == "seg")).unwrap();
    let sound = fs::read(&segment).unwrap();
    let written = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = sound.clone();
        change(&mut bytes);
        fs::write(&segment, bytes).unwrap();
        doctor(&gateway, &["--offline"]).0
    };
    tells(&written(&|_| {}), "journal", "fine", "the journal is sound");
    tells(&written(&|bytes| bytes[70] ^= 1), "journal", "at_risk", "the journal is damaged in 1 places");
    tells(&written(&|bytes| bytes[4] = 9), "journal", "broken", "another version");
    gateway.configure(settings());
    let report = written(&|_| {});
    tells(&report, "journal", "at_risk", "3 items for `up`, which is no sink of this configuration");
    tells(&report, "gateway", "note", "no gateway answers");
}

/// A gateway whose peer rejects what it gets: the sink's losses and the dead letters are told.
#[test]
fn dead_letters_are_told_with_their_reason() {
    let url = format!("http://{}", peer("400 Bad Request"));
    let gateway = Gateway::started(
        json!({"memory": "128MiB", "sinks": {"up": {"type": "otlp", "protocol": "http", "endpoints": [url]}}}),
    );
    send(&gateway);
    until(SOON, "a dead letter", || {
        let data = gateway.data();
        tidegate(&["journal", "dead-letters", "--data", data.to_str().unwrap()]).stdout.contains("no handler")
    });
    let (report, _) = doctor(&gateway, &["--offline"]);
    tells(&report, "dead letters", "at_risk", "`sinks.up` has rejected 1 items");
    tells(&report, "gateway", "at_risk", "the sink `up` has dropped 1 items");
}

/// What may not be written by the user who asks is told, also where root could.
#[test]
fn a_folder_of_another_user_is_broken() {
    let gateway = Gateway::new(settings());
    fs::create_dir(gateway.data()).unwrap();
    fs::set_permissions(gateway.data(), Permissions::from_mode(0o700)).unwrap();
    if !rustix::process::geteuid().is_root() {
        fs::set_permissions(gateway.data(), Permissions::from_mode(0o500)).unwrap();
        let (report, code) = doctor(&gateway, &[]);
        assert_eq!(code, BROKEN);
        tells(&report, "disk", "broken", "`data`: ");
        return;
    }
    // The program itself has to be reached by the other user.
    let program = gateway.folder().join("tidegate");
    fs::copy(binary(), &program).unwrap();
    for path in [gateway.folder(), &program, &gateway.config()] {
        fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
    let finished = finish(command.args(["doctor", "--format", "json", "--config"]).arg(gateway.config()));
    let (report, code) = report(&finished);
    assert_eq!(code, BROKEN);
    tells(&report, "disk", "broken", "`data`: ");
    fs::set_permissions(gateway.data(), Permissions::from_mode(0o700)).unwrap();
    std::os::unix::fs::chown(gateway.data(), Some(65534), None).unwrap();
    let (report, _) = doctor(&gateway, &[]);
    tells(&report, "disk", "note", "belongs to user 65534");
}

/// A file system without room, made for the test.
#[test]
fn a_full_disk_is_broken() {
    let gateway = Gateway::new(settings());
    fs::create_dir(gateway.data()).unwrap();
    let mut mount = Command::new("mount");
    let mounted = finish(mount.args(["-t", "tmpfs", "-o", "size=512k", "tidegate-test"]).arg(gateway.data()));
    if mounted.code != Some(0) {
        return skip(MOUNT, "the test of a full disk needs the right to mount a file system");
    }
    let (report, code) = doctor(&gateway, &[]);
    finish(Command::new("umount").arg("-l").arg(gateway.data())).succeeded();
    assert_eq!(code, BROKEN);
    tells(&report, "disk", "broken", "the disk is full");
    tells(&report, "disk", "at_risk", "is in memory");
}

/// The archive of a gateway that has secrets and telemetry has neither.
#[test]
fn an_archive_has_no_secret_and_no_telemetry() {
    let secret = "hunter5-from-a-file";
    let mut settings = json!({"memory": "128MiB", "sinks": {
        "up": write_to(peer("400 Bad Request")),
        "es": {"type": "elasticsearch", "endpoints": [format!("http://{}", peer("401 Unauthorized"))], "api_key": "hunter4-key"},
    }});
    let mut gateway = Gateway::new(json!({}));
    let file = gateway.folder().join("secret");
    fs::write(&file, secret).unwrap();
    let reference = format!("${{file:{}}}", file.display());
    // Uncompressed, so that the peer sees what it repeats; and with a secret in the path of its URL, as webhooks have it.
    settings["sinks"]["file"] = json!({
        "type": "otlp", "protocol": "http", "compression": "none",
        "endpoints": [format!("http://{}/{reference}", peer("400 Bad Request"))],
        "headers": {"x-key": reference},
    });
    let token = "hunter6-admin-token";
    gateway.configure(settings);
    gateway.start();
    send(&gateway);
    until(SOON, "telemetry in an error of a sink", || gateway.status().to_string().contains(TELEMETRY));
    let archive = gateway.folder().join("report.tar.gz");
    let config = gateway.config();
    let mut command = tidegate_tests::command(&["doctor", "--config", config.to_str().unwrap(), "--archive"]);
    let finished = finish(command.arg(&archive).env("TIDEGATE_ADMIN_TOKEN", token));
    assert_eq!(finished.code, Some(BROKEN), "{finished:?}");
    assert!(finished.stderr.contains("look at it before you give it away"), "{finished:?}");
    finish(Command::new("tar").arg("-xzf").arg(&archive).current_dir(gateway.folder())).succeeded();
    let folder = gateway.folder().join("tidegate-doctor");
    let files = contents(&folder);
    let names: Vec<&str> = files.keys().map(|path| path.file_name().unwrap().to_str().unwrap()).collect();
    let expected = [
        "configuration.yaml",
        "files.txt",
        "findings.json",
        "findings.txt",
        "limits.txt",
        "metrics.txt",
        "status.json",
        "system.json",
    ];
    assert_eq!(names, expected);
    let shown = files.iter().map(|(path, bytes)| (path.clone(), String::from_utf8(bytes.clone()).unwrap()));
    for (path, text) in shown.chain([("stdout".into(), finished.stdout.clone())]) {
        assert!(!text.contains("hunter"), "a secret in {}: {text}", path.display());
        // On a terminal, words of peers are quoted.
        let is_archived = path != Path::new("stdout");
        assert!(!is_archived || !text.contains(TELEMETRY), "telemetry in {}: {text}", path.display());
    }
    let text = |name: &str| String::from_utf8(files[&folder.join(name)].clone()).unwrap();
    assert!(
        text("configuration.yaml").contains("authorization: \"********\""),
        "{}",
        text("configuration.yaml")
    );
    assert!(text("status.json").contains("\"version\"") && text("metrics.txt").contains("tidegate_"));
    assert!(text("files.txt").contains("journal/") && text("limits.txt").contains("Max open files"));
    assert!(text("findings.txt").contains("`sinks.es`") && !text("findings.txt").contains("no handler for"));
    let again = finish(&mut tidegate_tests::command(&[
        "doctor",
        "--offline",
        "--config",
        config.to_str().unwrap(),
        "--archive",
        archive.to_str().unwrap(),
    ]));
    assert_eq!(again.code, Some(1), "it does not write over a file: {again:?}");
}

/// The codes that the page names are those of the program, and of wrong arguments.
#[test]
fn the_exit_codes_are_as_the_page_says() {
    let gateway = Gateway::new(settings());
    let (report, code) = doctor(&gateway, &["--offline"]);
    let expected = match report["state"].as_str().unwrap() {
        "broken" => BROKEN,
        "at_risk" => AT_RISK,
        _ => 0,
    };
    assert_eq!(code, expected, "{report:#}");
    assert_eq!(tidegate(&["doctor", "--no-such-option"]).code, Some(2));
    assert_eq!(tidegate(&["doctor", "--archive", "report.rar"]).code, Some(1));
    for (code, words) in [
        (0, "nothing is wrong"),
        (3, "at risk"),
        (4, "broken"),
        (1, "the command itself failed"),
        (2, "wrong arguments"),
    ] {
        let line = PAGE.lines().find(|line| line.starts_with(&format!("| {code} |"))).unwrap();
        assert!(line.contains(words), "{line}");
    }
}

/// The commands of the page are the program's, and its checks are told of in it.
#[test]
fn the_examples_of_the_page_run() {
    let gateway = Gateway::new(settings());
    let lines = PAGE.lines().filter_map(|line| line.strip_prefix("    tidegate doctor"));
    let mut count = 0;
    for line in lines {
        let line = line.split('#').next().unwrap().trim();
        let args: Vec<String> = line
            .split_whitespace()
            .map(|word| match word {
                "tidegate.yaml" => gateway.config().display().to_string(),
                word if word.ends_with(".tar.gz") => gateway.folder().join(word).display().to_string(),
                word => word.to_owned(),
            })
            .collect();
        let finished = finish(tidegate_tests::command(&["doctor"]).args(&args));
        assert!(matches!(finished.code, Some(0 | AT_RISK | BROKEN)), "{line}: {finished:?}");
        count += 1;
    }
    assert!(count >= 4, "the page has examples");
    let (report, _) = doctor(&gateway, &[]);
    for finding in report["findings"].as_array().unwrap() {
        let check = finding["check"].as_str().unwrap();
        assert!(PAGE.contains(&format!("| {check} |")), "{check} is not in the page");
    }
}
