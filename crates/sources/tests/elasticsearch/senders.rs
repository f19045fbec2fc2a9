//! Requests that shippers make before and while they send, for shippers that cannot run here: from their source code,
//! each named. The others run against the whole program.

use crate::accepts::gzipped;
use crate::rig::Rig;
use serde_json::{Value, json};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A sender, with what it does in its own words.
struct Sender {
    /// Its name and where in its sources that is said.
    name: &'static str,
    /// The request, and the fields of the answer that the shipper needs: a path, and the value expected there.
    asks: &'static [(&'static str, &'static str, &'static str)],
    /// The line of its requests with documents, and their headers.
    head: &'static [&'static str],
    gzip: bool,
    body: &'static str,
    /// The stored value, if it differs.
    kept: Option<&'static str>,
    /// The whole of the answer.
    answer: &'static str,
}

const VERSION: (&str, &str, &str) = ("GET /", "/version/number", "\"8.19.0\"");
const TAKEN: &str = r#"{"errors":false,"items":[{"create":{"status":201}}]}"#;
const ALL: &str = r#"{"errors":false,"took":0,"items":[{"create":{"_index":"logs","_id":null,"_version":1,"result":"created",
    "_shards":{"total":1,"successful":1,"failed":0},"_seq_no":0,"_primary_term":1,"status":201}}]}"#;
const DOCUMENT: &str = "{\"create\":{\"_index\":\"logs\"}}\n{\"message\":\"é\"}\n";

const SENDERS: [Sender; 8] = [
    Sender {
        name: "Logstash: logstash-output-elasticsearch, http_client.rb, http_client/pool.rb, license_checker.rb, ilm.rb",
        asks: &[
            ("HEAD /", "", ""),
            VERSION,
            ("GET /", "/tagline", "\"You Know, for Search\""),
            ("GET /", "/version/build_flavor", "\"default\""),
            ("GET /_license", "/license/status", "\"active\""),
            ("GET /_nodes/http", "/nodes/tidegate/http/publish_address", "\"gate:9200\""),
            ("HEAD /_index_template/ecs-logstash", "", ""),
            ("HEAD /_template/logstash", "", ""),
            ("HEAD /_alias/logstash", "", ""),
            ("GET /_ilm/policy/logstash-policy", "", "{}"),
            ("PUT /_ilm/policy/logstash-policy", "/acknowledged", "true"),
            ("PUT /%3Clogstash-%7Bnow%2Fd%7D-000001%3E", "/acknowledged", "true"),
        ],
        head: &[
            "POST /_bulk?filter_path=errors,items.*.error,items.*.status HTTP/1.1",
            "Content-Type: application/json",
            "Content-Encoding: gzip",
            "X-Elastic-Product-Origin: logstash-output-elasticsearch",
            "User-Agent: Logstash/9.0.0 (OS=Linux; JVM=21) logstash-output-elasticsearch/12.0.2",
        ],
        gzip: true,
        body: "{\"create\":{\"_id\":null,\"_index\":\"logs\",\"routing\":null}}\n{\"message\":\"é\"}\n",
        kept: None,
        answer: TAKEN,
    },
    Sender {
        name: "Beats 8 and 9: libbeat/esleg/eslegclient/{connection,bulkapi}.go, libbeat/idxmgmt, libbeat/licenser",
        asks: &[
            VERSION,
            ("GET /", "/version/build_flavor", "\"default\""),
            ("GET /_license?human=false", "/license/type", "\"basic\""),
            ("GET /_ilm/policy/filebeat", "", "{}"),
            ("HEAD /_index_template/filebeat-9.1.0", "", ""),
            ("GET /_data_stream/filebeat-9.1.0", "/data_streams", "[]"),
            ("PUT /_data_stream/filebeat-9.1.0", "/acknowledged", "true"),
            ("PUT /_ingest/pipeline/filebeat-9.1.0-nginx-access-pipeline", "/acknowledged", "true"),
        ],
        head: &[
            "POST /_bulk?filter_path=errors%2Citems.index.status%2Citems.index.error%2Citems.create.status%2Citems.create.error HTTP/1.1",
            "Accept: application/json",
            "Content-Type: application/json; charset=UTF-8",
            "Content-Encoding: gzip",
            "X-Elastic-Product-Origin: libbeat",
        ],
        gzip: true,
        body: DOCUMENT,
        kept: None,
        answer: TAKEN,
    },
    Sender {
        name: "Fluent Bit, also as it is by default, with a type: plugins/out_es/es.c",
        asks: &[],
        head: &["POST /_bulk HTTP/1.1", "Content-Type: application/x-ndjson", "User-Agent: Fluent-Bit"],
        gzip: false,
        body: "{\"create\":{\"_index\":\"logs\",\"_type\":\"_doc\"}}\n{\"message\":\"é\"}\n",
        kept: Some(DOCUMENT),
        answer: ALL,
    },
    Sender {
        name: "Vector: src/sinks/elasticsearch/{common,config,encoder,retry}.rs",
        asks: &[VERSION, ("GET /_cluster/health", "/status", "\"green\"")],
        head: &[
            "POST /_bulk?timeout=60s HTTP/1.1",
            "content-type: application/x-ndjson",
            "user-agent: Vector/0.50.0 (x86_64-unknown-linux-gnu)",
            "accept-encoding: zstd,gzip,deflate,br",
        ],
        gzip: false,
        body: "{\"create\":{\"_index\":\"logs\",\"_type\":\"_doc\"}}\n{\"message\":\"é\"}\n",
        kept: Some(DOCUMENT),
        answer: ALL,
    },
    Sender {
        name: "Fluentd: fluent-plugin-elasticsearch, out_elasticsearch.rb, over elasticsearch-ruby",
        asks: &[VERSION, ("HEAD /_index_template/fluentd", "", ""), ("HEAD /_data_stream/logs-x", "", "")],
        head: &[
            "POST /_bulk HTTP/1.1",
            "Content-Type: application/vnd.elasticsearch+x-ndjson; compatible-with=8",
            "Accept: application/vnd.elasticsearch+json; compatible-with=8",
            "User-Agent: elasticsearch-ruby/8.19.0 (RUBY_VERSION: 3.2.0; linux x86_64; Faraday v1.10.4)",
            "X-Elastic-Client-Meta: es=8.19.0,rb=3.2.0,t=8.4.0,fd=1.10.4,ty=1.4.1",
        ],
        gzip: false,
        body: DOCUMENT,
        kept: None,
        answer: ALL,
    },
    Sender {
        name: "curl, which asks whether it may go on: lib/http.c, `Expect`",
        asks: &[],
        head: &[
            "POST /logs/_doc/_bulk HTTP/1.1",
            "Content-Type: application/x-ndjson",
            "Expect: 100-continue",
        ],
        gzip: false,
        body: "{\"create\":{}}\n{\"message\":\"é\"}\n",
        kept: Some(DOCUMENT),
        answer: ALL,
    },
    Sender {
        name: "Serilog, and other users of Elastic.Transport, in chunks: HttpRequestInvoker.cs",
        asks: &[("HEAD /", "", "")],
        head: &[
            "PUT /_bulk?filter_path=errors,items.*.error,items.*.status HTTP/1.1",
            "Content-Type: application/vnd.elasticsearch+json; compatible-with=9",
            "Transfer-Encoding: chunked",
        ],
        gzip: false,
        body: DOCUMENT,
        kept: None,
        answer: TAKEN,
    },
    Sender {
        name: "Data Prepper, and others of OpenSearch's high-level clients: opensearch-java, BulkRequest",
        asks: &[
            ("GET /_cluster/settings?include_defaults=true", "/persistent", "{}"),
            ("HEAD /_template/otel-v1", "", ""),
        ],
        head: &["POST /_bulk HTTP/1.1", "Content-Type: application/json", "Accept: application/json"],
        gzip: false,
        body: DOCUMENT,
        kept: None,
        answer: ALL,
    },
];

/// Everything until the connection is closed.
async fn whole(address: SocketAddr, request: &[u8]) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

/// Each finds what it needs to begin with; what it sends is kept, and its answer is the one that it reads.
#[tokio::test]
async fn every_sender_starts_and_delivers() {
    for Sender { name, asks, head, gzip, body, kept, answer } in SENDERS {
        for (line, place, wanted) in asks {
            let rig = Rig::new();
            let (method, path) = line.split_once(' ').unwrap();
            let length = if method == "PUT" { "Content-Length: 2\r\n" } else { "" };
            let body = if method == "PUT" { "{}" } else { "" };
            let request = format!(
                "{method} /elasticsearch{path} HTTP/1.1\r\nHost: gate:9200\r\n{length}Connection: close\r\n\r\n{body}"
            );
            let said = rig.serve(async |address| whole(address, request.as_bytes()).await).await;
            assert!(said.starts_with("HTTP/1.1 200 "), "{name}: {line}: {said}");
            let product = said.to_ascii_lowercase().contains("\r\nx-elastic-product: elasticsearch\r\n");
            assert!(product, "{name}: {line}: {said}");
            if method != "HEAD" {
                let json: Value = serde_json::from_str(said.split_once("\r\n\r\n").unwrap().1).unwrap();
                let wanted: Value = serde_json::from_str(wanted).unwrap();
                assert_eq!(json.pointer(place), Some(&wanted), "{name}: {line}");
            }
        }
        let rig = Rig::new();
        let mut follower = rig.follow();
        let bytes = if gzip { gzipped(body.as_bytes()) } else { body.as_bytes().to_vec() };
        let mut request = format!("{}\r\nHost: gate:9200\r\nConnection: close\r\n", head.join("\r\n"));
        request = request.replacen(" /", " /elasticsearch/", 1);
        let mut request = request.into_bytes();
        if head.iter().any(|line| line.ends_with("chunked")) {
            let (first, second) = bytes.split_at(7);
            request.extend_from_slice(b"\r\n");
            for part in [first, second, b""] {
                request.extend_from_slice(format!("{:x}\r\n", part.len()).as_bytes());
                request.extend_from_slice(part);
                request.extend_from_slice(b"\r\n");
            }
        } else {
            request.extend_from_slice(format!("Content-Length: {}\r\n\r\n", bytes.len()).as_bytes());
            request.extend_from_slice(&bytes);
        }
        let said = rig.serve(async |address| whole(address, &request).await).await;
        let said = said.strip_prefix("HTTP/1.1 100 Continue\r\n\r\n").unwrap_or(&said);
        assert!(said.starts_with("HTTP/1.1 200 "), "{name}: {said}");
        let (meta, got) = rig.journalled(&mut follower).await;
        let wanted = kept.map_or(bytes, |kept| kept.as_bytes().to_vec());
        assert!(got == wanted, "{name}: {}", String::from_utf8_lossy(&got));
        assert_eq!(meta.items, 1, "{name}");
        let said: Value = serde_json::from_str(said.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(said, serde_json::from_str::<Value>(answer).unwrap(), "{name}");
        assert_eq!(rig.books_of("elasticsearch").refused, [], "{name}");
    }
}

/// Vector, Fluent Bit and rsyslog look for words in the answer, in this very spelling.
#[tokio::test]
async fn the_verdict_is_spelled_as_elasticsearch_spells_it() {
    for (document, verdict) in [("{}", "\"errors\":false"), ("{", "\"errors\":true")] {
        let rig = Rig::new();
        let body = format!("{{\"index\":{{\"_index\":\"a\"}}}}\n{document}\n");
        let head = "POST /elasticsearch/_bulk HTTP/1.1\r\nHost: a\r\nConnection: close\r\n";
        let request = format!("{head}Content-Length: {}\r\n\r\n{body}", body.len());
        let said = rig.serve(async |address| whole(address, request.as_bytes()).await).await;
        assert!(said.contains(verdict), "{said}");
        let json: Value = serde_json::from_str(said.split_once("\r\n\r\n").unwrap().1).unwrap();
        assert_eq!(json["errors"], json!(document == "{"));
    }
}
