//! The console over real sockets.

use super::sample::{healthy, troubled};
use crate::{
    ConfigurationFuture, ConfigurationOrder, ConfigurationReport, ConnectAnswer, ConnectError, ConnectQuery,
    Console, DeadLetterError, DeadLetterFuture, DeadLetterOrder, DeadLetterReport, FilesFuture, FilesQuery,
    FilesReport, ForgetError, Gateway, History, LONGEST_ANSWER, ListedPipeline, ProcessError, ProcessFuture,
    ProcessInput, ProcessOutput, RunningConfiguration, Status,
};
use std::fmt;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;
use tidegate_arena::{Arena, Floors, Share};
use tidegate_http1::Body;
use tidegate_http1::{Server, Shutdown};
use tidegate_ledger::RecentRefusal;
use tidegate_meters::Registry;
use tidegate_tap::{LOOK_BYTES, Tap};

/// A gateway that says what it was told to say.
pub(crate) struct FakeGateway {
    pub(super) status: Status,
    pub(super) metrics: fn(&mut dyn fmt::Write) -> fmt::Result,
    pub(super) ready: Result<(), String>,
    pub(super) tap: Tap,
    pub(super) pipelines: Vec<ListedPipeline>,
    pub(super) trial: FakeProcess,
    pub(super) searchable: bool,
    pub(super) search: FakeProcess,
    pub(super) files: FilesReport,
    pub(super) history: History,
    pub(super) refusals: Vec<RecentRefusal>,
}

/// Result of a process for its input.
pub(super) type FakeProcess =
    Arc<dyn Fn(&[u8], &mut ProcessOutput<'_>) -> Result<(), ProcessError> + Send + Sync>;

impl Gateway for FakeGateway {
    fn status(&self) -> Status {
        self.status.clone()
    }

    fn metrics(&self, out: &mut dyn fmt::Write) -> fmt::Result {
        (self.metrics)(out)
    }

    fn broken_sinks(&self) -> Vec<String> {
        self.status.sinks.iter().filter(|sink| sink.broken).map(|sink| sink.name.clone()).collect()
    }

    fn ready(&self) -> Result<(), String> {
        self.ready.clone()
    }

    fn connect(&self, query: &ConnectQuery) -> ConnectAnswer {
        match query.kind.as_deref() {
            Some("unknown") => Err(ConnectError::Unknown),
            Some("changing") => Err(ConnectError::Changing),
            kind => Ok(serde_json::json!({"kind": kind, "authority": query.authority})),
        }
    }

    fn tap(&self) -> &Tap {
        &self.tap
    }

    fn sink_names(&self) -> Vec<String> {
        self.status.sinks.iter().map(|sink| sink.name.clone()).collect()
    }

    fn files<'a>(&'a self, query: &'a FilesQuery) -> FilesFuture<'a> {
        let files = self.files.files.iter().take(query.limit).cloned().collect();
        let report = FilesReport { files, ..self.files.clone() };
        Box::pin(async move { Ok(report) })
    }

    fn forget(&self, sink: &str) -> Result<u64, ForgetError> {
        match sink {
            "old" => Ok(42),
            "lake" => Err(ForgetError::InUse("`lake` is configured".to_owned())),
            "busy" => Err(ForgetError::Later("try again".to_owned())),
            _ => Err(ForgetError::Unknown("there is no such cursor".to_owned())),
        }
    }

    fn pipelines(&self) -> Option<Vec<ListedPipeline>> {
        Some(self.pipelines.clone())
    }

    fn steps_of(&self, pipeline: &str) -> Option<String> {
        self.pipelines.iter().find(|known| known.name == pipeline)?.steps.clone()
    }

    fn history(&self) -> &History {
        &self.history
    }

    fn recent_refusals(&self, visit: &mut dyn FnMut(&RecentRefusal)) {
        self.refusals.iter().for_each(visit);
    }

    fn configuration(&self) -> RunningConfiguration {
        RunningConfiguration { file: Some("tidegate.yaml".to_owned()), text: "memory: 64MiB\n".into() }
    }

    fn order(&self, order: ConfigurationOrder) -> ConfigurationFuture<'_> {
        let message = format!("{order:?}");
        Box::pin(
            async move { Ok(ConfigurationReport { ok: true, message, ..ConfigurationReport::default() }) },
        )
    }

    fn dead_letters(&self, order: DeadLetterOrder) -> DeadLetterFuture<'_> {
        Box::pin(async move {
            let DeadLetterOrder { action, sink, through } = order;
            let words = |words: &str| words.to_owned();
            match &*sink {
                "busy" => Err(DeadLetterError::Busy(words("another order is being followed"))),
                "full" => Err(DeadLetterError::Failed(words("the disk is full"))),
                "up" => Ok(DeadLetterReport { action, letters: through, items: 70, kept: 0, message: None }),
                "half" => {
                    let message = Some(words("letter 9 is \"damaged\""));
                    Ok(DeadLetterReport { action, letters: through, items: 70, kept: 1, message })
                }
                _ => Err(DeadLetterError::Unknown(words("there is no such sink"))),
            }
        })
    }

    fn trial<'a>(&'a self, input: Vec<ProcessInput>, output: &'a mut ProcessOutput<'a>) -> ProcessFuture<'a> {
        Box::pin(async move {
            let bytes: Vec<u8> = input.iter().flat_map(|part| part.bytes().to_vec()).collect();
            (self.trial)(&bytes, output)
        })
    }

    fn is_searchable(&self) -> bool {
        self.searchable
    }

    fn search<'a>(
        &'a self,
        kind: &'static str,
        query: Arc<Body>,
        output: &'a mut ProcessOutput<'a>,
    ) -> ProcessFuture<'a> {
        Box::pin(async move {
            let asked = [kind.as_bytes(), b" ", &**query].concat();
            (self.search)(&asked, output)
        })
    }
}

pub(crate) fn gateway_with(status: Status) -> FakeGateway {
    let floors = Floors::NONE;
    let tap = Tap::new(Arena::new(2 * LOOK_BYTES, floors, 64 << 10, 4, 4).unwrap());
    FakeGateway {
        status,
        metrics: |mut out| Registry::new(1).encode(&mut out),
        ready: Ok(()),
        tap,
        pipelines: Vec::new(),
        trial: Arc::new(|_, _| Err(ProcessError::Late)),
        searchable: true,
        search: Arc::new(|_, _| Err(ProcessError::Late)),
        files: FilesReport::default(),
        history: History::new(),
        refusals: Vec::new(),
    }
}

/// A console on its own memory and socket.
pub(super) struct Served {
    arena: Arena,
    address: std::net::SocketAddr,
}

/// An answer, taken apart.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) head: String,
    pub(super) body: String,
}

impl Served {
    pub(super) fn new(gateway: FakeGateway) -> Served {
        let arena = Console::reserve().unwrap();
        Served::with(Console::new(Arc::new(gateway), arena.clone()), arena, 1)
    }

    /// One that serves `threads` connections at a time.
    pub(super) fn on_threads(gateway: FakeGateway, threads: usize) -> Served {
        let arena = Console::reserve().unwrap();
        Served::with(Console::new(Arc::new(gateway), arena.clone()), arena, threads)
    }

    fn with(console: Console, arena: Arena, threads: usize) -> Served {
        let server = Server::new(console, Console::settings(), arena.clone(), Shutdown::new());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        listener.set_nonblocking(true).unwrap();
        for _ in 0..threads {
            let (server, listener) = (Arc::clone(&server), listener.try_clone().unwrap());
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
                    while let Ok((stream, peer)) = listener.accept().await {
                        server.serve(stream, peer).await;
                    }
                });
            });
        }
        Served { arena, address }
    }

    pub(super) fn ask(&self, request: &str) -> Answer {
        self.ask_with(request, "Accept: */*")
    }

    /// Sends a body, too.
    pub(super) fn post(&self, target: &str, content_type: &str, body: &[u8]) -> Answer {
        whole(self.send_with(target, &format!("Content-Type: {content_type}"), body))
    }

    /// The same, with another header; a connection on which the answer comes.
    pub(super) fn send_with(&self, target: &str, header: &str, body: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let length = body.len();
        let head = format!(
            "POST {target} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{header}\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        // One that is refused need not be read.
        let _ = stream.write_all(body);
        stream
    }

    /// Sends a head that expects `100 Continue`, and waits for that: the request is admitted, and its body is awaited.
    pub(super) fn begin(&self, head: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = [0; 25];
        stream.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 100 Continue\r\n\r\n");
        stream
    }

    pub(super) fn ask_with(&self, request: &str, header: &str) -> Answer {
        whole(self.send(request, header))
    }

    /// The answer as bytes, with its head.
    pub(super) fn bytes(&self, request: &str, header: &str) -> Vec<u8> {
        received(self.send(request, header))
    }

    /// A connection on which the answer comes.
    pub(super) fn open(&self, request: &str) -> TcpStream {
        self.send(request, "Accept: */*")
    }

    fn send(&self, request: &str, header: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let request = format!("{request} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n{header}\r\n\r\n");
        stream.write_all(request.as_bytes()).unwrap();
        stream
    }
}

fn received(mut stream: TcpStream) -> Vec<u8> {
    let (mut bytes, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut piece).unwrap() {
            0 => break,
            read => bytes.extend_from_slice(&piece[..read]),
        }
        assert!(bytes.len() < 2 * LONGEST_ANSWER);
    }
    bytes
}

pub(super) fn whole(stream: TcpStream) -> Answer {
    let answer = String::from_utf8(received(stream)).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

impl Answer {
    pub(super) fn has(&self, header: &str) -> bool {
        self.head.lines().any(|line| line == header)
    }
}

/// Browsers, programs and terminals each get theirs.
#[test]
fn status_comes_in_the_form_asked_for() {
    let served = Served::new(gateway_with(troubled()));
    let html = "Content-Type: text/html; charset=utf-8";
    let json = "Content-Type: application/json";
    let text = "Content-Type: text/plain; charset=utf-8";
    let table = [
        ("GET /status", "Accept: */*", text),
        ("GET /status", "Accept: text/html,application/xhtml+xml,*/*;q=0.8", html),
        ("GET /status", "Accept: application/json", json),
        ("GET /status", "X-None: at all", text),
        ("GET /status.json", "Accept: text/html", json),
        ("GET /status?format=json", "Accept: text/html", json),
        ("GET /status?format=text", "Accept: text/html", text),
        ("GET /status?a=b&format=html", "Accept: */*", html),
    ];
    for (request, accept, expected) in table {
        let answer = served.ask_with(request, accept);
        assert_eq!(answer.status, 200, "{request} {accept}");
        assert!(answer.has(expected), "{request} {accept}: {}", answer.head);
        assert!(answer.has("Cache-Control: no-store") && answer.has("Vary: Accept"), "{}", answer.head);
    }
    let page = served.ask("GET /status?format=html");
    assert!(page.body.contains("<h1>pushing back</h1>"));
    assert!(page.head.contains("Content-Security-Policy: default-src 'none'; style-src 'unsafe-inline';"));
    let json: serde_json::Value = serde_json::from_str(&served.ask("GET /status.json").body).unwrap();
    assert_eq!(json["state"], "pushing_back");
    assert_eq!(served.ask("GET /status?format=xml").status, 400);
}

#[test]
fn metrics_are_openmetrics() {
    let served = Served::new(gateway_with(healthy()));
    let answer = served.ask("GET /metrics");
    assert_eq!(answer.status, 200);
    assert!(answer.has("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8"));
    assert!(answer.body.ends_with("# EOF\n"), "{}", answer.body);
}

#[test]
fn health_is_life_and_ready_is_willingness() {
    let served = Served::new(gateway_with(healthy()));
    assert_eq!((served.ask("GET /health").status, served.ask("GET /health").body.as_str()), (200, "ok\n"));
    assert_eq!(served.ask("GET /ready").status, 200);
    let mut broken = healthy();
    broken.sinks[1].broken = true;
    let answer = Served::new(gateway_with(broken)).ask("GET /health");
    let words = "alive, but these sinks failed and are started again: upstream\n";
    assert_eq!((answer.status, answer.body.as_str()), (200, words));

    let served = Served::new(FakeGateway {
        ready: Err("the journal is being read".to_owned()),
        ..gateway_with(healthy())
    });
    assert_eq!(served.ask("GET /health").status, 200);
    let answer = served.ask("GET /ready");
    assert_eq!((answer.status, answer.body.as_str()), (503, "not ready: the journal is being read\n"));
    assert!(answer.has("Retry-After: 5"), "{}", answer.head);
}

#[test]
fn nothing_can_be_changed_and_nothing_else_is_there() {
    let served = Served::new(gateway_with(healthy()));
    for method in ["POST", "PUT", "DELETE", "OPTIONS", "get"] {
        let answer = served.ask(&format!("{method} /status"));
        assert_eq!(answer.status, 405, "{method}");
        assert!(answer.has("Allow: GET, HEAD"), "{}", answer.head);
    }
    for path in ["/api/v1/write", "/status/", "//status", "/%2e", "*"] {
        let answer = served.ask(&format!("{} {path}", if path == "*" { "OPTIONS" } else { "GET" }));
        assert_eq!(answer.status, 404, "{path}");
        assert!(crate::PATHS.iter().all(|path| answer.body.contains(path)), "{}", answer.body);
    }
    assert_eq!(served.ask_with("GET /status", "Content-Length: 5").status, 413);
}

#[test]
fn head_is_get_without_content() {
    let served = Served::new(gateway_with(healthy()));
    for path in crate::PATHS {
        let (head, get) = (served.ask(&format!("HEAD {path}")), served.ask(&format!("GET {path}")));
        assert_eq!((head.status, head.body.as_str()), (get.status, ""), "{path}");
        let length = format!("Content-Length: {}", get.body.len());
        assert!(head.has(&length), "{path}: {}", head.head);
    }
}

/// A page that would be too long is cut behind a whole line and says so; JSON is given whole or not at all.
#[test]
fn a_long_page_is_truncated_with_a_note() {
    let mut status = healthy();
    let line = status.memory.declared[0].clone();
    status.memory.declared = vec![line; 10_000];
    let served = Served::new(gateway_with(status));
    let html = served.ask("GET /status?format=html");
    assert_eq!(html.status, 200);
    assert!(html.body.len() <= LONGEST_ANSWER && html.body.len() > LONGEST_ANSWER - 4096);
    let (kept, note) =
        html.body.split_once("</table></dl></section>\n<p class=\"say bad\">Cut here").unwrap();
    assert!(kept.ends_with("</tr>\n") && note.ends_with("</html>\n"));
    let text = served.ask("GET /status?format=text");
    assert_eq!(text.status, 200);
    assert!(text.body.ends_with(crate::text::CUT) && text.body.len() <= LONGEST_ANSWER);
    let json = served.ask("GET /status.json");
    assert_eq!(json.status, 500);
    assert!(json.body.contains("512 KiB"), "{}", json.body);
}

/// Half of the metrics would look like all of them.
#[test]
fn metrics_are_never_cut() {
    let endless = |out: &mut dyn fmt::Write| loop {
        out.write_str("tidegate_line 1\n")?;
    };
    let answer = Served::new(FakeGateway { metrics: endless, ..gateway_with(healthy()) }).ask("GET /metrics");
    assert_eq!(answer.status, 500);
    assert!(answer.body.starts_with("the metrics would be longer than"), "{}", answer.body);
    let broken = |_: &mut dyn fmt::Write| Err(fmt::Error);
    let answer = Served::new(FakeGateway { metrics: broken, ..gateway_with(healthy()) }).ask("GET /metrics");
    assert_eq!(answer.status, 500);
}

/// When responses in flight hold all the memory there is for them, the next is refused with a delay, and
/// heads are still received; when they are gone, it is answered.
#[test]
fn too_many_answers_at_a_time_are_refused() {
    let served = Served::new(gateway_with(healthy()));
    let held: Vec<_> = [LONGEST_ANSWER, crate::console::ANSWERS_BYTES - LONGEST_ANSWER]
        .map(|size| served.arena.try_window(Share::Egress, size).unwrap())
        .into();
    let answer = served.ask("GET /status");
    assert_eq!(answer.status, 503);
    assert!(answer.has("Retry-After: 1"), "{}", answer.head);
    assert_eq!(served.ask("GET /health").status, 200);
    drop(held);
    assert_eq!(served.ask("GET /status").status, 200);
}

/// A cursor is forgotten by those who ask for it by name, and by no page that a browser shows.
#[test]
fn a_cursor_is_forgotten_on_request_only() {
    let served = Served::new(gateway_with(healthy()));
    let pid = std::process::id();
    for (request, status, words) in [
        ("DELETE /journal/cursors/old".to_owned(), 200, "42\n"),
        (format!("DELETE /journal/cursors/old?pid={pid}"), 200, "42\n"),
        (format!("DELETE /journal/cursors/old?pid={}", pid + 1), 409, "another gateway"),
        ("DELETE /journal/cursors/lake".to_owned(), 409, "configured"),
        ("DELETE /journal/cursors/none".to_owned(), 404, "no such cursor"),
        ("DELETE /journal/cursors/busy".to_owned(), 503, "try again"),
        ("DELETE /journal/cursors/a%2fb".to_owned(), 404, "unknown path"),
        ("GET /journal/cursors/old".to_owned(), 405, "use DELETE"),
        ("POST /journal/cursors/old".to_owned(), 405, "use DELETE"),
        ("DELETE /status".to_owned(), 405, "use GET"),
    ] {
        let answer = served.ask(&request);
        assert_eq!(answer.status, status, "{request}: {}", answer.body);
        assert!(answer.body.contains(words), "{request}: {}", answer.body);
    }
    for header in ["Origin: http://h", "Sec-Fetch-Site: same-origin"] {
        assert_eq!(served.ask_with("DELETE /journal/cursors/old", header).status, 403, "{header}");
    }
}
