//! Real senders of `_bulk`, each as its users run it: refused for now, cut off by the gateway's end in mid-flow, and
//! in the end everything is where it was to go, as it was sent, and nothing twice that had a name of its own.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test, which says what it saw")]

#[path = "elasticsearch_clients/store.rs"]
mod store;

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use store::Store;
use tidegate_tests::{Debian, Finished, Gateway, Program, collector_binary, free_address, http, skip, until};

/// How long everything may take to arrive, on a busy machine.
const DRAINED: Duration = Duration::from_secs(240);
/// Documents of one client.
const EACH: u64 = 500;
/// Documents of a part, and how many parts a client has under way at most.
const UNDER_WAY: usize = 100 * 2;

/// A client, told where to send; the index is its name.
struct Client {
    name: &'static str,
    command: Command,
    own: bool,
}

#[test]
fn python() {
    let Some(python) = tool("TIDEGATE_TEST_PYTHON") else { return };
    let Some(shippers) = tool("TIDEGATE_TEST_SHIPPERS") else { return };
    let client = |name, module: &str, path: &str, own| {
        let mut command = Command::new(&python);
        command.arg(folder().join("bulk.py")).arg(module).env("PYTHONPATH", shippers.join(path));
        Client { name, command, own }
    };
    all_arrives(vec![
        client("python-7", "elasticsearch", "python-7", true),
        client("python-8", "elasticsearch", "", false),
        client("python-9", "elasticsearch", "python-9", true),
        client("python-opensearch", "opensearchpy", "", false),
    ]);
}

#[test]
fn node() {
    let Some(modules) = tool("TIDEGATE_TEST_NODE_MODULES") else { return };
    let client = |name, package: &str, own| {
        let mut command = Command::new("node");
        command.arg(folder().join("bulk.cjs")).arg(package).env("NODE_MODULES", &modules);
        Client { name, command, own }
    };
    all_arrives(vec![
        client("node-8", "elasticsearch-8", true),
        client("node-9", "@elastic/elasticsearch", false),
        client("node-opensearch", "@opensearch-project/opensearch", true),
    ]);
}

#[test]
fn go() {
    let Some(shippers) = tool("TIDEGATE_TEST_SHIPPERS") else { return };
    let client = |name, own| Client { name, command: Command::new(shippers.join("bin/go")), own };
    all_arrives(vec![client("go", true), client("go-made", false)]);
}

/// Java's HTTP client waits by itself for as long as a refusal says, and nobody hears of it.
#[test]
fn java() {
    let Some(shippers) = tool("TIDEGATE_TEST_SHIPPERS") else { return };
    let client = |name, own| {
        let mut command = Command::new("java");
        command.args(["-Xmx128m", "-XX:TieredStopAtLevel=1", "-Dfile.encoding=UTF-8"]);
        command.args(["-cp", "target/classes:target/lib/*", "Bulk"]).current_dir(shippers.join("java"));
        Client { name, command, own }
    };
    all_arrives(vec![client("java", true), client("java-made", false)]);
}

/// All clients at once, through pressure and a restart.
fn all_arrives(clients: Vec<Client>) {
    let mut flow = Flow::started();
    let mut clients: Vec<(&str, bool, Program)> = clients
        .into_iter()
        .map(|Client { name, mut command, own }| {
            let ids = if own { "own" } else { "made" };
            command.args([&flow.url, name, &EACH.to_string(), ids]);
            (name, own, Program::start(name, command, flow.gateway.folder()))
        })
        .collect();
    flow.cut(|| {
        clients.iter_mut().all(|(name, _, client)| {
            assert_eq!(client.ended(), None, "{name} gave up: {}", client.stderr());
            name.starts_with("java") || client.stderr().contains("again")
        })
    });
    for (name, own, mut client) in clients {
        let code = client.wait(DRAINED).code();
        let finished = Finished { code, stdout: client.stdout(), stderr: client.stderr() };
        println!("{name}: {}", finished.succeeded().trim());
        flow.settled();
        assert_has(name, own, &flow.store.index(name));
    }
    flow.closed();
}

/// That each of a client's documents is there as it was sent; once, but for those that were under way without a name
/// of their own when the gateway was killed.
fn assert_has(name: &str, own: bool, documents: &BTreeMap<String, Value>) {
    let mut times = BTreeMap::new();
    for (id, document) in documents {
        let number = document["n"].as_u64().unwrap();
        let wanted = json!({"@timestamp": 1_700_000_000_000 + number, "n": number, "message": format!("é \"{number}\"\n")});
        assert_eq!(document, &wanted, "{name}");
        assert!(!own || *id == format!("own-{number}"), "{name}: {id} of {number}");
        *times.entry(number).or_insert(0_u32) += 1;
    }
    assert!(times.keys().copied().eq(0..EACH), "{name}: {} of {EACH}", times.len());
    let twice = documents.len() - times.len();
    assert!(twice <= if own { 0 } else { UNDER_WAY }, "{name}: {twice} were sent twice");
}

/// Filebeat with its own settings for everything but the address and the patience, and with ids.
#[test]
fn filebeat() {
    let Some(shippers) = tool("TIDEGATE_TEST_SHIPPERS") else { return };
    ships(Shipper { index: "filebeat-7.17.28", text: "/message", is_refused: true }, |flow, lines| {
        let settings = json!({
            "filebeat.inputs": [{"type": "filestream", "id": "lines", "paths": [lines]}],
            "output.elasticsearch": {
                "hosts": [flow.url], "bulk_max_size": 50, "backoff.init": "100ms", "backoff.max": "500ms",
            },
            "processors": [{"add_id": {}}],
            "path.home": flow.folder("filebeat"),
            "logging.to_stderr": true,
        });
        let mut command = Command::new(shippers.join("bin/filebeat"));
        command.args(["--strict.perms=false", "-c"]).arg(flow.file("filebeat.yml", &settings.to_string()));
        command
    });
}

/// The OpenTelemetry Collector's exporter, in its mode for OpenTelemetry's own words.
#[test]
fn collector() {
    let Some(binary) = collector_binary() else { return };
    let receiver = free_address();
    let record = |number: u64| {
        let id = json!({"key": "elasticsearch.document_id", "value": {"stringValue": number.to_string()}});
        json!({"timeUnixNano": "1700000000000000000", "body": {"stringValue": line(number)}, "attributes": [id]})
    };
    let shipper = Shipper { index: "logs-generic.otel-default", text: "/body/text", is_refused: true };
    let given = std::cell::Cell::new(false);
    let give = || {
        // Once it is there.
        if !given.get() && http::get(receiver, "/").is_ok() {
            for part in (0..EACH).collect::<Vec<_>>().chunks(50) {
                let records: Vec<Value> = part.iter().copied().map(record).collect();
                let body = json!({"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}).to_string();
                let head = ["POST /v1/logs HTTP/1.1", "Content-Type: application/json"];
                assert_eq!(http::request(receiver, &head, body.as_bytes()).unwrap().status, 200);
            }
            given.set(true);
        }
        given.get()
    };
    ships_when(shipper, give, |flow, _| {
        let settings = json!({
            "receivers": {"otlp": {"protocols": {"http": {"endpoint": receiver.to_string()}}}},
            "exporters": {"elasticsearch": {
                "endpoints": [flow.url], "logs_dynamic_id": {"enabled": true},
                "retry": {"max_retries": 1000, "initial_interval": "100ms", "max_interval": "500ms"},
                // One at a time, since those that come together are let in together.
                "sending_queue": {
                    "num_consumers": 1,
                    "batch": {"sizer": "items", "min_size": 50, "max_size": 50, "flush_timeout": "50ms"},
                },
            }},
            "service": {
                "telemetry": {"metrics": {"level": "none"}},
                "pipelines": {"logs": {"receivers": ["otlp"], "exporters": ["elasticsearch"]}},
            },
        });
        let mut command = Command::new(&binary);
        command.arg("--config").arg(flow.file("collector.yaml", &settings.to_string()));
        command
    });
}

/// It drops what is refused as a whole, here as with Elasticsearch, and sends again only when nobody is there; so it
/// is refused nothing. It names types.
#[test]
fn rsyslog() {
    let Some(debian) = Debian::with("usr/sbin/rsyslogd") else { return };
    ships(Shipper { index: "rsyslog", text: "/message", is_refused: false }, |flow, lines| {
        let (folder, lines, port) =
            (flow.folder("rsyslog"), lines.display(), flow.url.rsplit(':').next().unwrap());
        let settings = format!(
            r#"global(workDirectory="{0}")
            module(load="imfile")
            module(load="omelasticsearch")
            template(name="document" type="list" option.jsonf="on") {{
              property(outname="@timestamp" name="timereported" dateFormat="rfc3339" format="jsonf")
              property(outname="message" name="msg" format="jsonf")
            }}
            template(name="id" type="string" string="%msg:R,ERE,1,DFLT:line ([0-9]+)--end%")
            ruleset(name="out") {{
              action(type="omelasticsearch" server="127.0.0.1" serverport="{port}" template="document"
                     searchIndex="rsyslog" dynbulkid="on" bulkid="id" bulkmode="on" errorfile="{0}/errors"
                     action.resumeRetryCount="-1" action.resumeInterval="1"
                     queue.type="linkedList" queue.dequeueBatchSize="50")
            }}
            input(type="imfile" file="{lines}" tag="shop" ruleset="out")
            "#,
            folder.display(),
        );
        debian.rsyslog(&flow.file("rsyslog.conf", &settings), &folder)
    });
}

/// It drops what is refused with 429, unless it is told to send that again. It names types.
#[test]
fn syslog_ng() {
    let Some(debian) = Debian::with("usr/sbin/syslog-ng") else { return };
    ships(Shipper { index: "syslog-ng", text: "/MESSAGE", is_refused: true }, |flow, lines| {
        let (folder, lines, url) = (flow.folder("syslog-ng"), lines.display(), &flow.url);
        let settings = format!(
            r#"@version: 3.35
@module json-plugin
@module http
@include "{}"
source lines {{ file("{lines}" follow-freq(0.2) flags(no-parse)); }};
destination out {{
  elasticsearch-http(url("{url}/_bulk") index("syslog-ng") type("_doc") custom-id("${{MESSAGE}}") workers(1) retries(1000)
                     batch-lines(50) batch-timeout(200) time-reopen(1) response-action(429 => retry));
}};
log {{ source(lines); destination(out); flags(flow-control); }};
"#,
            debian.path("usr/share/syslog-ng/include/scl/elasticsearch/elastic-http.conf").display(),
        );
        debian.syslog_ng(&flow.file("syslog-ng.conf", &settings), &folder)
    });
}

/// A shipper's documents: their index, the path of the line in each, and whether the first ones are refused.
struct Shipper {
    index: &'static str,
    text: &'static str,
    is_refused: bool,
}

fn line(number: u64) -> String {
    format!("line {number} é \"quoted\"")
}

fn ships(shipper: Shipper, command: impl FnOnce(&Flow, &Path) -> Command) {
    ships_when(shipper, || true, command);
}

/// A shipper sends lines, each with an id, through pressure and a restart; each is there, once. `ready` is asked until
/// it says so.
fn ships_when(shipper: Shipper, ready: impl Fn() -> bool, command: impl FnOnce(&Flow, &Path) -> Command) {
    let mut flow = if shipper.is_refused { Flow::started() } else { Flow::open() };
    let text = |numbers: std::ops::Range<u64>| {
        numbers.fold(String::new(), |text, number| text + &line(number) + "\n")
    };
    let first = if shipper.is_refused { EACH } else { EACH / 2 };
    let lines = flow.file("lines.log", &text(0..first));
    let command = command(&flow, &lines);
    let mut program = Program::start("shipper", command, flow.gateway.folder());
    let mut ready = || {
        assert_eq!(program.ended(), None, "the shipper ended: {}", program.stderr());
        ready()
    };
    if shipper.is_refused {
        flow.cut(ready);
    } else {
        until(DRAINED, "the first lines to arrive", || {
            ready() && flow.store.index(shipper.index).len() as u64 == first
        });
        flow.gateway.kill9();
        let mut file = std::fs::OpenOptions::new().append(true).open(&lines).unwrap();
        file.write_all(text(first..EACH).as_bytes()).unwrap();
        // Until it has noticed that nobody is there.
        until(DRAINED, "the shipper to miss the gateway", || program.stderr().contains("server failure"));
        flow.start(json!({}));
    }
    let lines: BTreeSet<String> = (0..EACH).map(line).collect();
    let mut last = BTreeMap::new();
    until(DRAINED, "all lines to arrive", || {
        assert_eq!(program.ended(), None, "the shipper ended: {}", program.stderr());
        last = flow.store.index(shipper.index);
        last.len() as u64 >= EACH
    });
    flow.settled();
    let found = |document: &Value| document.pointer(shipper.text).and_then(Value::as_str).map(str::to_owned);
    let documents = flow.store.index(shipper.index);
    let texts: BTreeSet<String> = documents.values().filter_map(found).collect();
    assert!(
        texts == lines && documents.len() == lines.len(),
        "{} documents, {} lines",
        documents.len(),
        texts.len()
    );
    // The lake knows no ids, so what was under way may be there twice.
    let rows: BTreeSet<String> = flow.gateway.lake_rows("logs").iter().filter_map(line_in).collect();
    assert_eq!(rows, lines);
    flow.closed();
}

/// The line in a row of the lake: its body, or the field of a shipper that calls its text something else.
fn line_in(row: &Value) -> Option<String> {
    let attributes = &row["attributes"];
    let places = [&row["body"], &attributes["MESSAGE"], &attributes["body.text"]];
    places.into_iter().find_map(Value::as_str).map(str::to_owned)
}

/// A gateway between senders and a store.
struct Flow {
    gateway: Gateway,
    store: Store,
    /// Where it is Elasticsearch alone.
    url: String,
    listen: Value,
}

impl Flow {
    /// One that takes so little at a time that nobody gets to his end.
    fn started() -> Flow {
        Flow::with(json!({"sources": {"elasticsearch": {"items_per_second": 20, "items_burst": 100}}}))
    }

    /// One that takes all.
    fn open() -> Flow {
        Flow::with(json!({}))
    }

    fn with(limits: Value) -> Flow {
        let gateway = Gateway::new(json!({}));
        let alone = free_address();
        let listen = json!({
            "http": gateway.http(), "grpc": gateway.grpc(), "admin": gateway.admin(), "elasticsearch": alone,
        });
        let mut flow = Flow { gateway, store: Store::start(), url: format!("http://{alone}"), listen };
        flow.start(limits);
        flow
    }

    fn start(&mut self, limits: Value) {
        self.gateway.configure(json!({
            "listen": self.listen,
            "limits": limits,
            "sinks": {
                "out": {
                    "type": "elasticsearch", "endpoints": [self.store.url()], "compression": "none",
                    "linger": "20ms", "backoff": {"min": "20ms", "max": "500ms"},
                },
                "lake": {"type": "lake", "file_age": "1s"},
            },
        }));
        self.gateway.start();
    }

    /// Kills the gateway when documents came, others were refused, and `more` is so; and starts one that takes all.
    fn cut(&mut self, mut more: impl FnMut() -> bool) {
        until(DRAINED, "documents to be taken, and others to be refused", || {
            let source = self.source();
            let refused = source["refused"]["rate_limit"].as_u64().unwrap_or(0);
            more() && source["items"]["logs"].as_u64().is_some_and(|items| items > 0) && refused > 1
        });
        println!("{}", self.source());
        self.gateway.kill9();
        self.start(json!({}));
    }

    /// The books of the source.
    fn source(&self) -> Value {
        let status = self.gateway.status();
        let mut sources = status["books"]["sources"].as_array().into_iter().flatten();
        sources
            .find(|source| source["name"] == "elasticsearch")
            .cloned()
            .unwrap_or_else(|| panic!("{status}"))
    }

    /// A file of the test's.
    fn file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.gateway.folder().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    /// A folder of the test's.
    fn folder(&self, name: &str) -> PathBuf {
        let path = self.gateway.folder().join(name);
        std::fs::create_dir_all(&path).unwrap();
        path
    }

    /// Waits until all that was taken was sent on.
    fn settled(&self) {
        self.gateway.at_rest(DRAINED);
    }

    fn closed(&self) {
        self.settled();
        self.gateway.books_close();
        println!("{}", self.gateway.sink("out"));
    }
}

fn tool(name: &str) -> Option<PathBuf> {
    let found = std::env::var_os(name).filter(|value: &OsString| !value.is_empty()).map(PathBuf::from);
    if found.is_none() {
        skip(name, &format!("{name} is not set; `make test` sets it"));
    }
    found
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("shippers")
}
