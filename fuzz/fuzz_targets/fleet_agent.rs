//! Whatever an Elastic Agent sends with a key that is right, it is answered in the protocol's own shape, and a connection that has ended
//! holds no memory.
#![no_main]
#![allow(dead_code, reason = "others use the rest of it")]

#[path = "../src/agents.rs"]
mod agents;
#[path = "../src/folder.rs"]
mod folder;
#[path = "../../crates/http1/tests/codec/pipe.rs"]
mod pipe;

use agents::{Plane, arena};
use libfuzzer_sys::fuzz_target;
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;
use tidegate_fleet::{
    AgentApi, FileSettings, Fleet, FleetFiles, OperatorApi, OperatorRequest, OutputSettings, PgpKey, Settings,
};

thread_local! {
    static PLANE: Cell<Option<Plane<AgentApi>>> = const { Cell::new(None) };
    /// The token of enrolment.
    static TOKEN: RefCell<String> = const { RefCell::new(String::new()) };
}

/// What agents ask for; `ID` is the agent's.
const ROUTES: [&str; 12] = [
    "POST /api/fleet/agents/enroll",
    "POST /api/fleet/agents/ID/checkin",
    "POST /api/fleet/agents/ID/acks",
    "POST /api/fleet/agents/ID/audit/unenroll",
    "POST /api/fleet/uploads",
    "PUT /api/fleet/uploads/U/0",
    "POST /api/fleet/uploads/U",
    "GET /api/fleet/artifacts/a/00",
    "GET /api/fleet/file/F",
    "GET /api/agents/upgrades/9.1.0/pgp-public-key",
    "GET /api/status",
    "PATCH /api/fleet/agents/ID/acks",
];

fuzz_target!(|input: (u8, Vec<(u8, bool, &[u8])>)| {
    let (size, requests) = input;
    let mut plane = PLANE.take().unwrap_or_else(|| Plane::new(service));
    let enrolled = plane.talk(
        &request(ROUTES[0], &TOKEN.with_borrow(Clone::clone), b"{\"type\":\"PERMANENT\"}", false),
        4096,
    );
    let agent = json(&enrolled);
    let text = |name: &str| agent["item"][name].as_str().unwrap_or_default();
    let mut sent = Vec::new();
    for (route, is_compressed, body) in requests.into_iter().take(8) {
        let route = usize::from(route) % ROUTES.len();
        let line = ROUTES[route].replace("ID", text("id"));
        let key =
            if route == 0 { TOKEN.with_borrow(Clone::clone) } else { text("access_api_key").to_owned() };
        sent.extend(request(&line, &key, body, is_compressed));
    }
    let answers = plane.talk(&sent, usize::from(size) + 1);
    assert!(answers.is_empty() || answers.starts_with(b"HTTP/1.1 "), "{}", String::from_utf8_lossy(&answers));
    PLANE.set(plane.kept());
});

fn request(line: &str, key: &str, body: &[u8], is_compressed: bool) -> Vec<u8> {
    let coding = if is_compressed { "Content-Encoding: gzip\r\n" } else { "" };
    let head = format!(
        "{line} HTTP/1.1\r\nHost: a\r\nUser-Agent: Elastic Agent v9.1.0\r\nAuthorization: ApiKey {key}\r\n{coding}Content-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

async fn service(
    store: tidegate_fleet::EmbeddedStore,
    folder: &folder::Folder,
    requests: tidegate_arena::Arena,
) -> AgentApi {
    let store = Arc::new(store);
    let outputs = OutputSettings { hosts: vec!["http://127.0.0.1:9200".to_owned()], has_tenants: true };
    let settings = Settings { long_poll: Duration::from_secs(1), max_body: 64 << 10, keep_actions: Duration::from_secs(1), outputs };
    let fleet = Fleet::load(store.clone(), settings, (requests, arena())).await.expect("an empty state");
    let files = FileSettings { quota: 1 << 20, max_body: 64 << 10, memory: 1 << 20 };
    let files =
        FleetFiles::open(&folder.path().join("files"), store, (files, PgpKey::default()), arena()).await;
    let files = files.expect("an empty folder");
    for task in [tokio::spawn(Arc::clone(&fleet).roll_out()), tokio::spawn(Arc::clone(&fleet).end_polls())] {
        // They end with the runtime.
        drop(task);
    }
    let operator = OperatorApi::new(Arc::clone(&fleet), Arc::clone(&files));
    let order = async |method: &str, path: &str, body: &[u8]| {
        let (method, path) = (method.to_owned(), path.to_owned());
        let request = OperatorRequest { method, path, query: String::new(), is_compressed: false };
        let mut answer = Vec::new();
        operator.answer(&request, body).await.put(0, &mut answer);
        json(&answer)
    };
    order(
        "PUT",
        "policies/p",
        b"{\"inputs\":[{\"type\":\"logfile\"}],\"outputs\":{\"default\":{\"type\":\"tidegate\"}}}",
    )
    .await;
    let token = order("POST", "tokens", b"{\"policy_id\":\"p\",\"name\":\"fuzz\"}").await;
    TOKEN.set(token["token"].as_str().unwrap_or_else(|| panic!("{token}")).to_owned());
    AgentApi::new(fleet, files)
}

/// The JSON behind the head of an answer.
fn json(answer: &[u8]) -> serde_json::Value {
    let head = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("an answer");
    serde_json::from_slice(&answer[head + 4..]).expect("JSON")
}
