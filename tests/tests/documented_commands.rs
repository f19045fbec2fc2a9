//! Every command in the documentation is run as it stands there, against a gateway for which it makes sense.
//!
//! A page's commands run in order, in a shell, in a folder of the page's own that has the files it speaks of. Only addresses and
//! placeholders are replaced, and `--config` is given where the reader would be in the gateway's folder.

#![allow(clippy::unwrap_used, reason = "a test")]

use flate2::write::ZlibEncoder;
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tidegate_tests::fleet::post;
use tidegate_tests::{Finished, Gateway, binary, finish, free_address, http};

/// Commands that are not run here: they do not end, or need a peer that is not here. That they have these arguments is checked.
const ELSEWHERE: &[(&str, &str)] = &[
    ("tidegate run", "the gateway of this test is started so"),
    ("tidegate tap --sink", "tests/tests/tap.rs"),
    ("tidegate top ", "tests/tests/top.rs, in a terminal"),
    ("tidegate elasticsearch setup --config tidegate.yaml", "tests/tests/elasticsearch.rs, with a cluster"),
    ("curl -s 'http://127.0.0.1:9090/", "tests/tests/prometheus.rs, with a Prometheus"),
];

/// Commands that cannot succeed here: the code with which they end, and words of what they say.
const REFUSED: &[(&str, i32, &str)] = &[
    ("tidegate fleet upload get", 1, "there is no such file"),
    ("tidegate fleet upload rm", 1, "there is no such file"),
    ("tidegate fleet collector show", 1, "there is no collector"),
    ("tidegate fleet collector restart", 1, "there is no collector"),
    ("tidegate journal forget lake", 1, "take it out of the configuration"),
    ("tidegate journal discard", 1, "there is no dead letter of `store`"),
];

const POLICY: &str =
    "name: web\noutputs: {default: {type: elasticsearch, hosts: ['http://127.0.0.1:9200']}}\ninputs: []\n";
const TRUSTED: &[u8] = b"{\"entries\":[]}";

/// The surroundings that the pages assume: a gateway with an agent, its peer, and the data folder of a gateway that is gone.
struct Scene {
    gateway: Gateway,
    _peer: Gateway,
    old: Gateway,
    agent: String,
    bin: PathBuf,
}

impl Scene {
    fn new() -> Scene {
        let peer = Gateway::started(json!({"memory": "32MiB", "sinks": {"none": {"type": "blackhole"}}}));
        let url = format!("http://{}", peer.http());
        let mut old = Gateway::started(json!({
            "memory": "32MiB",
            "sinks": {"store": {"type": "otlp", "protocol": "http", "endpoints": [format!("http://{}", free_address())]}},
        }));
        send_log(&old, "left behind");
        old.kill9();
        let mut gateway = Gateway::new(json!({}));
        let agents = free_address();
        let log = gateway.folder().join("shop.log");
        fs::write(&log, "a line\n").unwrap();
        gateway.configure(json!({
            "memory": "192MiB",
            "listen": {
                "http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin(), "fleet": {"address": agents},
                "opamp": {"address": free_address(), "access": "open"},
            },
            "journal": {"keep": "1h"},
            "sources": {"file": {"inputs": {"shop": {"include": [log]}}}},
            "sinks": {
                "lake": {"type": "lake", "file_age": "1s"},
                "store": {"type": "otlp", "protocol": "http", "endpoints": [url]},
                "upstream": {"type": "prometheus_remote_write", "shard_by": "all",
                    "endpoints": [format!("{url}/api/v1/write"), format!("{url}/api/v1/receive")]},
            },
        }));
        gateway.start();
        send_log(&gateway, "slow");
        send(&gateway, "/v1/traces", SPAN);
        let bin = gateway.folder().join("bin");
        fs::create_dir(&bin).unwrap();
        let mut scene = Scene { gateway, _peer: peer, old, agent: String::new(), bin };
        scene.install();
        scene.agent = scene.enroll(agents);
        scene
    }

    /// Installs the program as `tidegate`, which reads the `tidegate.yaml` of the page, and a `curl` for which a refusal is a failure.
    fn install(&self) {
        let gateway = format!(
            "#!/bin/sh\nfor word; do case $word in --config | --data | --admin | --) given=1 ;; esac; done\n\
             case \"$1 $2\" in 'import checkpoints') ;; import* | check* | --version*) given=1 ;; esac\n\
             [ -n \"$given\" ] || set -- \"$@\" --config tidegate.yaml\nexec '{}' \"$@\"\n",
            binary().display()
        );
        let curl = "#!/bin/sh\nexec /usr/bin/env -i /usr/bin/curl --fail-with-body --noproxy '*' \"$@\"\n";
        for (name, text) in [("tidegate", gateway.as_str()), ("curl", curl)] {
            let script = self.bin.join(name);
            fs::write(&script, text).unwrap();
            fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn enroll(&self, agents: std::net::SocketAddr) -> String {
        let cli = |arguments: &[&str]| {
            let config = self.gateway.config();
            tidegate_tests::tidegate(&[arguments, &["--config", config.to_str().unwrap()]].concat())
                .succeeded()
        };
        let policy = self.gateway.folder().join("web.yaml");
        fs::write(&policy, POLICY).unwrap();
        cli(&["fleet", "policy", "put", policy.to_str().unwrap()]);
        let token = cli(&["fleet", "token", "create", "--policy", "web"]);
        let body =
            json!({"type": "PERMANENT", "metadata": {"local": {"host": {"hostname": "h"}}, "tags": []}});
        let answer = post(agents, "/api/fleet/agents/enroll", token.trim(), &body);
        answer.json()["item"]["id"].as_str().unwrap().to_owned()
    }

    /// A folder with the files of which `page` speaks.
    fn folder(&self, page: &str) -> PathBuf {
        let folder = self.gateway.folder().join(format!("page-{page}"));
        fs::create_dir(&folder).unwrap();
        let mut config: Value = serde_json::from_slice(&fs::read(self.gateway.config()).unwrap()).unwrap();
        if page == "elasticsearch.md" {
            config["sinks"]["cluster"] =
                json!({"type": "elasticsearch", "endpoints": ["http://127.0.0.1:9200"]});
        }
        if page == "tail-sampling.md" {
            let policies = json!([{"name": "all", "type": "always_sample"}]);
            config["sinks"]["traces"] =
                json!({"type": "blackhole", "sample": {"tail": {"policies": policies}}});
        }
        let collector = "receivers: {otlp: {protocols: {grpc: {}}}}\nexporters: {otlp: {endpoint: 'peer:4317'}}\n\
            service: {pipelines: {traces: {receivers: [otlp], exporters: [otlp]}}}\n";
        let config = config.to_string();
        let mut packed = ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(TRUSTED).unwrap();
        let packed = packed.finish().unwrap();
        let files: [(&str, &[u8]); 14] = [
            ("tidegate.yaml", config.as_bytes()),
            ("gateway.yaml", if page == "opamp.md" { collector.as_bytes() } else { config.as_bytes() }),
            ("web.yaml", POLICY.as_bytes()),
            ("collector.yaml", collector.as_bytes()),
            ("fluent-bit.conf", b"[INPUT]\n    Name tail\n    Path /var/log/a.log\n[OUTPUT]\n    Name http\n    Match *\n    Host peer\n"),
            ("prometheus.yml", b"remote_write: [{url: 'http://peer/api/v1/write'}]\n"),
            ("vector.yaml", b"sources: {in: {type: http_server, address: '0.0.0.0:80'}}\nsinks: {out: {type: http, inputs: [in], uri: 'http://peer', encoding: {codec: json}}}\n"),
            ("rules.yml", b"[{action: labeldrop, regex: tmp_.*}]\n"),
            ("limits.yaml", b"write: {global: {max_concurrency: 10}}\n"),
            ("hashrings.json", br#"[{"hashring": "all", "endpoints": ["c-0:1", "c-1:1", "c-2:1"]}]"#),
            ("positions.yaml", b"positions:\n  /var/log/a.log: \"7\"\n"),
            ("token", b"a-token-of-the-reader\n"),
            ("trustlist.zz", &packed),
            ("records.json", LOG.as_bytes()),
        ];
        for (name, content) in files {
            fs::write(folder.join(name), content).unwrap();
        }
        folder
    }

    /// Runs a command while data comes.
    fn during_load(&self, command: &mut Command) -> Finished {
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_over.load(Relaxed) {
                    send_log(&self.gateway, "measured");
                }
            });
            let _over = SetWhenDropped(&is_over);
            finish(command)
        })
    }

    /// The command with this gateway's addresses, and values in place of placeholders.
    fn filled(&self, command: &str, action: &str) -> String {
        let digest = digest(&SHA256, TRUSTED);
        let sha = digest.as_ref().iter().fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        });
        let (http, admin, old) =
            (self.gateway.http().to_string(), self.gateway.admin().to_string(), self.old.data());
        let id = if command.starts_with("tidegate fleet action") { action } else { &self.agent };
        let mut filled = command.to_owned();
        for (printed, here) in [
            ("127.0.0.1:4318", http.as_str()),
            ("127.0.0.1:4319", &admin),
            ("10.0.0.7:4319", &admin),
            ("/etc/thanos/", ""),
            ("/var/lib/promtail/", ""),
            ("/mnt/old-disk/tidegate", old.to_str().unwrap()),
            ("--trace ID", "--trace 5b8efff798038103d269b633813fc60c"),
            (" ID", &format!(" {id}")),
            ("SHA256", &sha),
            ("UPLOAD", "0b7d4a0a-5a7e-4bd1-8f3c-0e3a1a6f2b11"),
            ("UID", "0192d4a1-7c5b-7d7e-9d8a-3b1f5a1c0e21"),
            ("FOLDER", "letters"),
            (" … >", " >"),
        ] {
            filled = filled.replace(printed, here);
        }
        filled
    }
}

struct SetWhenDropped<'b>(&'b AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

const LOG: &str = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"body":{"stringValue":"slow"}}]}]}]}"#;

/// Of the trace that `docs/tail-sampling.md` asks for.
const SPAN: &str = r#"{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"0af7651916cd43dd8448eb211c80319c",
    "spanId":"b7ad6b7169203331","name":"checkout"}]}]}]}"#;

fn send_log(gateway: &Gateway, body: &str) {
    send(gateway, "/v1/logs", &LOG.replace("slow", body));
}

fn send(gateway: &Gateway, path: &str, body: &str) {
    let head = [format!("POST {path} HTTP/1.1"), "Content-Type: application/json".to_owned()];
    let head: Vec<&str> = head.iter().map(String::as_str).collect();
    let answer = http::request(gateway.http(), &head, body.as_bytes()).unwrap();
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[test]
fn every_documented_command_runs() {
    let scene = Scene::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut pages: Vec<PathBuf> =
        fs::read_dir(root.join("docs")).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.retain(|page| page.extension().is_some_and(|extension| extension == "md"));
    pages.sort();
    pages.push(root.join("README.md"));
    let path = format!("{}:{}", scene.bin.display(), std::env::var("PATH").unwrap());
    let (mut wrong, mut run, mut action) = (Vec::new(), 0, String::new());
    for page in pages {
        let name = page.file_name().unwrap().to_str().unwrap();
        let commands = commands(&fs::read_to_string(&page).unwrap());
        if commands.is_empty() {
            continue;
        }
        let folder = scene.folder(name);
        for command in commands {
            let is_elsewhere = ELSEWHERE.iter().any(|(begin, _)| format!("{command} ").starts_with(begin));
            if is_elsewhere && ["--print", "--once"].iter().all(|flag| !command.contains(flag)) {
                // The arguments before `--help` are checked, and nothing is done.
                let code = command.split(" #").next().unwrap();
                let line = format!("{} --help", scene.filled(code, &action));
                let told =
                    finish(Command::new("sh").args(["-c", &line]).env("PATH", &path).current_dir(&folder));
                if told.code != Some(0) {
                    wrong.push(format!("{name}: {command}\n-> {line}\n{:?}: {}", told.code, told.stderr));
                }
                continue;
            }
            let line = scene.filled(&command, &action);
            run += 1;
            let mut shell = Command::new("timeout");
            shell.args(["120", "sh", "-c", &line]).env("PATH", &path).current_dir(&folder);
            let said = if command.contains("--measure") {
                scene.during_load(&mut shell)
            } else {
                finish(&mut shell)
            };
            let refused = REFUSED.iter().find(|(begin, ..)| command.starts_with(begin));
            let (code, words) = refused.map_or((0, ""), |(_, code, words)| (*code, *words));
            let told = format!("{}{}", said.stdout, said.stderr);
            // Its code is the severity of what it found on this machine.
            let is_report = command.starts_with("tidegate doctor") && matches!(said.code, Some(0 | 3 | 4));
            if !is_report && (said.code != Some(code) || !told.contains(words)) {
                wrong.push(format!("{name}: {command}\n-> {line}\n{:?}: {told}", said.code));
            }
            if command.contains("agent upgrade") {
                action = said
                    .stdout
                    .split_whitespace()
                    .find(|word| word.len() == 36)
                    .unwrap_or_default()
                    .to_owned();
            }
        }
    }
    assert!(wrong.is_empty(), "{} commands of {run}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(run > 100, "{run} commands");
}

#[test]
fn commands_are_found_in_blocks() {
    let text = "tidegate prose\n\n    tidegate plan --rate '5k spans/s' \\\n      --outage 6h   # a comment\n    A=b tidegate top | less\n\n\
                ```console\n$ tidegate lake ls > file\ntidegate: an answer\n$ curl -d '{\n  }' url\n{}\n```\n```sh\ncurl <<'END'\n{}\nEND\n```\n\
                ```yaml\ntidegate: run\n```\n";
    let expected = [
        "tidegate plan --rate '5k spans/s' \\\n  --outage 6h   # a comment",
        "A=b tidegate top | less",
        "tidegate lake ls > file",
        "curl -d '{\n  }' url",
        "curl <<'END'\n{}\nEND",
    ];
    assert_eq!(commands(text), expected);
}

/// The commands `tidegate` and `curl` in indented blocks, and behind `$` in blocks of `console` or anywhere in those of `sh`, with all of
/// their lines.
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut fence: Option<&str> = None;
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(language) };
            continue;
        }
        let typed = match fence {
            None => line.strip_prefix("    "),
            Some("console") => line.strip_prefix("$ "),
            Some("sh") => Some(line),
            Some(_) => None,
        };
        let Some(typed) = typed else { continue };
        let mut command = typed.trim().to_owned();
        if !is_wanted(&command) {
            continue;
        }
        let document = command
            .split_once("<<'")
            .and_then(|(_, end)| end.split_once('\''))
            .map(|(end, _)| end.to_owned());
        while command.ends_with('\\')
            || has_open_quote(&command)
            || !ends_document(&command, document.as_deref())
        {
            let next = lines.next().expect("the command ends");
            command = format!(
                "{command}\n{}",
                if fence.is_none() { next.strip_prefix("    ").unwrap_or(next) } else { next }
            );
        }
        commands.push(command);
    }
    commands
}

/// Whether a quotation goes on in the next line; quotes in comments do not count.
fn has_open_quote(command: &str) -> bool {
    command.split(" # ").next().is_some_and(|code| code.matches('\'').count() % 2 == 1)
}

fn ends_document(command: &str, end: Option<&str>) -> bool {
    end.is_none_or(|end| command.lines().skip(1).any(|line| line == end))
}

/// Whether the first word behind assignments is one of the commands.
fn is_wanted(command: &str) -> bool {
    let mut words = command.split_whitespace().skip_while(|word| word.contains('='));
    words.next().is_some_and(|first| ["tidegate", "curl"].contains(&first)) && words.next().is_some()
}
